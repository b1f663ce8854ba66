"""A network that a GENI request describes, measured."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import airloom
from airloom.errors import HostError
from airloom.grid import require

try:
    require()
except HostError as error:
    pytest.skip(str(error), allow_module_level=True)

from airloom.grid.rspec.convert import scenario_of
from airloom.grid.rspec.document import read
from helpers import REPOSITORY

pytestmark = [pytest.mark.world, pytest.mark.timeout(120)]


@pytest.mark.measures
def test_the_links_of_a_request_have_its_properties(tmp_path: Path) -> None:
    octets = (REPOSITORY / "examples" / "grid" / "two-lans.rspec").read_bytes()
    scenario, notes = scenario_of(read(octets, "two-lans.rspec"), "two-lans", {})
    assert notes == []
    with airloom.Lab(scenario, out=tmp_path / "r") as lab:
        near = lab["a1"].run("ping -c 5 -i 0.2 a2").stdout
        far = lab["a1"].run("ping -c 10 -i 0.2 10.2.0.1").stdout
    least = [float(re.search(r"min/avg/max/mdev = ([0-9.]+)/", text)[1]) for text in (near, far)]
    assert least[0] < 10
    # 20 ms each way, and 98 octets of Ethernet with 24 more at 10 Mbit/s: 0.098 ms each way.
    assert 40.19 < least[1] < 45
