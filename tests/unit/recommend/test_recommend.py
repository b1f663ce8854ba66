"""Recommendations: classes by calibration and load, nodes carried, the choice, and refusals."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from typer.testing import CliRunner

from airloom.calibration import model
from airloom.calibration.model import Calibration
from airloom.cli import app
from airloom.errors import ScenarioError
from airloom.planning.gate import check
from airloom.planning.plan import Plan
from airloom.recommend.carried import Carried, carried
from airloom.recommend.classes import Load, judged, latency_bounds
from airloom.recommend.trials import Answer, chosen, classes_of, load_of, prepared
from airloom.results import Measurement
from airloom.scenario.model import Scenario
from helpers.calibrations import US, figure, made

MS = 1e6


LOAD = Load(packets=1_000, pairs=1, hops=1, rtt_ns=40 * MS)


def verdicts(calibration: Calibration, load: Load = LOAD) -> dict[str, str]:
    return {one.experiment: one.verdict for one in judged(calibration, load)}


def test_a_light_load_on_a_quick_kind_is_harmless_everywhere() -> None:
    assert set(verdicts(made()).values()) == {"harmless"}


def test_the_limits_of_real_time_and_voice_separate_the_kinds() -> None:
    # The published additions: 0.18 ms fits 0.5 ms only corrected; 2.8 to 4 ms fits 50 ms, not 0.5 ms.
    slower = verdicts(made(jitter_ns=figure(180 * US, 3 * US)))
    assert (slower["real-time"], slower["voice"]) == ("correctable", "harmless")
    published = verdicts(made(jitter_ns=figure(3.4 * MS, 0.6 * MS)))
    assert (published["real-time"], published["voice"], published["video"]) == (
        "unusable", "correctable", "correctable",
    )  # fmt: skip
    worst = verdicts(made(jitter_ns=figure(49 * MS, 2 * MS)))
    assert (worst["voice"], worst["video"]) == ("unusable", "unusable")


def test_a_correction_has_formula_and_interval_that_grow_with_the_hops() -> None:
    one = {each.experiment: each for each in judged(made(), Load(1_000, 1, 4, 40 * MS))}["real-time"]
    assert (one.verdict, one.formula) == ("correctable", "jitter - addition")
    assert one.correction == -80 * US
    assert one.half_width == pytest.approx(8 * US)  # sqrt(4) times that of one hop


def test_above_the_ceiling_the_rate_is_scaled_to_the_native_equivalent() -> None:
    load = Load(packets=28_000, pairs=1, hops=1, rtt_ns=40 * MS)
    one = judged(made(), load)[0]
    assert (one.verdict, one.correction) == ("correctable", 3.0)
    assert one.half_width == pytest.approx(3.0 * math.hypot(0.1, 0.1))
    assert verdicts(made(), load)["video"] == "correctable"
    wide = made(native_ceiling=figure(90_000, 80_000))
    assert verdicts(wide, load)["throughput"] == "unusable"
    assert verdicts(made(native_ceiling=figure(90_000, None)), load)["throughput"] == "unusable"
    assert verdicts(made(), Load(13_000, 3, 1, 40 * MS))["throughput"] == "correctable"  # 12,000 for three


def test_tcp_needs_a_path_longer_than_the_addition() -> None:
    assert verdicts(made(), Load(1_000, 1, 1, 10 * MS))["tcp"] == "harmless"
    assert verdicts(made(), Load(1_000, 1, 1, 4 * MS))["tcp"] == "unusable"


def test_one_round_has_no_interval_and_corrects_nothing() -> None:
    once = made(delay_ns=figure(100 * US, None), jitter_ns=figure(20 * US, None))
    found = verdicts(once)
    assert {found[name] for name in ("real-time", "voice", "video", "tcp", "routing")} == {"unusable"}
    assert latency_bounds(once, 1) is None


def test_the_least_latency_bound_follows_from_the_delay() -> None:
    assert latency_bounds(made(), 1) == pytest.approx((120 * US / 0.05, 120 * US))
    assert latency_bounds(made(), 4) == pytest.approx((440 * US / 0.05, 440 * US))


def plan(text: str) -> Plan:
    return check(Scenario.from_yaml(text)).plans[0]


CHAIN = """\
name: chain
topology: {generator: chain, nodes: 4, link: {rate: 10 Mbit/s, delay: 5 ms}}
measurements:
  - {name: udp, traffic: {from: $first, to: $last, rate: 1 Mbit/s, size: 100 B}}
  - {name: tcp, iperf3: {from: $first, to: $last}}
"""


def test_the_load_of_a_scenario() -> None:
    def one(name: str, metric: str, mean: float) -> Measurement:
        return Measurement(name=name, metric=metric, unit="1", mean=mean)

    found = load_of(plan(CHAIN), [one("tcp", "throughput", 9e6)])
    assert found.hops == 3
    assert found.pairs == 1
    assert found.packets == 1_250
    assert found.rtt_ns == pytest.approx(6 * (5 * MS + 1538 * 8 / 10e6 * 1e9))
    assert classes_of(plan(CHAIN)) == ("throughput", "real-time", "tcp")
    found = load_of(plan(CHAIN), [one("tcp", "throughput", 1e9)])
    assert found.packets == pytest.approx(1e9 / 8 / 1448)


def test_what_a_machine_carries_is_its_scarcest_resource() -> None:
    four, load = plan(CHAIN), Load(1_000, 1, 3, 1.0)
    gib = 1 << 30
    assert carried(four, made(), load, 0.1, 2, gib) == Carried(64, "processors")
    assert carried(four, made(), load, 0.001, 2, 100_000_000) == Carried(100, "memory")
    # Two pairs at 18,000 each in the worst round, so 36 pairs at 1,000; four nodes make one pair here.
    assert carried(four, made(), load, 0.001, 2, gib) == Carried(144, "packets")
    guests = plan(CHAIN.replace("name: chain", "name: chain\nkind: uml\nguest: {memory: 100 MiB}"))
    assert carried(guests, made(), load, 0.0, 2, 1_000 * 2**20) == Carried(10, "memory")


def answer(kind: str, jitter: float, nodes: int, status: str = "valid") -> Answer:
    classes = tuple(judged(made(jitter_ns=figure(jitter, 1.0)), LOAD))
    return Answer(kind, "stored", status, (), Carried(nodes, "memory"), classes, (), None)


def test_the_best_verdicts_win_and_then_the_most_nodes() -> None:
    harmless, correctable, unusable = 10 * US, 100 * US, 1 * MS
    relevant = ("real-time",)
    assert chosen([answer("uml", correctable, 9), answer("netns", harmless, 1)], relevant)[0] == "netns"
    assert chosen([answer("uml", unusable, 9), answer("netns", correctable, 1)], relevant)[0] == "netns"
    assert chosen([answer("uml", harmless, 9), answer("netns", harmless, 10)], relevant)[0] == "netns"
    assert chosen([answer("uml", unusable, 9), answer("netns", harmless, 1)], ("voice",))[0] == "uml"
    both = [answer("uml", harmless, 1), answer("netns", harmless, 9, "invalid")]
    assert chosen(both, relevant)[0] == "uml"
    kind, why = chosen([answer("netns", harmless, 9, "invalid")], relevant)
    assert kind is None
    assert "no trial" in why


BARE = "name: s\nnodes: {a: , b: }\nlinks: [{ends: [a, b]}]\n"
PING = BARE + "measurements: [{name: rtt, ping: {from: a, to: b, count: 2}}]\n"


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        (BARE, [], "a scenario without measurements has no figure to recommend a kind for"),
        (PING, ["--kind", "xen"], "no kind 'xen' can be recommended"),
        (PING, ["--kind", "native"], "no kind 'native' can be recommended"),
        (PING, ["--calibration", "s.yaml"], "s.yaml: this calibration cannot be read"),
        (PING.replace("to: b", "to: c"), [], "c"),
    ],
)
def test_bad_input_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(text)
    done = CliRunner().invoke(app, ["recommend", "s.yaml", "--out", "out", *words])
    assert isinstance(done.exception, ScenarioError)
    assert done.exception.exit_code == 2
    assert said in str(done.exception)
    assert not Path("out").exists()


def test_calibrations_that_are_there_save_their_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    path = tmp_path / "s.yaml"
    path.write_text(PING)
    trial = prepared(path, ["netns"])
    assert (trial.known, trial.native is not None) == ({}, True)
    given = tmp_path / "netns.json"
    given.write_text(json.dumps(made().model_dump(mode="json", by_alias=True)))
    again = prepared(path, ["netns"], [model.read(given)])
    assert again.known["netns"][1] == "given"
    assert again.seconds < trial.seconds
    path.write_text(PING.replace("[a, b]", "[a, b], delay: 1 ms"))
    assert prepared(path, ["netns"]).native is None  # a bare wire has no delay
