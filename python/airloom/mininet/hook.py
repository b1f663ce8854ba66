"""Runs unchanged Mininet scripts: an import hook maps ``mininet`` to this package."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import runpy
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from airloom.errors import LabError
from airloom.mininet.errors import Unsupported

_HERE = "airloom.mininet"
MODULES = (
    "clean",
    "cli",
    "link",
    "log",
    "moduledeps",
    "net",
    "node",
    "nodelib",
    "term",
    "topo",
    "topolib",
    "util",
)
"""Modules of Mininet that a script may import."""


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Import hook: finds this package's module for each of Mininet's."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        package, _, rest = fullname.partition(".")
        if package != "mininet":
            return None
        examples = rest.partition(".")[0] == "examples"
        if rest and rest not in MODULES and not examples:
            raise Unsupported(
                f"import {fullname}",
                "that module has no counterpart here",
                cure=f"there are: {', '.join(MODULES)}",
            )
        return importlib.util.spec_from_loader(fullname, self, is_package=rest in ("", "examples"))

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        rest = spec.name.partition(".")[2]
        if rest == "examples":
            return ModuleType(spec.name)
        if rest.startswith("examples."):  # another script in the folder of the running script
            return importlib.import_module(rest.partition(".")[2])
        return importlib.import_module(f"{_HERE}.{rest}" if rest else _HERE)

    def exec_module(self, module: ModuleType) -> None:
        """Does nothing: the module was executed under its own name."""


def install() -> None:
    """Maps ``mininet`` to this package from now on, even where Mininet is installed."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        for name in [name for name in sys.modules if name.partition(".")[0] == "mininet"]:
            del sys.modules[name]
        sys.meta_path.insert(0, _Finder())


def run_script(path: str, arguments: Sequence[str]) -> dict[str, Any]:
    """Runs a script as ``python SCRIPT ARGUMENTS`` does."""
    install()
    sys.argv = [path, *arguments]
    sys.path.insert(0, str(Path(path).resolve().parent))
    try:
        return runpy.run_path(path, run_name="__main__")
    except LabError:
        raise
    except Exception as error:
        traceback.print_exception(error.with_traceback(_from_script(error, path)))
        raise SystemExit(1) from None


def _from_script(error: Exception, path: str) -> TracebackType | None:
    """Returns the traceback from the script on, without Airloom's own frames."""
    step = error.__traceback__
    while step is not None and step.tb_frame.f_code.co_filename != path:
        step = step.tb_next
    return step
