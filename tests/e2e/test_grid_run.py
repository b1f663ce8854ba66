"""``airloom.grid.run``: a run in a reservation from Python, with a grid manager in a process of its own."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import airloom
from airloom.errors import HostError, RunError, ScenarioError
from airloom.grid import require

try:
    require()
except HostError as error:
    pytest.skip(str(error), allow_module_level=True)

from airloom.grid import window
from airloom.grid.client import TOKEN, URL, Client, remembered
from airloom.grid.reserved_scenario import scenario_of
from airloom.runs.progress import Watcher
from helpers.grid import SMALL
from helpers.grid_server import Server
from helpers.ordinary import ordinary_user

pytestmark = [
    pytest.mark.world,
    pytest.mark.timeout(120),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: pytest has threads"),
]
ROOM = """\
name: watched
duration: 60 s
media: {air: {radio: {channel: 36, rate: 24 Mbit/s, power: 10 dBm}}}
nodes: {a1: {position: [0 m, 0 m], radios: {wlan0: }}}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(SMALL, str(tmp_path_factory.mktemp("grid") / "grid.db"))
    server.must("POST", "/v1/projects", {"name": "p"})
    yield server
    server.kill()


@pytest.fixture
def client(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    monkeypatch.setenv(URL, server.url)
    monkeypatch.setenv(TOKEN, server.token)
    with Client(remembered()) as client:
        yield client


@pytest.fixture
def book(client: Client) -> Iterator[Any]:
    """Reserves; what is still held at the end is released."""
    made = []

    def booked(slice_name: str, **asked: Any) -> str:
        end = (datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)).isoformat()
        made.append(client.book({"project": "p", "slice": slice_name, "end": end, **asked}).id)
        return made[-1]

    yield booked
    for identity in made:
        if client.reservation(identity).state == "active":
            client.release(identity)


def test_a_scenario_of_a_reservation_runs_in_it(client: Client, book: Any, tmp_path: Path) -> None:
    identity = book("mine", count=2, channels=[36])
    scenario = scenario_of(client.reservation(identity), client.inventory())
    result = airloom.grid.run(
        scenario,
        reservation=identity[:8],
        overrides={"measurements[0].ping.count": 2, "measurements[0].ping.interval": "100 ms"},
        seed=7,
        out=tmp_path / "out",
    )
    assert isinstance(result, airloom.RunResult)
    assert (result.folder, result.result.seed, result.result.scenario) == (tmp_path / "out", 7, "mine")
    assert set(result.measurements["name"]) == {"rtt"}
    assert result.result.ledger.delivered > 0
    assert client.reservation(identity).state == "active", "the run does not end the reservation"


def test_the_end_of_the_reservation_ends_the_run_and_nothing_else(
    client: Client, book: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window, "ASK_S", 0.1)
    identity = book("short", nodes=["a1"], channels=[36])
    (tmp_path / "s.yaml").write_text(ROOM)

    class Releasing(Watcher):
        def up(self, run: Any) -> None:
            threading.Thread(target=client.release, args=(identity,)).start()

    with pytest.raises(RunError, match="the reservation ended during the run") as found:
        airloom.grid.run(tmp_path / "s.yaml", reservation=identity, out=tmp_path / "out", watcher=Releasing())
    assert (found.value.code, found.value.exit_code) == ("grid.window", 1)
    assert (tmp_path / "out" / "result.json").exists()


def test_the_violations_of_a_run_are_reported(client: Client, book: Any, tmp_path: Path) -> None:
    """The test raises the power behind the run's back; what is sent with it does not arrive."""
    identity = book("loud", count=2, channels=[36])
    scenario = scenario_of(client.reservation(identity), client.inventory())
    first = next(iter(scenario.nodes))

    class Raising(Watcher):
        def up(self, run: Any) -> None:
            run.world.engine.set_radio(f"{first}:wlan0", {"power": 13.0})

    airloom.grid.run(
        scenario,
        reservation=identity,
        overrides={"measurements[0].ping.count": 2, "measurements[0].ping.interval": "100 ms"},
        out=tmp_path / "out",
        watcher=Raising(),
    )
    found = [one for one in client.violations() if one.reservation == identity]
    assert {(one.slice, one.radio, one.what, one.unit) for one in found} == {
        ("loud", f"{first}:wlan0", "power", "dB")
    }
    assert [one.amount for one in found] == [3.0] * len(found)


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [("channel: 36", "channel: 40", "grid.grant"), ("name: watched", "nam: watched", "key.unknown")],
)
def test_what_does_not_fit_is_refused_before_anything_starts(
    client: Client, book: Any, tmp_path: Path, old: str, new: str, code: str
) -> None:
    identity = book("other", nodes=["a1"], channels=[36])
    (tmp_path / "s.yaml").write_text(ROOM.replace(old, new))
    with pytest.raises(ScenarioError) as found:
        airloom.grid.run(tmp_path / "s.yaml", reservation=identity, out=tmp_path / "out")
    assert found.value.code == code
    assert not (tmp_path / "out").exists()


def test_a_reservation_that_is_not_the_callers_is_refused(client: Client, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(ROOM)
    for identity in ("0" * 32, "0000"):
        with pytest.raises(ScenarioError) as found:
            airloom.grid.run(tmp_path / "s.yaml", reservation=identity)
        assert found.value.code == "reservation.unknown"


SCRIPT = """
import os
os.environ.update(ENVIRONMENT)
import pandas  # starts threads
import airloom.grid
from airloom.grid.client import Client, remembered
from airloom.runs.progress import Watcher

class Releasing(Watcher):
    def up(self, run):
        with Client(remembered()) as client:
            client.release("IDENTITY")

try:
    airloom.grid.run("s.yaml", reservation="IDENTITY", out="out", watcher=Releasing())
except airloom.RunError as error:
    print(error.code, airloom.rpc.is_needed())
"""


def test_an_ordinary_users_run_ends_with_the_reservation_too(client: Client, book: Any) -> None:
    identity = book("users", nodes=["a1"], channels=[36])
    with ordinary_user() as user:
        (user.folder / "s.yaml").write_text(ROOM)
        environment = repr({URL: client.login.url, TOKEN: client.login.token})
        done = user.script(SCRIPT.replace("ENVIRONMENT", environment).replace("IDENTITY", identity))
        assert (done.returncode, done.stdout) == (0, "grid.window True\n"), done.stderr
        assert (user.folder / "out" / "result.json").exists()
