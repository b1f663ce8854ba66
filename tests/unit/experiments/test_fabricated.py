"""Every claim of every shipped experiment holds of one fabricated result and fails of another."""

from __future__ import annotations

import contextlib
import functools
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from airloom.bench.peers import installed_mininet
from airloom.errors import HostError
from airloom.experiments import orbit, registry
from airloom.experiments.campaign import Asked, Campaign, Case
from airloom.experiments.extent import Extent
from airloom.report import figures
from airloom.scenario.model import Scenario
from helpers import fabricated

pytestmark = pytest.mark.slow

pytest.importorskip("airloom._engine")

Outcomes = Mapping[str, str]
_ANY = Asked(Case("any", {}, Scenario(name="any", nodes={"h1": {}}), 1.0), lambda *_: {})
FAILS = {"fails", "implausible-in-source"}
CHAINS = ("net-wired-chain", "net-wireless-chain", "net-kinds-wired", "net-kinds-wireless")
IN_FULL = (
    "orbit-file-transfer",
    "orbit-udp-load",
    "orbit-queues",
    "orbit-coupling",
    "mtu-study",
    "mtu-video",
    "net-virtual-time",
    "wall-vs-virtual",
    "orbit-processor",
    *CHAINS,
)
"""Whose quick form lacks a claim, or length."""
ALL = ("netns", "uml", "qemu")
CHOICES = {"orbit-kinds": ALL, "net-kinds-wired": ALL, "net-kinds-wireless": ALL}
VWIFI = (
    "vwifi-coalescing",
    "vwifi-cpu",
    "vwifi-latency",
    "vwifi-scan",
    "vwifi-throughput",
    "vwifi-translation",
    "vwifi-two-networks",
)
MTU = ("mtu-study", "mtu-topologies", "mtu-guarantee", "mtu-video")
NO_CHOICE = (
    "net-wired-chain",
    "net-wireless-chain",
    "net-virtual-time",
    "wall-vs-virtual",
    "orbit-processor",
    *MTU,
    *VWIFI,
)


def _outcomes(name: str, extent: Extent, **choices: Any) -> Outcomes:
    with tempfile.TemporaryDirectory() as place:
        run = registry.find(name).load()
        result = run(Path(place) / "out", extent=extent, progress=lambda _: None, **choices)
    return {one.id: one.outcome for one in result.claims if not one.id.startswith("published-")}


@contextlib.contextmanager
def _measuring(world: fabricated.World, runs: int, valid: bool) -> Iterator[None]:
    def repeat(self: Campaign, cases: Any, read: Any, repetitions: Any, *, optional: bool = False) -> Any:
        for labels in (one for case in cases for one in fabricated.labels_of(case.labels)):
            # Two cases of the same labels, such as a chain with delay and without, give different figures.
            new = {key: one for key, one in world(labels).items() if not self.found.all(key, **labels)}
            for number in range(runs):
                spread = 1 - 1e-5 * number
                figures = {key: (value * spread, unit) for key, (value, unit) in new.items()}
                self.found.add(labels, figures, valid=valid)
        return self.found

    with mock.patch.object(Campaign, "repeat", repeat), mock.patch.object(Campaign, "reader"):
        Campaign.reader.return_value = None  # type: ignore[attr-defined]
        yield


def _few_packets(stack: contextlib.ExitStack, run: Any) -> None:
    """Without the fit of equipment, which takes seconds."""
    equipment = run.__globals__["equipment"]
    wire = equipment.Model("none", 0.0, 0.0)
    simulate = equipment.simulate
    fits = [equipment.Fit(link, wire, 1.0) for link in (10, 100)]
    stack.enter_context(mock.patch.object(equipment, "fit", return_value=fits))
    stack.enter_context(mock.patch.object(equipment, "simulate", lambda case, *_: simulate(case, wire, 30)))
    stack.enter_context(mock.patch.object(registry.Experiment, "load", return_value=run))


def _campaign(name: str, world: fabricated.World, runs: int = 3, *, valid: bool = True) -> Outcomes:
    extent = Extent.FULL if name in IN_FULL else Extent.QUICK
    run: Any = registry.find(name).load()
    with _measuring(world, runs, valid), contextlib.ExitStack() as stack:
        if name in ("orbit-rtp-video", "mtu-video"):
            stack.enter_context(mock.patch("airloom.experiments.video.need_ffmpeg"))
        if name == "mtu-study":
            _few_packets(stack, run)
        if name in MTU:
            stack.enter_context(mock.patch.object(installed_mininet, "lacks", return_value=""))
        if name in VWIFI:
            stack.enter_context(mock.patch("airloom.experiments.vwifi.need_programs"))
        if name == "wall-vs-virtual":
            stack.enter_context(mock.patch("airloom.experiments.both_times.point", return_value=_ANY))
        if name == "net-wireless-chain":
            stack.enter_context(mock.patch("shutil.which", return_value="/usr/bin/babeld"))
        chosen = {} if name in NO_CHOICE else {"kinds": CHOICES.get(name, ("netns",))}
        return _outcomes(name, extent, **chosen)


WORLDS: dict[str, list[Any]] = {
    **{
        name: [functools.partial(_campaign, name, world) for world in worlds]
        for name, worlds in fabricated.CAMPAIGNS.items()
    },
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


def test_a_file_of_another_size_hides_no_line_of_a_figure(tmp_path: Path) -> None:
    with _measuring(fabricated.CAMPAIGNS["orbit-file-transfer"][0], 3, valid=True):
        run = registry.find("orbit-file-transfer").load()
        run(tmp_path / "out", extent=Extent.FULL, progress=lambda _: None, kinds=("netns",))
    lines = [line for one in figures.load(tmp_path / "out") for line in one.lines]
    assert lines
    assert [line.label for line in lines if None in line.y] == []


@pytest.mark.parametrize("name", ["orbit-udp-rate", "orbit-cpu"])
def test_one_repetition_decides_nothing(name: str) -> None:
    for world in fabricated.CAMPAIGNS[name]:
        assert set(_campaign(name, world, 1).values()) == {"undecided"}


PAYLOAD_FLOODS = {
    *("ceiling-netns", "ceiling-total-netns"),
    *(f"{claim}-uml-one-processor" for claim in ("small", "faster", "air-32000")),
}


@pytest.mark.parametrize(
    ("name", "flooding"), [("orbit-udp-payload", PAYLOAD_FLOODS), ("orbit-queues", set())]
)
def test_invalid_runs_enter_only_claims_that_flood_on_purpose(name: str, flooding: set[str]) -> None:
    with mock.patch.object(orbit, "has_theirs", return_value=True):
        found = _campaign(name, fabricated.CAMPAIGNS[name][0], valid=False)
    assert {claim for claim, outcome in found.items() if outcome != "undecided"} == flooding


@pytest.mark.parametrize("share", [0.98, 1.02, 1.5])
def test_a_share_of_losses_beyond_one_is_no_proof_of_their_place(share: float) -> None:
    found = _campaign("orbit-queues", lambda of: fabricated.queues(of, share, contrary=False))
    assert found["place-netns"] == "fails"


def _wired(limits: tuple[int, int], runs: int = 3, **more: Any) -> Outcomes:
    of = dict.fromkeys(ALL, limits)
    world = functools.partial(fabricated.CAMPAIGNS["net-kinds-wired"][0].func, limits=of, good=True)
    return _campaign("net-kinds-wired", world, runs, **more)


def test_a_search_that_ends_before_a_deviation_decides_no_direction() -> None:
    """Both directions good to the end of the ladder: neither is known to hold longer."""
    found = _wired((500, 500))
    assert found["direction-netns"] == "undecided"
    assert found["first-netns"] == "holds-in-shape"
    assert found["cpu-netns"] == "undecided"


@pytest.mark.parametrize(
    ("limits", "first", "direction"),
    [
        ((12, 40), "holds", "holds"),
        ((30, 30), "holds-in-shape", "fails"),
        ((5, 5), "fails", "fails"),
        ((12, 11), "holds", "fails"),
    ],
)
def test_the_first_deviation_and_the_directions_are_judged_both_ways(
    limits: tuple[int, int], first: str, direction: str
) -> None:
    found = _wired(limits)
    assert (found["first-netns"], found["direction-netns"]) == (first, direction)


@pytest.mark.parametrize("name", CHAINS)
def test_one_run_of_each_chain_decides_nothing(name: str) -> None:
    assert set(_campaign(name, fabricated.CAMPAIGNS[name][0], 1).values()) == {"undecided"}


@pytest.mark.parametrize(("rtt", "outcome"), [(1.01, "holds"), (1.05, "holds-in-shape"), (0.85, "fails")])
def test_times_are_judged_on_chains_that_do_not_carry_tcp_too(rtt: float, outcome: str) -> None:
    """A chain is not left out of the claim because its TCP deviates, and links may not lack delay."""
    world = functools.partial(fabricated.wired_chain, limit=4, rtt=1.0, rate=1.0)

    def slow_when_long(of: Mapping[str, Any]) -> Any:
        return world(of) if of["nodes"] <= 4 else fabricated.wired_chain(of, 4, rtt, 1.0)

    assert _campaign("net-wired-chain", slow_when_long)["time"] == outcome


@pytest.mark.parametrize("name", VWIFI)
def test_missing_programs_of_guests_are_named(name: str, tmp_path: Path) -> None:
    with (
        mock.patch("airloom.host.programs.find", return_value=None),
        pytest.raises(HostError, match="not installed: iw, wpa_supplicant"),
    ):
        registry.find(name).load()(tmp_path / "out", extent=Extent.SMOKE, progress=lambda _: None)
