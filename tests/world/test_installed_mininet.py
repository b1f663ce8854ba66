"""The installed Mininet as a peer: it runs by itself, and its link is what the study says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from airloom.bench.peers import installed_mininet
from airloom.errors import HostError
from airloom.host import binaries
from airloom.measure import flow, records

pytestmark = [
    pytest.mark.world,
    pytest.mark.skipif(os.geteuid() != 0, reason="Mininet needs root"),
]
installed = pytest.mark.skipif(
    installed_mininet.python() is None, reason=f"no Mininet: {installed_mininet.CURE}"
)


@installed
def test_both_run_the_same_script(tmp_path: Path) -> None:
    for side in (installed_mininet.on_mininet, installed_mininet.on_airloom):
        said = side("standing", 3)
        assert said["answered"]
        assert said["up"] > 0


@installed
def test_a_flow_over_its_link_is_recorded_at_both_ends_and_leaves_nothing(tmp_path: Path) -> None:
    before = set(os.listdir("/sys/class/net"))
    words = ["--frame", "1518 B", "--rate", "100 Mbit/s", "--rate-of", "frame", "--duration", "0.3 s"]
    installed_mininet.on_mininet(
        "stream", binaries.find("airloom-traffic"), 10, 1500, tmp_path, "ipv6", *words
    )
    reading = flow.join(*(records.read(tmp_path / f"{end}.rec") for end in ("sender", "receiver")))
    assert reading.received > 100
    assert set(os.listdir("/sys/class/net")) == before


def test_a_machine_without_it_is_told_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed_mininet, "python", lambda: None)
    with pytest.raises(HostError, match=r"Mininet is not installed .*apt-get install mininet"):
        installed_mininet.required()
