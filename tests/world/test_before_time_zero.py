"""Devices of guests are served from their boot to the end of the run, also before time zero."""

from __future__ import annotations

import pytest

from airloom import Scenario
from airloom.planning.gate import check
from airloom.runs.emulation import World
from helpers.kernels import BUILT, needs_built

pytestmark = [pytest.mark.world, needs_built]

AGAIN = "cd /sys/bus/virtio/drivers/virtio_net && echo virtio0 > unbind && echo virtio0 > bind && echo served"
"""The driver sets its device up anew, for which the guest's kernel waits for the device's answers."""


def test_a_guest_speaks_with_its_devices_before_time_zero() -> None:
    nodes = {"a": {"kind": "uml", "guest": {"kernel": str(BUILT)}}, "b": {}}
    scenario = Scenario.model_validate({"name": "early", "nodes": nodes, "links": [{"ends": ["a", "b"]}]})
    with World(check(scenario).plans[0]) as world:
        said = world.nodes["a"].exec(["sh", "-c", AGAIN], timeout=20)
        assert said.stdout == "served\n", said.stderr
        world.begin()
