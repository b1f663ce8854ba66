"""What is said where the regulatory database is not installed."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airloom.nodes import doctor
from airloom.nodes.guests import initramfs
from airloom.nodes.kinds.uml import UmlKind

WIRELESS: Any = SimpleNamespace(interfaces=(SimpleNamespace(wlan=1),))
WIRED: Any = SimpleNamespace(interfaces=(SimpleNamespace(wlan=None),))


@pytest.fixture(params=[True, False], ids=["installed", "missing"])
def installed(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    file = tmp_path / "regulatory.db"
    if request.param:
        file.touch()
    monkeypatch.setattr(initramfs, "_REGULATORY", (str(file),))
    return bool(request.param)


def test_guests_with_radios_have_a_note(installed: bool) -> None:
    kind = UmlKind(SimpleNamespace())  # type: ignore[arg-type]
    kind._note_regulatory([WIRED])
    assert kind.notes == []
    kind._note_regulatory([WIRED, WIRELESS])
    kind._note_regulatory([WIRELESS])
    assert kind.notes == ([] if installed else [initramfs.WITHOUT_REGULATORY])


def test_doctor_names_the_package(installed: bool) -> None:
    found = doctor._regulatory()
    assert found.ok == installed
    assert found.cure == "sudo apt-get install wireless-regdb"
