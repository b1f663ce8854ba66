"""Runs unchanged scripts of Mininet, Mininet-WiFi and Containernet: an import hook maps their packages."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import runpy
import sys
import traceback
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from airloom.errors import LabError
from airloom.mininet.errors import OtherTool, Unsupported

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


WIRELESS = "airloom.mn_wifi"
WIRELESS_MODULES = ("cli", "link", "net", "node", "wmediumdConnector")
"""Modules of Mininet-WiFi that a script may import."""

EXTENSIONS = {
    "mn_iot": "Mininet-WiFi",
    "ipmininet": "IPMininet",
}
"""Packages that extend Mininet by inheriting from its classes, and would find others here."""


ADDED = {"net": {"Fogbed": "Containernet"}, "node": {"LibvirtHost": "Containernet"}}
"""Names that an extension adds to a module of Mininet."""


def _added(module: str, name: str) -> Any:
    """Names the extension that has a name which Mininet has not."""
    if (module, name) in (("net", "Containernet"), ("node", "Docker")):
        return getattr(importlib.import_module(f"{_HERE}.containers"), name)
    if name in ADDED[module]:
        raise OtherTool(f"mininet.{module}.{name}", ADDED[module][name])
    raise AttributeError(f"module 'mininet.{module}' has no attribute {name!r}")


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Import hook: finds this package's module for each of Mininet's."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        package, _, rest = fullname.partition(".")
        if package in EXTENSIONS:
            raise OtherTool(f"import {fullname}", EXTENSIONS[package])
        if package == "mn_wifi":
            if rest and rest not in WIRELESS_MODULES:
                raise Unsupported(
                    f"import {fullname}",
                    "that module of Mininet-WiFi has no counterpart here",
                    cure=f"there are: {', '.join(WIRELESS_MODULES)}",
                )
            return importlib.util.spec_from_loader(fullname, self, is_package=not rest)
        if package == "containernet":
            if rest not in ("", "net", "node", "link", "cli", "term"):
                raise Unsupported(f"import {fullname}", "that module of Containernet has no counterpart here")
            return importlib.util.spec_from_loader(fullname, self, is_package=not rest)
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
        package, _, rest = spec.name.partition(".")
        if package == "mn_wifi":
            return importlib.import_module(f"{WIRELESS}.{rest}" if rest else WIRELESS)
        if package == "containernet" and rest not in ("net", "node"):
            return importlib.import_module(f"{_HERE}.{rest}" if rest else _HERE)
        if rest == "examples":
            return ModuleType(spec.name)
        if rest.startswith("examples."):  # another script in the folder of the running script
            return importlib.import_module(rest.partition(".")[2])
        module = importlib.import_module(f"{_HERE}.{rest}" if rest else _HERE)
        if rest in ADDED:
            module.__dict__.setdefault("__getattr__", partial(_added, rest))
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Does nothing: the module was executed under its own name."""


def install() -> None:
    """Maps ``mininet`` and its extensions from now on, even where Mininet is installed."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        for name in [
            name for name in sys.modules if name.partition(".")[0] in ("mininet", "mn_wifi", "containernet")
        ]:
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
