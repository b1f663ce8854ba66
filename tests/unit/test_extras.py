"""What works without the packages of extras, and what is said of those that are missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from airloom import extras
from airloom.errors import HostError
from helpers import REPOSITORY, fake_results

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

WITHOUT = """
import sys
from importlib.machinery import PathFinder
without = sys.argv.pop(1).split(",")
class Finder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in without else PathFinder.find_spec(name, path, target)
sys.meta_path[sys.meta_path.index(PathFinder)] = Finder
from airloom.cli import main
sys.exit(main())
"""
"""The command, in an interpreter that cannot import some packages."""


def airloom(without: tuple[str, ...], *words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT, ",".join((*without, "scipy")), *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)


def test_a_scenario_is_checked_without_any_extra(tmp_path: Path) -> None:
    everything = tuple({name for packages in extras.PACKAGES.values() for name in packages})
    done = airloom(everything, "check", str(REPOSITORY / "examples/chain.yaml"), folder=tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_report_without_its_packages_names_the_extra(tmp_path: Path) -> None:
    fake_results.run(tmp_path / "run")
    done = airloom(("networkx", "pandas"), "report", "run", folder=tmp_path)
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert ": networkx, pandas (pip install 'airloom[report]') [host.packages]" in done.stderr


def test_a_file_of_a_graph_without_networkx_names_the_extra(tmp_path: Path) -> None:
    (tmp_path / "net.gml").write_text("graph [ node [ id 0 ] node [ id 1 ] edge [ source 0 target 1 ] ]\n")
    (tmp_path / "net.yaml").write_text("name: net\ntopology: {generator: graph, file: net.gml}\n")
    done = airloom(("networkx",), "check", "net.yaml", folder=tmp_path)
    assert done.returncode == 3
    assert "networkx (pip install 'airloom[report]') [host.packages]" in done.stderr


def test_a_module_of_no_extra_is_not_explained() -> None:
    assert extras.error_of("pandas.core") is not None
    assert extras.error_of("nowhere") is None
    assert extras.error_of(None) is None


def test_required_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    extras.require("report")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(HostError, match=r"plots.*: matplotlib .*airloom\[report\]"):
        extras.require("report")
