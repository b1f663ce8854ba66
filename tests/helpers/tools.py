"""The scripts in ``tools/`` as modules."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from types import ModuleType

from helpers import REPOSITORY


def tool(name: str) -> ModuleType:
    """Returns a script of ``tools/`` as a module that has not run."""
    known = f"airloom_tools_{name.replace('-', '_')}"
    loader = importlib.machinery.SourceFileLoader(known, str(REPOSITORY / "tools" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(known, loader))
    sys.modules[known] = module  # dataclasses look their module up
    written, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = written
    return module
