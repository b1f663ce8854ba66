"""Campaigns on invented runs: what is gathered, which outcome a claim has, what is said of failures."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from airloom.errors import HostError, RunError
from airloom.experiments import campaign as campaigns
from airloom.experiments import capacity_search, orbit, outside, usable_kinds
from airloom.experiments import paper as published
from airloom.experiments.campaign import Campaign, Case
from airloom.experiments.extent import Extent
from airloom.experiments.found import Bounded, Found, Largest, Sample
from airloom.experiments.net_chain import kinds
from airloom.experiments.repetitions import Repetitions
from airloom.report import figures
from airloom.results import Ledger, RunReader, RunWriter, Verdict
from airloom.scenario.model import Scenario

PAPER = """\
id,says,figure,line,x,value,unit,source,flag,reason,needs
ten,ten times,ratio,paper,1,10,1,E-1,,,
doubt,ten again,,,,10,1,E-1,D-5,eleven elsewhere,
wrong,80000 packets/s,,,,80000,packets/s,E-2,P-1,not on the air,1e6 / 80000 >= 20
slip,3 of 2,,,,3,,E-3,D-13,a slip,3 <= 2
"""


def campaign(tmp_path: Path, said: list[str] | None = None) -> Campaign:
    (tmp_path / "paper.csv").write_text(PAPER)
    paper = published.read(tmp_path / "paper.csv")
    progress = (said if said is not None else []).append
    return Campaign("made", tmp_path / "out", paper=paper, progress=progress, kinds=("netns",))


def reader(seed: int, status: str = "valid") -> Any:
    return SimpleNamespace(seed=seed, result=SimpleNamespace(verdict=SimpleNamespace(status=status)))


def cases(*names: str) -> list[Case]:
    scenario = Scenario.model_validate({"name": "made", "nodes": {"a": {}}})
    return [Case(name, {"platform": name}, scenario, 2.0) for name in names]


@pytest.mark.parametrize(
    ("check", "shape", "says", "outcome"),
    [
        ("x >= 8", None, "ten", "holds"),
        ("x >= 12", "x >= 2", "ten", "holds-in-shape"),
        ("x >= 12", "x >= 11", "ten", "fails"),
        ("x >= 12", None, "wrong", "implausible-in-source"),
        ("x >= 8", None, "wrong", "holds"),
        ("x >= 12", None, "doubt", "fails"),
        ("y >= 1", None, "ten", "undecided"),
        ("y >= 1", None, "wrong", "undecided"),
    ],
)
def test_the_outcome_of_a_claim(
    tmp_path: Path, check: str, shape: str | None, says: str, outcome: str
) -> None:
    with campaign(tmp_path) as made:
        found = made.claim("c", "words", check, says=says, shape=shape, x=10.0, y=None)
        made.finish()
    assert found.outcome == outcome
    published = "ten again [D-5: eleven elsewhere]" if says == "doubt" else made.paper[says].says
    assert (found.published, found.source) == (published, made.paper[says].source)
    assert found.statement == ("Not as stated, only x >= 2: words" if shape == "x >= 2" else "words")
    if outcome == "implausible-in-source":
        assert "P-1: not on the air; the number needs 1e6 / 80000 >= 20, and that is 12.5 >= 20" in found.why


def test_a_statement_that_nobody_made_is_refused(tmp_path: Path) -> None:
    with campaign(tmp_path) as made, pytest.raises(Exception, match=r"has no row 'none' \(known: ten"):
        made.claim("c", "words", "x > 1", says="none", x=1.0)


def test_what_cannot_be_right_is_shown_without_a_claim(tmp_path: Path) -> None:
    with campaign(tmp_path) as made:
        made.claim("c", "words", "x > 1", says="wrong", x=2.0)
        result = made.finish()
    shown = {one.id: one for one in result.claims}
    assert set(shown) == {"c", "published-slip", "published-doubt"}
    assert shown["published-slip"].outcome == "implausible-in-source"
    assert shown["published-slip"].why == "D-13: a slip; the number needs 3 <= 2, and that is 3 <= 2"
    assert shown["published-doubt"].outcome == "undecided"
    assert shown["published-doubt"].why == "not tried; D-5: eleven elsewhere"
    assert result.verdict.status == "invalid", "nothing was measured"


def test_runs_are_gathered_counted_and_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def made(folder: Path, name: str, scenario: Scenario, **_: Any) -> Any:
        if name.startswith("bad"):
            raise RunError("test.bad", "it broke")
        return reader(scenario.seed)

    monkeypatch.setattr(capacity_search, "made", made)
    said: list[str] = []
    seeds: list[int] = []

    def read(_: Case, reader: Any) -> dict[str, tuple[float, str]]:
        seeds.append(reader.seed)
        return {"rate": (float(len(seeds)), "bit/s")}

    with campaign(tmp_path, said) as made:
        found = made.measure(cases("good", "bad"), read, Repetitions.fixed(2, "rate"))
        result = made.finish()
    assert found.all("rate", platform="good") == [1.0, 2.0]
    assert found.mean("rate", platform="bad") is None
    assert len(set(seeds)) == 2, "each repetition has its own seed"
    assert said[0] == "2 points, 2 runs each: about 20 s"
    assert said[1] == "1/2 good-r00, repetition 1, about 20 s to go"
    assert [one.split()[0] for one in said[1:]] == ["1/2", "2/2", "1/2", "2/2"]
    assert {one.labels["platform"]: (one.n, one.stopped) for one in result.repeated} == {
        "good": (2, "a fixed number of runs"),
        "bad": (0, "no run gave the figure"),
    }
    assert result.verdict.reasons[0] == "bad-r00: it broke [test.bad]"
    (rate,) = result.measurements
    assert (rate.name, rate.metric, rate.mean, rate.n) == ("made", "rate", 1.5, 2)
    assert rate.ci95 == pytest.approx(12.706 * 0.5, rel=1e-3)


def repeated(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    rule: Repetitions,
    judge: bool = False,
    **values: list[float],
) -> tuple[Any, list[str]]:
    """A campaign whose cases give these values in turn; below zero of an invalid run."""
    said: list[str] = []
    given = {name: iter(each) for name, each in values.items()}

    def made(folder: Path, name: str, scenario: Scenario, **_: Any) -> Any:
        value = next(given[name.rpartition("-r")[0]])
        made = reader(scenario.seed, "invalid" if value < 0 else "valid")
        made.value = abs(value)
        return made

    monkeypatch.setattr(capacity_search, "made", made)
    with campaign(tmp_path, said) as made:
        made.measure(cases(*values), lambda _, one: {"rate": (one.value, "bit/s")}, rule)

        def claims() -> None:
            for name in values:
                x = made.found.sample("rate", platform=name)
                made.claim(name, "w", "x >= 99 bit/s", says="ten", x=x)

        if judge:
            made.judge(claims)
        else:
            claims()
        return made.finish(), said


def test_a_point_is_repeated_until_its_interval_is_narrow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steady, later = [100.0, 100.1, 100.2], [100.0, 103.0, 100.0, *[101.0] * 7]
    result, said = repeated(
        tmp_path, monkeypatch, Repetitions(("rate",)), steady=steady, later=later, wild=[1.0, 200.0] * 5
    )
    points = {one.labels["platform"]: one for one in result.repeated}
    assert (points["steady"].n, points["wild"].n) == (3, 10)
    assert 3 < points["later"].n < 10
    assert points["later"].ci95 <= 0.01 * points["later"].mean
    assert points["steady"].stopped == "the interval is within 1 % of the mean"
    assert points["wild"].stopped == "the limit of 10 runs"
    assert {one.id: one.outcome for one in result.claims if one.id in points} == {
        "steady": "holds",
        "later": "holds",
        "wild": "undecided",
    }
    assert said[0] == "3 points, 3 to 10 runs each: about 45 s to 2 min 30 s", "said before the first run"
    assert "at least" in said[1]


def test_at_the_limit_of_an_experiment_only_the_widest_intervals_were_narrowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Two seconds a run: nine certain ones, and two more.
    monkeypatch.setattr(campaigns, "OVERHEAD", 0.0)
    monkeypatch.setattr(campaigns, "LONGEST", 22.5)
    result, said = repeated(
        tmp_path, monkeypatch, Repetitions(("rate",)),
        wide=[100.0, 110.0, 100.0, 105.0], wider=[100.0, 140.0, 100.0, 120.0], narrow=[100.0, 105.0, 100.0],
    )  # fmt: skip
    points = {one.labels["platform"]: one for one in result.repeated}
    assert {name: one.n for name, one in points.items()} == {"wide": 4, "wider": 4, "narrow": 3}
    assert {one.stopped for one in points.values()} == {"the limit of 22.5 s of the experiment"}
    assert said[0] == "3 points, 3 to 10 runs each: about 18 s to 22.5 s"


NEAR = [98.8, 99.4, 99.2]
"""Within 1 % of their mean, and on both sides of the limit of the claims, 99."""


def test_points_of_undecided_claims_are_run_further_and_judged_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result, said = repeated(
        tmp_path,
        monkeypatch,
        Repetitions(("rate",)),
        judge=True,
        clear=[100.0, 100.1, 100.2],
        above=[*NEAR, *[99.3] * 7],
        below=[*NEAR, *[98.6] * 7],
        on=[*NEAR, *[98.9, 99.1] * 3, 99.0],
    )
    points = {one.labels["platform"]: (one.n, one.stopped) for one in result.repeated}
    further = (10, "an undecided claim: the limit of 10 runs")
    assert points == {
        "clear": (3, "the interval is within 1 % of the mean"),
        "above": further,
        "below": further,
        "on": further,
    }
    outcomes = [(one.id, one.outcome) for one in result.claims if one.id in points]
    assert outcomes == [("clear", "holds"), ("above", "holds"), ("below", "fails"), ("on", "undecided")]
    assert "points of undecided claims, which are run further: 3" in said
    assert said[-1].startswith("3/3 on-r09, repetition 10, about ")


def test_a_run_that_gives_figures_to_two_points_is_run_further_for_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = iter([*NEAR, *[99.3] * 7])

    def read(*_: Any) -> dict[str, tuple[float, str]]:
        made.found.add({"platform": "wire"}, {"rate": (next(values), "bit/s")})
        return {"rate": (200.0, "bit/s")}

    monkeypatch.setattr(capacity_search, "made", lambda folder, name, scenario, **_: reader(scenario.seed))
    with campaign(tmp_path) as made:
        found = made.measure(cases("receiver"), read, Repetitions(("rate",)))
        made.judge(
            lambda: made.claim("w", "w", "x >= 99 bit/s", says="ten", x=found.sample("rate", platform="wire"))
        )
        result = made.finish()
    assert [(one.id, one.outcome) for one in result.claims if one.id == "w"] == [("w", "holds")]
    assert next(values, None) is None, "ten runs"


def test_claims_that_the_certain_runs_decide_ask_for_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result, said = repeated(
        tmp_path, monkeypatch, Repetitions(("rate",)), judge=True, clear=[100.0, 100.1, 100.2]
    )
    assert [one.n for one in result.repeated] == [3]
    assert not [one for one in said if "undecided" in one]


@pytest.mark.parametrize("rule", [Repetitions.fixed(3, "rate"), Repetitions(("rate",), most=3)])
def test_a_rule_without_further_runs_leaves_its_claims_undecided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rule: Repetitions
) -> None:
    result, _ = repeated(tmp_path, monkeypatch, rule, judge=True, near=NEAR)
    assert [one.n for one in result.repeated] == [3]
    assert [one.outcome for one in result.claims if one.id == "near"] == ["undecided"]


def test_at_the_limit_of_an_experiment_claims_stay_undecided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaigns, "OVERHEAD", 0.0)
    monkeypatch.setattr(campaigns, "LONGEST", 8.5)  # four runs of two seconds
    result, _ = repeated(tmp_path, monkeypatch, Repetitions(("rate",)), judge=True, near=[*NEAR, 99.0])
    (near,) = result.repeated
    assert (near.n, near.stopped) == (4, "the limit of 8.5 s of the experiment")
    assert [one.outcome for one in result.claims if one.id == "near"] == ["undecided"]


def test_invalid_runs_are_no_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result, _ = repeated(
        tmp_path,
        monkeypatch,
        Repetitions(("rate",)),
        once=[-50.0, 100.0, 100.1, 100.2],
        never=[-100.0, -100.0, -100.0],
    )
    points = {one.labels["platform"]: one for one in result.repeated}
    assert (points["once"].n, points["once"].invalid) == (3, 1)
    claims = {one.id: one for one in result.claims}
    assert claims["once"].outcome == "holds"
    assert claims["never"].outcome == "undecided"
    assert "every run of a figure is invalid" in claims["never"].why


def test_a_claim_that_floods_takes_invalid_runs(tmp_path: Path) -> None:
    flooded = Sample((), (100.0, 100.1, 100.2), "bit/s")
    with campaign(tmp_path) as made:
        plain = made.claim("a", "w", "x <= 99 bit/s", says="ten", x=flooded)
        floods = made.claim("b", "w", "x <= 99 bit/s", says="ten", floods=True, x=flooded)
        bounded = made.claim("c", "w", "x >= 4 and x < 5", says="ten", x=Bounded(4, why="the ladder ended"))
        made.finish()
    assert (plain.outcome, floods.outcome, bounded.outcome) == ("undecided", "fails", "undecided")
    assert "the ladder ended" in bounded.why


@pytest.mark.parametrize(("floods", "status"), [(False, "invalid"), (True, "degraded")])
def test_runs_of_a_claim_that_floods_do_not_make_the_experiment_invalid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, floods: bool, status: str
) -> None:
    def made(folder: Path, name: str, scenario: Scenario, **_: Any) -> RunReader:
        place = folder / capacity_search.POINTS / name
        lost = name.startswith("flooded")
        verdict = Verdict(status="invalid" if lost else "valid", reasons=("frames lost",) * lost)
        with RunWriter(place, scenario=name, seed=1, kinds=["netns"], scenario_text="") as writer:
            writer.finish(verdict, Ledger())
        return RunReader(place)

    def read(*_: Any) -> dict[str, tuple[float, str]]:
        return {"rate": (8.0, "bit/s")}

    monkeypatch.setattr(capacity_search, "made", made)
    with campaign(tmp_path) as made:
        found = made.measure(cases("flooded", "calm"), read, Repetitions.fixed(2, "rate"))
        rates = {name: found.sample("rate", platform=name) for name in ("flooded", "calm")}
        made.claim("f", "w", "x >= 1 bit/s", says="ten", floods=floods, x=rates["flooded"])
        made.claim("c", "w", "x >= 1 bit/s", says="ten", x=rates["calm"])
        verdict = made.finish().verdict
    assert verdict.status == status
    assert verdict.reasons == ("flooded-r00: frames lost", "flooded-r01: frames lost")
    assert ("on purpose, 2 runs offer a node more than it can handle" in verdict.notes) is floods


def test_an_invalid_run_is_made_again_until_its_point_is_known_to_overload(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[tuple[str, int]] = []

    def made(folder: Path, name: str, scenario: Scenario, **more: Any) -> Any:
        tries.append((name, more["tries"]))
        return reader(scenario.seed, "invalid" if name.startswith("loaded") else "valid")

    monkeypatch.setattr(capacity_search, "made", made)
    with campaign(tmp_path) as made:
        rule = Repetitions.fixed(2, "rate")
        made.measure(cases("calm", "loaded"), lambda *_: {"rate": (1.0, "bit/s")}, rule)
        made.measure(cases("quick"), lambda *_: {"rate": (1.0, "bit/s")}, Repetitions.fixed(1, "rate"))
        made.finish()
    assert tries == [
        ("calm-r00", 3), ("loaded-r00", 3), ("calm-r01", 3), ("loaded-r01", 1), ("quick-r00", 1),
    ]  # fmt: skip


def test_what_the_machine_lacks_for_every_run_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def made(folder: Path, name: str, scenario: Scenario, **_: Any) -> Any:
        if name.startswith("lacking"):
            raise HostError("host.lacks", f"nothing for {name}", cure="get it")
        return reader(scenario.seed)

    def read(*_: Any) -> dict[str, tuple[float, str]]:
        return {"rate": (1.0, "bit/s")}

    monkeypatch.setattr(capacity_search, "made", made)
    with campaign(tmp_path) as made:
        made.measure(cases("lacking-a", "lacking-b"), read, Repetitions.fixed(1, "rate"))
        with pytest.raises(HostError, match="nothing for lacking-a-r00"):
            made.finish()
    with campaign(tmp_path) as made:
        made.measure(cases("lacking-a", "good"), read, Repetitions.fixed(1, "rate"))
        assert made.finish().verdict.reasons[0].startswith("lacking-a-r00: nothing for")


def test_lines_keep_gaps_and_figures_get_what_was_published(tmp_path: Path) -> None:
    found = Found()
    found.add({"load": 10, "kind": "netns"}, {"rate": (5e6, "bit/s")})
    line = found.line("here", "measured", "rate", "load", (10, 20), 1e6, kind="netns")
    assert line.y == (5.0, None)
    assert found.sample("rate", load=10, kind="netns") == Sample((5e6,), (5e6,), "bit/s")
    assert found.sample("rate", load=20, kind="netns") is None
    with campaign(tmp_path) as made:
        made.draw(figures.Figure(name="ratio", title="t", x_label="x", y_label="y", lines=(line,)))
        made.finish()
    (drawn,) = figures.load(tmp_path / "out")
    assert [(one.role, one.x, one.y) for one in drawn.lines][1] == ("published", (1.0,), (10.0,))


# The digest's table of the DCF cycle: microseconds at 36 Mbit/s by payload, Mbit/s by channel rate.
@pytest.mark.parametrize(
    ("payload", "us"), [(64, 197.5), (128, 209.5), (256, 237.5), (512, 297.5), (1024, 409.5), (1470, 509.5)]
)
def test_the_cycle_is_the_standards(payload: int, us: float) -> None:
    assert orbit.cycle(payload) * 1e6 == pytest.approx(us, abs=0.05)


@pytest.mark.parametrize(("rate", "udp", "tcp"), [(6, 5.27, 4.85), (24, 17.26, 14.85), (54, 29.89, 23.92)])
def test_saturation_and_tcp_by_arithmetic(rate: int, udp: float, tcp: float) -> None:
    assert orbit.saturation(rate=rate) / 1e6 == pytest.approx(udp, abs=0.005)
    assert orbit.tcp_estimate(rate) / 1e6 == pytest.approx(tcp, abs=0.02)


def test_the_waiting_slice_gets_what_the_queue_holds() -> None:
    assert orbit.shared_queue(40, 0.1) / 1e6 == pytest.approx(13.89, abs=0.01)
    assert orbit.shared_queue(200, 0.1) == orbit.shared_queue(1000, 0.1) == orbit.saturation()


def test_windows_are_whole_and_count_octets() -> None:
    times = np.arange(0, 1_000_000_000, 1_000_000, dtype=np.int64)
    rates = orbit.windows(times, 1000, 100_000_000)
    assert rates.tolist() == [8e6] * 9
    assert orbit.windows(times[:0], 1000, 100_000_000).size == 0


def searched(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ladder: tuple[int, ...],
    flows: Any,
    *,
    halve: bool,
    runs: int = 3,
    judged: Any = lambda nodes, run: "valid",
) -> tuple[kinds.Series, Any, list[int]]:
    """A search over chains whose flows are ``flows(nodes, run)``; an error of it is a failed run."""
    asked: list[int] = []

    def made(folder: Path, name: str, scenario: Scenario, **_: Any) -> Any:
        nodes, number = (int(part.lstrip("r")) for part in name.split("-")[1:])
        asked.append(nodes)
        status, place = judged(nodes, number), folder / capacity_search.POINTS / name
        verdict = Verdict(status=status, reasons=("late",) * (status != "valid"))
        with RunWriter(place, scenario=name, seed=1, kinds=["uml"], scenario_text="") as writer:
            writer.finish(verdict, Ledger())
        made = reader(scenario.seed, status)
        made.flows = flows(nodes, number)
        return made

    def case(nodes: int) -> Case:
        scenario = Scenario.model_validate({"name": "made", "nodes": {"a": {}}})
        return Case(f"uml-{nodes}", {"kind": "uml", "nodes": nodes}, scenario, 1.0)

    def read(_: Case, one: Any) -> dict[str, tuple[float, str]]:
        forward, backward = one.flows
        return {
            kinds.FORWARD: (forward, "bit/s"),
            kinds.BACKWARD: (backward, "bit/s"),
            kinds.SLOWER: (min(forward, backward), "bit/s"),
        }

    monkeypatch.setattr(capacity_search, "made", made)
    rule = Repetitions((kinds.SLOWER,), least=runs, most=runs)
    with campaign(tmp_path) as made:
        series = kinds.both_ways(made, {"kind": "uml"}, case, read, rule, ladder, 100.0, halve=halve)
        result = made.finish()
    return series, result, asked


def bounds(series: kinds.Series, flow: str) -> tuple[float, float]:
    found = series.longest(flow)
    assert found is not None
    return found.low, found.high


def test_the_first_deviation_of_each_direction_is_found_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flows(nodes: int, run: int) -> tuple[float, float]:
        return (100.0 if nodes <= 5 else 50.0) + 0.1 * run, (100.0 if nodes <= 11 else 50.0) + 0.1 * run

    series, result, asked = searched(tmp_path, monkeypatch, (2, 4, 8, 16), flows, halve=True)
    assert (bounds(series, kinds.FORWARD), bounds(series, kinds.BACKWARD)) == ((5, 5), (11, 11))
    assert len(asked) == 3 * len(set(asked)), "a chain is repeated, and measured once for both flows"
    figures = {(one.name, one.metric, one.labels["nodes"]): one for one in result.measurements}
    assert figures["forward", "throughput", "2"].ci95 == pytest.approx(0.2484, abs=0.001)


def test_a_chain_whose_interval_crosses_the_tolerance_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flows(nodes: int, run: int) -> tuple[float, float]:
        return (99.0 + 3 * (run - 1) if nodes == 4 else 100.0 if nodes < 8 else 50.0), 100.0

    series, _, _ = searched(tmp_path, monkeypatch, (2, 4, 8), flows, halve=False)
    assert bounds(series, kinds.FORWARD) == (2, 7)
    assert "4 nodes: the interval allows both" in series.longest(kinds.FORWARD).why


@pytest.mark.parametrize(("runs", "limits"), [(3, (4, 4)), (2, (4, float("inf")))])
def test_a_chain_with_invalid_runs_alone_cannot_be_carried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: int, limits: tuple[float, float]
) -> None:
    def judged(nodes: int, run: int) -> str:
        return "invalid" if nodes == 5 else "valid"

    series, _, _ = searched(
        tmp_path,
        monkeypatch,
        (2, 4, 5),
        lambda nodes, run: (100.0, 100.0 + 0.01 * run),
        halve=False,
        runs=runs,
        judged=judged,
    )
    assert bounds(series, kinds.BACKWARD) == limits


def test_beyond_a_chain_that_is_open_longer_ones_are_tried_until_one_is_known_to_deviate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flows(nodes: int, run: int) -> tuple[float, float]:
        rate = {8: 97.0 + 3 * (run - 1), 16: 90.0 + 15 * (run - 1), 32: 50.0}.get(nodes, 100.0)
        return rate, rate

    series, _, asked = searched(tmp_path, monkeypatch, (2, 4, 8, 16, 32, 64), flows, halve=True)
    assert sorted(set(asked)) == [2, 4, 6, 7, 8, 16, 32]
    assert bounds(series, kinds.FORWARD) == bounds(series, kinds.BACKWARD) == (7, 31)


def test_one_run_of_a_chain_shows_neither(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flows(nodes: int, run: int) -> tuple[float, float]:
        return 100.0, 50.0

    series, _, _ = searched(tmp_path, monkeypatch, (2, 4), flows, halve=False, runs=1)
    assert bounds(series, kinds.FORWARD) == bounds(series, kinds.BACKWARD) == (1, float("inf"))
    assert "2 nodes: one repetition gives no interval" in series.longest(kinds.BACKWARD).why


@pytest.mark.parametrize(
    ("invalid", "status", "overloading"),
    [((), "degraded", [16]), ((8,), "degraded", [8, 16]), ((4,), "invalid", [16])],
)
def test_only_chains_beyond_the_longest_faithful_one_overload_on_purpose(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, invalid: tuple[int, ...], status: str, overloading: Any
) -> None:
    """Chains up to 4 are known to be faithful, 8 is open, 16 deviates and has an invalid run."""

    def flows(nodes: int, run: int) -> tuple[float, float]:
        rate = {8: 99.0 + 2 * (run - 1), 16: 50.0}.get(nodes, 100.0 + 0.1 * run)
        return rate, rate

    def judged(nodes: int, run: int) -> str:
        return "invalid" if run == 0 and nodes in (*invalid, 16) else "valid"

    series, result, _ = searched(
        tmp_path, monkeypatch, (2, 4, 8, 16), flows, halve=False, runs=4, judged=judged
    )
    assert series.overloading == overloading
    assert result.verdict.status == status


def test_a_chain_that_does_not_come_up_is_no_good_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flows(nodes: int, run: int) -> tuple[float, float]:
        if nodes > 2:
            raise RunError("test.no", "no")
        return 100.0 + 0.1 * run, 100.0 + 0.1 * run

    series, result, asked = searched(tmp_path, monkeypatch, (2, 4), flows, halve=False)
    assert bounds(series, kinds.FORWARD) == bounds(series, kinds.BACKWARD) == (2, 3)
    assert result.verdict.notes == ("uml-4-r00: no [test.no]",)
    assert "experiment.failed-run" not in result.verdict.codes
    assert asked == [2, 2, 2, 4], "what cannot run is not tried again"
    assert {one.labels["nodes"]: one.stopped for one in result.repeated}["4"] == "it cannot run"


def test_a_point_outside_is_kept_for_the_same_scenario_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def measure(place: Path, _: Scenario) -> tuple[dict[str, tuple[float, str]], bool]:
        assert not list(place.iterdir()), "what an earlier measurement left is gone"
        made.append(place.name)
        (place / "left").touch()
        time.sleep(0.002)
        return {"rate": (5.0 + len(made), "bit/s")}, len(made) > 1

    for duration in ("1 s", "1 s", "2 s"):
        scenario = Scenario.model_validate({"name": "made", "nodes": {"a": {}}, "duration": duration})
        case = Case("gre", {"platform": "gre"}, scenario, 1.0, outside=measure)
        with campaign(tmp_path) as one:
            one.measure([case], lambda *_: {}, Repetitions.fixed(2, "rate"))
            sample = one.found.sample("rate", platform="gre")
            one.finish()
    assert made == ["gre-r00", "gre-r01"] * 2
    assert 0.004 <= outside.wall_seconds(tmp_path / "out" / "points") < 1
    assert sample == Sample((8.0, 9.0), (8.0, 9.0), "bit/s")


@pytest.mark.parametrize(
    ("value", "runs", "outcome"), [(1.0, 3, "holds"), (1.0, 2, "undecided"), (1.1, 1, "fails")]
)
def test_a_claim_about_every_run_needs_several_and_one_counterexample(
    tmp_path: Path, value: float, runs: int, outcome: str
) -> None:
    with campaign(tmp_path) as made:
        claim = made.claim("c", "w", "x <= 1.000", says="ten", x=Largest(value, "1", runs, 3))
        made.finish()
    assert claim.outcome == outcome


def test_kinds_that_do_not_work_are_named_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def made(folder: Path, name: str, scenario: Scenario, **_: Any) -> Any:
        if scenario.kind == "uml":
            raise RunError("test.no-kernel", "no kernel")
        echo = SimpleNamespace(metric="rtt_max", mean=None if scenario.kind == "container" else 1.0)
        return SimpleNamespace(result=SimpleNamespace(measurements=[echo]))

    monkeypatch.setattr(capacity_search, "made", made)
    works, fails = usable_kinds.kinds(tmp_path, lambda _: None, Extent.QUICK, without=("native",))
    assert works == ["netns"]
    assert fails["uml"] == "no kernel [test.no-kernel]"
    assert "do not reach each other" in fails["container"]
    assert "--kind qemu" in fails["qemu"]
    assert "native" not in fails
