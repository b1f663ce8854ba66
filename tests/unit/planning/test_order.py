"""The order in which a run starts programs and measurements, on nodes that are played: no waiting."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from airloom.measure.tool import Step
from airloom.nodes.kind import Exit
from airloom.planning.gate import check
from airloom.planning.schedule import earliest_of
from airloom.runs.progress import Watcher
from airloom.runs.runner import Runner
from airloom.scenario import read
from airloom.scenario.model import Program, Scenario
from helpers.fake_node import SECOND, Clock, PlayedNode, PlayedProcess


class PlayedTool:
    """Measures with one program, ``measure``."""

    def steps(self) -> list[Step]:
        return [Step("client", "h1", ("measure",))]


class PlayedWorld:
    """Two nodes that are played, and nothing between them."""

    relay = None
    pacer = None
    monotonic = staticmethod(time.monotonic)
    zero = 0
    zero_realtime = 0

    def __init__(self, clock: Clock) -> None:
        self.now = clock
        self.nodes = {"h1": PlayedNode(), "h2": PlayedNode()}
        self.running = False

    def wake(self, names: list[str]) -> None:
        """They are awake."""

    def schedule(self, plan: Any) -> None:
        """Nothing of it changes later."""

    def begin(self) -> None:
        self.running = True


class Bench:
    """A run of these programs from time zero on, whose clock the test moves."""

    def __init__(self, folder: Path, *programs: dict[str, Any], measured: bool = False, **more: Any) -> None:
        nodes = {"h1": {}, "h2": {}}
        (plan,) = check(
            Scenario(name="order", nodes=nodes, links=[{"ends": ["h1", "h2"]}], programs=programs, **more)
        ).plans
        self.clock = Clock()
        self.world = PlayedWorld(self.clock)
        tools = {"rtt": PlayedTool()} if measured else {}
        self.runner = Runner(
            plan, self.world, lambda node, name: folder / f"{name}.log", Watcher(), tools, folder
        )
        self.runner.prepare()
        self.runner.begin()
        self.go()

    @property
    def started(self) -> list[str]:
        return [process.argv[0] for process in self.world.nodes["h1"].started]

    def go(self, ns: int = 0) -> None:
        self.clock.go(self.runner.timeline, ns)

    def process(self, word: str) -> PlayedProcess:
        return next(one for one in self.world.nodes["h1"].started if one.argv[0] == word)

    def exits(self, word: str, **how: int) -> None:
        self.process(word).on_exit(Exit(**how))
        self.go()

    def listens(self, port: int) -> None:
        self.world.nodes["h1"].ports.add(port)
        self.go(SECOND)


def service(name: str, **said: Any) -> dict[str, Any]:
    return {"node": "h1", "run": name, "name": name, "until_end": True, **said}


def task(name: str, **said: Any) -> dict[str, Any]:
    return {"node": "h1", "run": name, "name": name, **said}


def test_a_program_starts_after_another_is_ready(tmp_path):
    bench = Bench(tmp_path, service("ospfd", after="zebra"), service("zebra", ready={"port": 2600}))
    bench.go(5 * SECOND)
    assert bench.started == ["zebra"]
    bench.listens(2600)
    assert bench.started == ["zebra", "ospfd"]
    bench.go(10 * SECOND)
    assert bench.started == ["zebra", "ospfd"]


def test_a_program_waits_for_all_that_it_names(tmp_path):
    one, two = service("one", ready={"port": 1}), service("two", ready={"port": 2})
    bench = Bench(tmp_path, one, two, task("last", after=["one", "two"]))
    bench.listens(2)
    assert bench.started == ["one", "two"]
    bench.listens(1)
    assert bench.started == ["one", "two", "last"]


def test_without_a_check_a_task_must_have_ended_and_a_service_have_started(tmp_path):
    bench = Bench(tmp_path, service("daemon"), task("set-up", after="daemon"), task("use", after="set-up"))
    assert bench.started == ["daemon", "set-up"]
    bench.exits("set-up", code=0)
    assert bench.started == ["daemon", "set-up", "use"]


def test_a_task_that_ends_well_before_its_check_succeeds_has_come(tmp_path):
    bench = Bench(tmp_path, task("set-up", ready={"port": 1}), task("use", after="set-up"))
    bench.exits("set-up", code=0)
    assert bench.started == ["set-up", "use"]


def test_a_task_that_fails_and_is_restarted_is_waited_for(tmp_path):
    bench = Bench(tmp_path, task("try", restart="on-failure"), task("use", after="try"))
    bench.exits("try", code=1)
    assert bench.started == ["try"]
    bench.go(SECOND)
    assert bench.started == ["try", "try"]
    bench.world.nodes["h1"].started[-1].on_exit(Exit(code=0))
    bench.go()
    assert bench.started == ["try", "try", "use"]


@pytest.mark.parametrize(("moment", "port_at"), [(4, 2), (2, 4)])
def test_at_and_after_together_are_the_later_of_both(tmp_path, moment, port_at):
    bench = Bench(
        tmp_path,
        service("server", ready={"port": 80}),
        service("client", after="server", at=f"{moment} s"),
    )
    bench.go(3 * SECOND if port_at == 4 else SECOND)
    bench.listens(80)  # a second passes here
    early = bench.started
    bench.go(2 * SECOND)
    assert early == (["server"] if moment > port_at else ["server", "client"])
    assert bench.started == ["server", "client"]


def test_what_waits_for_a_program_that_fails_never_starts_and_the_run_fails(tmp_path):
    bench = Bench(
        tmp_path,
        service("zebra", ready={"port": 2600, "within": "2 s"}),
        service("ospfd", after="zebra"),
    )
    bench.go(5 * SECOND)
    assert "program zebra in node h1 was not ready within 2 s" in str(bench.runner.failure)
    assert bench.started == ["zebra"]


def test_the_time_to_be_ready_counts_from_a_programs_own_start(tmp_path):
    bench = Bench(
        tmp_path,
        service("zebra", ready={"port": 2600}),
        service("ospfd", after="zebra", ready={"port": 2604, "within": "2 s"}),
    )
    bench.go(5 * SECOND)
    bench.listens(2600)
    bench.listens(2604)
    assert bench.runner.failure is None
    assert bench.runner.programs["ospfd"].state == "ready"


def test_measurements_wait_for_what_waits_for_another_program(tmp_path):
    bench = Bench(
        tmp_path,
        task("set-up"),
        service("daemon", after="set-up", ready={"port": 1}),
        measured=True,
    )
    bench.go(SECOND)
    bench.exits("set-up", code=0)
    bench.go(SECOND)
    assert bench.started == ["set-up", "daemon"]
    bench.listens(1)
    assert bench.started == ["set-up", "daemon", "measure"]


def test_measurements_do_not_wait_for_what_comes_after_a_program_with_a_time(tmp_path):
    bench = Bench(
        tmp_path,
        service("late", at="5 s", ready={"port": 1}),
        service("later", after="late", ready={"port": 2}),
        measured=True,
    )
    assert bench.started == ["measure"]


def test_an_event_that_starts_a_program_does_not_wait_and_starts_it_once(tmp_path):
    bench = Bench(
        tmp_path,
        service("server", ready={"port": 80}),
        task("client", after="server"),
        events=[{"at": "1 s", "program": "client", "action": "start"}],
    )
    bench.go(SECOND)
    assert bench.started == ["server", "client"]
    bench.exits("client", code=0)
    bench.listens(80)
    assert bench.started == ["server", "client"]


def test_a_program_that_had_no_chance_to_start_fails_a_run_of_given_duration(tmp_path):
    bench = Bench(
        tmp_path,
        service("server", ready={"port": 80}),
        service("client", after="server"),
        duration="3 s",
    )
    bench.go(4 * SECOND)
    assert (
        "program client in node h1 had not started within the run's duration of 3 s: "
        "it waited for program server in node h1"
    ) in str(bench.runner.failure)


def test_a_run_waits_for_tasks_that_wait(tmp_path):
    bench = Bench(tmp_path, service("server", ready={"port": 80}), task("client", after="server"))
    assert not bench.runner._is_done()
    bench.listens(80)
    bench.exits("client", code=0)
    assert bench.runner._is_done()


def test_the_earliest_start_is_that_of_all_before():
    programs = [
        Program(node="h1", run="c", name="c", after=["a", "b"], at="2 s"),
        Program(node="h1", run="d", name="d", after="c"),
        Program(node="h1", run="a", name="a", at="3 s"),
        Program(node="h1", run="b", name="b"),
    ]
    seconds = {name: moment / SECOND for name, moment in earliest_of(programs).items()}
    assert seconds == {"a": 3, "b": 0, "c": 3, "d": 3}


def test_one_name_or_a_list_of_names_and_both_come_back_from_yaml():
    programs = "[{node: a, run: b, after: one}, {node: a, run: c, after: [one, two]}]"
    scenario = read(f"name: x\nnodes: {{a: }}\nprograms: {programs}\n")
    assert [program.after for program in scenario.programs] == [["one"], ["one", "two"]]
    assert read(scenario.to_yaml()) == scenario
