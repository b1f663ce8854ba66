"""Which kernel guests of User Mode Linux have by default, and on which processors a kernel runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from airloom.errors import HostError
from airloom.host import machine, programs
from airloom.nodes.kinds import uml


def _kernel(path: Path, release: str, says: str = "") -> Path:
    """A program that has a text in it and prints a release, as a kernel does."""
    path.write_bytes(b"\x7fELF" + says.encode())
    RELEASES[path] = release
    return path


RELEASES: dict[Path, str] = {}
ABLE = "This kernel runs on processors whose registers take up to 16384 octets."


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """The kernels of the distribution and of `kernel/build`, on a processor with AMX."""
    kernels = {
        uml.PROGRAM: _kernel(tmp_path / "distribution", "6.1.176"),
        "built": _kernel(tmp_path / "built", "6.12.117", ABLE),
    }
    monkeypatch.setattr(uml, "built", lambda: Path("built"))
    monkeypatch.setattr(programs, "find", lambda name: str(kernels[name]) if name in kernels else None)
    monkeypatch.setattr(machine, "processor_features", lambda: frozenset({"fpu", "amx_tile"}))
    monkeypatch.setattr(uml, "release_of", lambda kernel: RELEASES[kernel])
    return kernels


def test_a_processor_with_amx_has_the_built_kernel_by_default(found: dict[str, Path]) -> None:
    assert uml.kernel_of(None) == found["built"]
    assert uml.UmlKind.lacks() == []


def test_other_processors_have_the_distributions(
    found: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "processor_features", lambda: frozenset({"fpu"}))
    assert uml.kernel_of(None) == found[uml.PROGRAM]
    assert uml.UmlKind.lacks() == []


def test_a_kernel_that_cannot_run_there_is_refused_with_the_cure(found: dict[str, Path]) -> None:
    found.pop("built")
    (error,) = uml.UmlKind.lacks()
    assert error.code == "host.uml-registers"
    assert str(found[uml.PROGRAM]) in error.message
    assert "AMX" in error.message
    assert error.cure == "build one that can: airloom kernel build"


def test_a_kernel_of_an_older_build_is_refused(found: dict[str, Path], tmp_path: Path) -> None:
    older = _kernel(tmp_path / "older", "6.12.117")
    with pytest.raises(HostError, match="AMX"):
        uml.require_registers(older)


@pytest.mark.parametrize("release", ["6.13.0-rc1", "6.14.2", "7.0.1"])
def test_later_kernels_keep_all_registers(found: dict[str, Path], tmp_path: Path, release: str) -> None:
    uml.require_registers(_kernel(tmp_path / release, release))


def test_of_a_script_that_starts_a_kernel_nothing_is_known(found: dict[str, Path], tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\nexec linux.uml\n")
    RELEASES[script] = "6.1.176"
    uml.require_registers(script)


def test_a_program_that_is_no_kernel_keeps_its_own_error(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    with pytest.raises(HostError, match="no User Mode Linux kernel"):
        uml.require_registers(program)


def test_this_machines_processor_has_features() -> None:
    assert machine.processor_features()
