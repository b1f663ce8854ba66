"""FRR's pimd routes multicast between namespaces and between guests.

Who joins gets the packets, who leaves no longer.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

import airloom
from airloom import Scenario
from airloom.planning.routing.frr import FOLDER
from helpers.kernels import BUILT, needs_option
from helpers.nodes import eventually

pytestmark = [
    pytest.mark.world,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not os.access(f"{FOLDER}/pimd", os.X_OK), reason="FRR's pimd is not installed"),
]

EXAMPLE = Path(__file__).parents[2] / "examples" / "multicast.yaml"
PACKET = 542
"""Octets of a frame of the sender."""
MANY = 40 * PACKET
FEW = 10 * PACKET
"""More than what the daemons say on a link while the sender sends that much."""


ON_THIS_KERNEL = pytest.mark.skipif(
    not Path("/proc/net/ip_mr_vif").exists(), reason="the kernel lacks CONFIG_IP_MROUTE"
)
KINDS = [
    pytest.param({}, marks=ON_THIS_KERNEL, id="netns"),
    pytest.param(
        {"kind": "uml", "guest": {"kernel": str(BUILT)}},
        marks=needs_option("CONFIG_IP_MROUTE", b"ip_mr_vif"),
        id="uml",
    ),
]


@pytest.mark.parametrize("kind", KINDS)
def test_a_host_gets_what_it_joined_until_it_leaves(tmp_path: Path, kind: dict[str, Any]) -> None:
    raw = yaml.safe_load(EXAMPLE.read_text()) | kind
    joining = next(one for one in raw["programs"] if one["name"] == "receiver")
    raw["programs"].remove(joining)
    with airloom.Lab(Scenario.model_validate(raw), out=tmp_path / "out") as up:
        assert not _groups(up["r3"]), "nobody has joined"
        sent, came = _sent(up, "s", "r1"), _sent(up, "r3", "h")
        eventually(lambda: _sent(up, "s", "r1") >= sent + MANY, "the sender sends")
        assert _sent(up, "r3", "h") - came < FEW, "without a member nothing comes"

        receiver = up["h"].start(["sh", "-c", joining["run"]], name="receiver")
        assert receiver.wait(120) == 0, receiver.output
        numbers = [int(word) for word in receiver.output.strip("[]\n").split(",")]
        assert numbers == list(range(numbers[0], numbers[0] + 20)), "each once, in order"

        # The end of the program leaves the group; its router asks twice, a second apart.
        eventually(lambda: not _groups(up["r3"]), "the group is left", 120)
        sent, came = _sent(up, "s", "r1"), _sent(up, "r3", "h")
        eventually(lambda: _sent(up, "s", "r1") >= sent + MANY, "the sender sends")
        assert _sent(up, "r3", "h") - came < FEW, "what nobody wants is pruned"


def _sent(up: airloom.Lab, near: str, far: str) -> int:
    """Octets that a link has carried from its first end."""
    return up.link(near, far).load().sent_octets


def _groups(node: airloom.lab.LiveNode) -> bool:
    """Whether the router forwards the group to its members."""
    return "Oifs: eth1" in node.run("ip mroute show").stdout
