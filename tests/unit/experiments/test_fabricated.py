"""Every claim of every shipped experiment holds of one fabricated result and fails of another."""

from __future__ import annotations

import contextlib
import functools
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from airloom.experiments import capacity_search, registry
from airloom.experiments.campaign import Campaign
from airloom.experiments.extent import Extent
from airloom.experiments.net_chain import ideal, kinds, wired
from airloom.results import Ledger, Verdict
from helpers import fabricated

pytest.importorskip("airloom._engine")

Outcomes = Mapping[str, str]
FAILS = {"fails", "implausible-in-source"}
IN_FULL = ("orbit-udp-load", "orbit-coupling", "net-kinds-wired", "net-kinds-wireless")
"""Whose quick form lacks a claim, or length."""
CHOICES = {"orbit-kinds": ("netns", "uml", "qemu")}


def _outcomes(name: str, extent: Extent, **choices: Any) -> Outcomes:
    with tempfile.TemporaryDirectory() as place:
        run = registry.find(name).load()
        result = run(Path(place) / "out", extent=extent, progress=lambda _: None, **choices)
    return {one.id: one.outcome for one in result.claims if not one.id.startswith("published-")}


@contextlib.contextmanager
def _measuring(world: fabricated.World, runs: int, valid: bool) -> Iterator[None]:
    def measure(self: Campaign, cases: Any, read: Any, repetitions: Any) -> Any:
        for case in cases:
            for number in range(runs):
                spread = 1 + 1e-5 * (number - runs // 2)
                figures = {key: (value * spread, unit) for key, (value, unit) in world(case.labels).items()}
                self.found.add(case.labels, figures, valid=valid)
        return self.found

    with mock.patch.object(Campaign, "measure", measure), mock.patch.object(Campaign, "reader"):
        Campaign.reader.return_value = None  # type: ignore[attr-defined]
        yield


def _campaign(name: str, world: fabricated.World, runs: int = 3, *, valid: bool = True) -> Outcomes:
    extent = Extent.FULL if name in IN_FULL else Extent.QUICK
    run: Any = registry.find(name).load()
    with _measuring(world, runs, valid), contextlib.ExitStack() as stack:
        if name == "orbit-rtp-video":
            video = run.__globals__["video"]
            stack.enter_context(mock.patch.object(video, "need_ffmpeg"))
            stack.enter_context(mock.patch.object(registry, "beside", return_value=video))
        return _outcomes(name, extent, kinds=CHOICES.get(name, ("netns",)))


def _no_runs(stack: contextlib.ExitStack) -> None:
    nothing = mock.patch.object(capacity_search, "whole", return_value=(Verdict(), Ledger()))
    stack.enter_context(nothing)


def _module(name: str, **changed: Any) -> Any:
    """The experiment with some of its functions replaced."""
    run: Any = registry.find(name).load()
    run.__globals__.update(changed)
    return mock.patch.object(registry.Experiment, "load", return_value=run)


def _kinds(name: str, limits: Mapping[str, tuple[int, int]], good: bool) -> Outcomes:
    def on_wire(folder: Path, nodes: int, kind: str, *_: Any) -> Any:
        rtt = fabricated.wired_rtt(kind, nodes, good)
        return fabricated.chain(limits[kind], nodes, rtt, wired.IDEAL_THROUGHPUT)

    def on_air(folder: Path, nodes: int, kind: str, *_: Any) -> Any:
        return fabricated.chain(limits[kind], nodes, fabricated.wireless_rtt(nodes, good), ideal.THROUGHPUT)

    with contextlib.ExitStack() as stack:
        _no_runs(stack)
        lengths = [SimpleNamespace(nodes=nodes) for nodes in range(2, 113)]
        stack.enter_context(mock.patch.object(capacity_search, "readers", return_value=lengths))
        stack.enter_context(mock.patch.object(kinds, "_chain", lambda reader, _: reader.nodes))
        stack.enter_context(mock.patch.object(kinds, "_busy", return_value=0.95 if good else 0.1))
        stack.enter_context(mock.patch.object(wired, "measure", on_wire))
        stack.enter_context(_module(name, **({"_measure": on_air} if name.endswith("wireless") else {})))
        return _outcomes(name, Extent.FULL, kinds=tuple(limits))


def _wired_chain(limit: int, rtt: float, rate: float) -> Outcomes:
    def measure(folder: Path, nodes: int, kind: str, *_: Any) -> wired.Point:
        return fabricated.wired_point(nodes, kind, limit, rtt, rate)

    with contextlib.ExitStack() as stack:
        _no_runs(stack)
        stack.enter_context(mock.patch.object(wired, "measure", measure))
        return _outcomes("net-wired-chain", Extent.FULL)


def _wireless_chain(number: int) -> Outcomes:
    name = "net-wireless-chain"
    point = registry.find(name).load().__globals__["Point"]
    changed = {
        "_staircase": lambda *_: (fabricated.stairs(number), True),
        "_measure": lambda folder, one, seconds: fabricated.air_point(number, one, point),
    }
    with contextlib.ExitStack() as stack:
        _no_runs(stack)
        stack.enter_context(_module(name, **changed))
        stack.enter_context(mock.patch("shutil.which", return_value="/usr/bin/babeld"))
        return _outcomes(name, Extent.FULL)


def _mtu(number: int) -> Outcomes:
    judge = registry.find("mtu-study").load().__globals__["_claims"]
    return {one.id: one.outcome for one in judge(fabricated.mtu_series(number))}


WORLDS: dict[str, list[Any]] = {
    **{
        name: [functools.partial(_campaign, name, world) for world in worlds]
        for name, worlds in fabricated.CAMPAIGNS.items()
    },
    **{
        name: [functools.partial(_kinds, name, *world) for world in fabricated.KINDS]
        for name in ("net-kinds-wired", "net-kinds-wireless")
    },
    "net-wired-chain": [functools.partial(_wired_chain, *world) for world in fabricated.WIRED_CHAINS],
    "net-wireless-chain": [functools.partial(_wireless_chain, number) for number in range(3)],
    "mtu-study": [functools.partial(_mtu, number) for number in range(2)],
}


def test_every_experiment_has_fabricated_results() -> None:
    assert set(WORLDS) == set(registry.discover())


@pytest.mark.parametrize("name", sorted(WORLDS))
def test_each_claim_holds_of_one_result_and_fails_of_another(name: str) -> None:
    seen: dict[str, set[str]] = {}
    for world in WORLDS[name]:
        for claim, outcome in world().items():
            seen.setdefault(claim, set()).add(outcome)
    assert seen
    assert not {claim: outcomes for claim, outcomes in seen.items() if "holds" not in outcomes}
    assert not {claim: outcomes for claim, outcomes in seen.items() if not outcomes & FAILS}


@pytest.mark.parametrize("name", ["orbit-udp-rate", "orbit-cpu"])
def test_one_repetition_decides_nothing(name: str) -> None:
    for world in fabricated.CAMPAIGNS[name]:
        assert set(_campaign(name, world, 1).values()) == {"undecided"}


@pytest.mark.parametrize(
    ("name", "flooding"),
    [("orbit-udp-payload", {"ceiling-netns", "ceiling-total-netns"}), ("orbit-queues", set())],
)
def test_invalid_runs_enter_only_claims_that_flood_on_purpose(name: str, flooding: set[str]) -> None:
    found = _campaign(name, fabricated.CAMPAIGNS[name][0], valid=False)
    assert {claim for claim, outcome in found.items() if outcome != "undecided"} == flooding


@pytest.mark.parametrize("share", [0.98, 1.02, 1.5])
def test_a_share_of_losses_beyond_one_is_no_proof_of_their_place(share: float) -> None:
    found = _campaign("orbit-queues", lambda of: fabricated.queues(of, share, contrary=False))
    assert found["place-netns"] == "fails"


def test_a_search_that_ends_before_a_deviation_decides_no_direction() -> None:
    """Both directions good to the end of the ladder: neither is known to hold longer."""
    found = _kinds("net-kinds-wired", {"netns": (500, 500)}, True)
    assert found["direction-netns"] == "undecided"
    assert found["first-netns"] == "holds"
    assert found["cpu-netns"] == "undecided"
