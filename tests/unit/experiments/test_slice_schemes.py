"""Ways to divide the spectrum between two slices: each pair of them in one grant, in stepped time.

In each row both slices have the same of one scheme, and the other scheme divides. Nothing else does, so
the coupling of the two shows whether the pair of schemes holds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from airloom.experiments.slice_coupling import Coupling, pairs
from airloom.planning.gate import check
from airloom.planning.plan import Plan
from airloom.planning.radio.interference import disturbances

pytest.importorskip("airloom._engine")

CHANNELS = [36, 44, 52]
SET = {"channels": CHANNELS}
HOP = {"hops": {"set": "A", "sequence": 1}, "channels": CHANNELS}
CHANNEL, OTHER = {"channels": [36]}, {"channels": [44]}
SLOT, NEXT = {"slots": [0]}, {"slots": [1]}
CODE, SECOND = {"code": 1}, {"code": 2}
WEIGHT, TWICE = {"airtime_weight": 1}, {"airtime_weight": 2}
NEAR, FAR = ["n1", "n2"], ["n3", "n4"]


def plan_of(tmp_path: Path, one: dict[str, Any], two: dict[str, Any], nodes: list[str], apart: int) -> Plan:
    """Two slices with these grants, the second one on ``nodes``, of which n3 and n4 are ``apart`` metres."""
    medium: dict[str, Any] = {
        "propagation": {"model": "log-distance"},
        "radio": {"rate": "24 Mbit/s", "buffers": 50, "queue": 50},
        "hops": {"dwell": "20 ms", "switch": "1 ms", "sets": {"A": SET}},
        "slots": {"frame": 2, "length": "20 ms", "guard": "100 us"},
    }
    if "code" in one:
        medium["codes"] = {"spreading": 4, "synchronous": True}
    places = {"n1": (0, 0), "n2": (0, 1), "n3": (apart, 0), "n4": (apart, 1)}
    grants = {"one": {"nodes": NEAR, **one}, "two": {"nodes": nodes, **two}}
    flow = {"rate": "20 Mbit/s", "size": "1470 B"}
    said = {
        "name": "schemes",
        "media": {"air": medium},
        "nodes": {
            name: {"position": [f"{x} m", f"{y} m"], "radios": {"wlan0": {}, "wlan1": {}}}
            for name, (x, y) in places.items()
        },
        "slices": {name: {"grant": grant} for name, grant in grants.items()},
        "measurements": [
            {"name": name, "traffic": {"from": f"{ends[0]}-{name}", "to": f"{ends[1]}-{name}", **flow}}
            for name, ends in (("one", NEAR), ("two", nodes))
        ],
    }
    file = tmp_path / "schemes.yaml"
    file.write_text(yaml.safe_dump(said))
    return check(file).plans[0]


def found(plan: Plan) -> dict[str, Coupling]:
    return {one.slice: one for one in pairs(plan, runs=2, span=1_200_000_000)}


ORTHOGONAL = {
    "sdm-fdm": (CHANNEL, CHANNEL, FAR),
    "sdm-tdm": (CHANNEL | SLOT, CHANNEL | SLOT, FAR),
    "sdm-cdm": (CHANNEL | CODE, CHANNEL | CODE, FAR),
    "sdm-fh": (HOP, HOP, FAR),
    "fdm-tdm": (CHANNEL | SLOT, OTHER | SLOT, NEAR),
    "fdm-cdm": (CHANNEL | CODE, OTHER | CODE, NEAR),
    "fdm-fh": (HOP, {"channels": [60]}, NEAR),
    "tdm-cdm": (CHANNEL | SLOT | CODE, CHANNEL | NEXT | CODE, NEAR),
    "cdm-tdm": (CHANNEL | SLOT | CODE, CHANNEL | SLOT | SECOND, NEAR),
    "tdm-fh": (HOP | SLOT, HOP | NEXT, NEAR),
    "fh-tdm": (HOP | SLOT, HOP | {"hops": {"set": "A", "sequence": 2}} | SLOT, NEAR),
    "cdm-fh": (HOP | CODE, HOP | SECOND, NEAR),
    "fh-cdm": (HOP | CODE, HOP | {"hops": {"set": "A", "sequence": 2}} | CODE, NEAR),
}


@pytest.mark.parametrize("row", ORTHOGONAL)
def test_what_one_scheme_divides_the_other_may_share(tmp_path: Path, row: str) -> None:
    one, two, nodes = ORTHOGONAL[row]
    for each in found(plan_of(tmp_path, one, two, nodes, apart=3_000)).values():
        assert len(each.coupling) == 2, "it carries traffic alone"
        assert each.coupling == each.loss == (0, 0), each


@pytest.mark.parametrize("row", ["sdm-fdm", "sdm-tdm", "sdm-cdm", "sdm-fh"])
def test_nodes_that_are_not_apart_share_what_is_equal_and_the_check_says_so(tmp_path: Path, row: str) -> None:
    one, two, nodes = ORTHOGONAL[row]
    plan = plan_of(tmp_path, one, two, nodes, apart=3)
    assert {(each.source, each.victim) for each in disturbances(plan)} == {("one", "two"), ("two", "one")}
    for each in found(plan).values():
        assert sum(each.coupling) / 2 == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize(
    ("more", "nodes"),
    [(CHANNEL, NEAR), (CHANNEL | SLOT, NEAR), (CHANNEL | CODE, NEAR), (HOP, NEAR), (HOP, FAR)],
    ids=["one-channel", "tdm", "cdm", "fh", "fh-nodes"],
)
def test_weights_divide_what_other_schemes_share(
    tmp_path: Path, more: dict[str, Any], nodes: list[str]
) -> None:
    both = found(plan_of(tmp_path, more | WEIGHT, more | TWICE, nodes, apart=3))
    # Both load the channel fully and send frames of one length: shares of throughput are those of airtime.
    left = {name: 1 - sum(each.coupling) / 2 for name, each in both.items()}
    assert left["two"] / left["one"] == pytest.approx(2, rel=0.1)
    assert left["one"] + left["two"] == pytest.approx(1, abs=0.1)
