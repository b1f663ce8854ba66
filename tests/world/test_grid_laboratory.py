"""The shared laboratory: what a run may ask of it, and what two runs in it see of each other."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from airloom import _engine
from airloom.errors import HostError, LabError, RunError, ScenarioError
from airloom.grid import require

try:
    require()
except HostError as error:
    pytest.skip(str(error), allow_module_level=True)

from airloom.grid import inventory
from airloom.grid.answers import Lent, TimeDivision
from airloom.grid.holding import held
from airloom.grid.laboratory import joining, names
from airloom.grid.laboratory.messages import Add, Begin, Change, Join, Read
from airloom.grid.laboratory.server import Laboratory
from airloom.grid.messages import Violation
from airloom.lab import messages as wire
from airloom.planning.gate import check
from airloom.runs.emulation import World
from airloom.scenario.source import Source
from helpers.grid import lent
from helpers.nodes import eventually

pytestmark = [pytest.mark.world, pytest.mark.timeout(120)]

TESTBED = """\
name: room
channels: [36, 40]
slots: {frame: 2, length: 10 ms}
nodes:
  n1: {position: [0 m, 0 m], radios: [w0, w1]}
  n2: {position: [3 m, 0 m], radios: [w0, w1]}
"""
SCENARIO = """\
name: run
duration: 60 s
media: {air: {radio: {channel: 36, power: 10 dBm}}}
nodes:
  n1:
    position: [0 m, 0 m]
    files: {/etc/secret: SLICE}
    radios: {RADIO: }
    interfaces: {RADIO: {addresses: [10.9.0.S1/24]}}
  n2:
    position: [3 m, 0 m]
    radios: {RADIO: }
    interfaces: {RADIO: {addresses: [10.9.0.S2/24]}}
"""


def grants() -> dict[str, Lent]:
    """What a grid manager says of two reservations: one channel, a slot and a radio of each node each."""
    places = {"n1": (0.0, 0.0, 0.0), "n2": (3.0, 0.0, 0.0)}
    return {
        number * 32: lent(
            name,
            {"radios": {"n1": [radio], "n2": [radio]}, "channels": [36], "slots": [slot], "power_dbm": 10.0},
            places,
            booked=[f"{name}-booked"],
        )
        for number, name, radio, slot in (("1", "one", "w0", 0), ("2", "two", "w1", 1))
    }


class Bench:
    """A laboratory in this process, and the reservations that stand."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.testbed = inventory.checked(Source.of_text(TESTBED))
        self.standing = grants()
        self.reported: list[tuple[str, str, list[Violation]]] = []
        self.laboratory = Laboratory(self.testbed, path / "lab.sock", self)

    def grant_of(self, token: str, identity: str) -> Lent:
        if token != f"token of {identity[0]}" or identity not in self.standing:
            raise ScenarioError("token.wrong", "the token is not valid")
        return self.standing[identity]

    def report(self, token: str, identity: str, found: Sequence[Violation], unrecorded: int) -> None:
        assert unrecorded == 0
        self.reported.append((token, identity, list(found)))

    @contextlib.contextmanager
    def joined(self, number: str) -> Iterator[joining.Seat]:
        with joining.join(self.path / "lab.sock", f"token of {number}", number * 32) as seat:
            yield seat

    @contextlib.contextmanager
    def running(self, number: str) -> Iterator[World]:
        """A run of a slice: two nodes with a radio each."""
        reserved = self.standing[number * 32]
        (radio,) = reserved.grant.radios["n1"]
        file = self.path / f"{number}.yaml"
        text = SCENARIO.replace("RADIO", radio).replace("SLICE", reserved.slice)
        file.write_text(text.replace("0.S", f"0.{number}"))
        division = TimeDivision(frame=2, length_ns=10_000_000, guard_ns=100_000)
        with self.joined(number) as seat:
            plan = seat.fitted(held(check(file), reserved, division)).plans[0]
            with World(plan, engine=seat.engine) as world:
                world.begin()
                yield world


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    one = Bench(tmp_path)
    with one.laboratory as laboratory:
        thread = threading.Thread(target=laboratory.serve)
        thread.start()
        yield one
        laboratory.close()
        thread.join(30)
        assert not thread.is_alive()


def said(world: World, node: str, command: str) -> tuple[int, str]:
    """Exit code and output of a command in a node."""
    done = world.nodes[node].exec(["sh", "-c", command])
    return done.exit.code or 0, done.stdout


def test_what_a_run_sees_of_another(bench: Bench) -> None:
    """Both are on one channel, in range, in one subnet: only their slots and their cells differ."""
    with bench.running("1") as one, bench.running("2") as two:
        assert said(one, "n1", "ping -c 3 -i 0.2 -W 2 10.9.0.12")[0] == 0
        assert said(two, "n1", "ping -c 3 -i 0.2 -W 2 10.9.0.22")[0] == 0
        for address in ("10.9.0.21", "10.9.0.22"):
            assert said(one, "n1", f"ping -c 3 -i 0.2 -W 1 {address}")[0] != 0
        assert said(one, "n1", "cat /etc/secret")[1] == "one"
        assert said(two, "n1", "cat /etc/secret")[1] == "two"
        marked = two.nodes["n1"].start(["sleep", "54321"])
        assert "54321" in said(two, "n1", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")[1]
        assert "54321" not in said(one, "n1", "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -v grep")[1]
        marked.signal(9)
        assert {radio["port"] for radio in one.radios()} == {"n1:w0", "n2:w0"}
        assert set(one.engine.ledger()["ports"]) == {"n1:w0", "n2:w0"}
        with pytest.raises(RunError, match="no port n1:w1"):
            one.set_radio("n1:w1", {"on": False})


def test_runs_begin_and_end_independently(bench: Bench) -> None:
    with bench.running("1") as one:
        for _ in range(2):  # the radios of the first time are free again
            with bench.running("2") as two:
                assert said(two, "n1", "ping -c 1 -W 2 10.9.0.22")[0] == 0
                with pytest.raises(RunError, match="in the laboratory"), bench.running("2"):
                    pass
        assert said(one, "n1", "ping -c 1 -W 2 10.9.0.12")[0] == 0
    with bench.running("2") as two:
        assert said(two, "n1", "ping -c 1 -W 2 10.9.0.22")[0] == 0
        # Its ledger counts from its own start, and closes.
        two.end()
        ledger = two.engine.ledger()
        fates = ledger["delivered"] + sum(ledger["dropped"].values()) + sum(ledger["host_lost"].values())
        assert ledger["offered"] + ledger["copies"] == fates + ledger["in_flight"]
        assert ledger["offered"] > 0


def test_violations_are_reported_to_the_manager(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The laboratory refuses such settings, so the test changes the power behind its back."""
    monkeypatch.setattr("airloom.grid.laboratory.server.ASK_S", 0.1)
    begun = time.time()
    with bench.running("1") as one, bench.running("2") as two:
        shared = bench.laboratory._shared
        name = shared.radios["n1:w0"]._own("n1:w0")
        shared.engine.set_radio(name, {"power": 13.0})
        said(one, "n1", "ping -c 3 -i 0.3 -W 1 10.9.0.12")
        eventually(lambda: bool(bench.reported), "a report")
        assert said(two, "n1", "ping -c 1 -W 2 10.9.0.22")[0] == 0
    first = bench.reported[0][2][0]
    assert {report[:2] for report in bench.reported} == {("token of 1", "1" * 32)}
    assert (first.radio, first.what, first.channel, first.amount, first.unit) == (
        "n1:w0", "power", 36, 3.0, "dB",
    )  # fmt: skip
    assert begun <= first.at.timestamp() <= time.time()


def test_a_descriptor_that_waits_does_not_stop_the_laboratory(bench: Bench) -> None:
    """Flags of a TAP are shared with the process that made it, which may set them at any time."""
    with bench.running("1") as one, bench.running("2") as two:
        for node in one.nodes.values():
            os.set_blocking(node.taps["w0"].fileno(), True)
        # The engine reads what comes, and then finds nothing more.
        assert said(one, "n1", "ping -c 3 -i 0.2 -W 2 10.9.0.12")[0] == 0
        assert said(two, "n1", "ping -c 3 -i 0.2 -W 2 10.9.0.22")[0] == 0


def test_a_run_that_is_killed_leaves_its_radios(bench: Bench) -> None:
    with bench.joined("1") as seat:
        add_radio(seat, "w0")
        seat._channel.shutdown(socket.SHUT_RDWR)

        def free() -> bool:
            with contextlib.suppress(RunError), bench.joined("1"):
                return True
            return False

        eventually(free, "its radios are free")
        with bench.running("1") as one:
            assert said(one, "n1", "ping -c 1 -W 2 10.9.0.12")[0] == 0


def test_a_run_ends_with_its_reservation(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airloom.grid.laboratory.server.ASK_S", 0.1)
    with bench.running("2") as two, bench.joined("1") as seat:
        assert seat.ask(Read(what="radios")) == []
        del bench.standing["1" * 32]

        def ended() -> bool:
            try:
                seat.ask(Read(what="radios"))
            except RunError as error:
                return error.code == "lab.ended"
            return False

        eventually(ended, "its part has ended")
        assert said(two, "n1", "ping -c 1 -W 2 10.9.0.22")[0] == 0


SLOTS = {"frame": 2, "length_ns": 10_000_000, "guard_ns": 100_000, "hold": True}
SETTINGS: dict[str, Any] = {"phy": "802.11a", "channel": 36, "power_dbm": 10.0, "rate": "minstrel"}


def add_radio(seat: joining.Seat, radio: str = "w0", node: str = "n1", **settings: Any) -> None:
    """Adds a radio with the TAP of a namespace."""
    name = f"{node}:{radio}"
    said = {**SETTINGS, "mac": [*bytes.fromhex(seat._macs.replace(":", "")), 0, 1], **settings}
    tap = {"name": radio, "mac": "02:00:00:00:00:01", "mtu": 1500, "addresses": [], "tap": True}
    (space,) = _engine.bring_up([{"name": node, "interfaces": [tap]}])
    try:
        seat.ask(Add(port=name, lent=name, settings=said), (space.taps()[radio].fileno(),))
    finally:
        space.close()


@pytest.mark.parametrize(
    ("radio", "settings", "why"),
    [
        ("w1", {}, "the radio n1:w1 is not granted"),
        ("w0", {"channel": 40}, "channel 40 is not granted"),
        ("w0", {"power_dbm": 10.1}, "10.1 dBm are not granted"),
        ("w0", {"power_dbm": float("nan")}, "None dBm are not granted"),
        ("w0", {"power_dbm": True}, "True dBm are not granted"),
        ("w0", {"gain_dbi": 3.0}, "the antenna gain is not the testbed's"),
        ("w0", {"phy": "802.11b"}, "the physical layer is not the testbed's"),
        ("w0", {"mac": [2, 0, 0, 99, 0, 1]}, "the address does not begin with"),
        ("w0", {"membership": "wlan"}, "a wireless device of a guest's own kernel is not granted"),
        ("w0", {"membership": {"ad-hoc": {"ssid": "two"}}}, "does not begin with the slice's name"),
        ("w0", {"membership": {"station": {"ssid": "one", "channels": [40]}}}, "channel 40 is not granted"),
        ("w0", {"membership": {"station": {"ssid": "one", "channels": []}}}, "a scan of all channels"),
        ("w0", {"slots": {"frame": 2, "length_ns": 10_000_000, "guard_ns": 100_000, "own": [0, 1]}}, "slots"),
        ("w0", {"slots": {"frame": 4, "length_ns": 10_000_000, "guard_ns": 100_000, "own": [0]}}, "slots"),
        ("w0", {"slots": "all"}, "the slots are not understood"),
        ("w0", {"slots": {"own": [[]]}}, "its frame of slots is not the testbed's"),
        ("w0", {"slots": {**SLOTS, "own": [0, 1]}}, "slot 1 is not granted"),
        ("w0", {"slots": {**SLOTS, "own": [[]]}}, r"slot \[\] is not granted"),
        ("w0", {"slots": {**SLOTS, "own": [False]}}, "slot False is not granted"),
        ("w0", {"slots": {**SLOTS, "own": [0], "hold": False}}, "its frames do not wait for their slots"),
        ("w0", {"slots": {**SLOTS, "own": [0], "more": 1}}, "the setting 'more' is not granted"),
        ("w0", {"unknown": 1}, "the setting 'unknown' is not granted"),
        (
            "w0",
            {"hops": {"channels": [36, 40], "step": 1, "sequence": 0, "dwell_ns": 1, "switch_ns": 0}},
            "hops",
        ),
        ("w0", {"code": {"spreading": 4, "code": 1}}, "the setting 'code' is not granted"),
        ("w0", {"as_ns3": True}, "the setting 'as_ns3' is not granted"),
        ("w0", {"monitor": True}, "the setting 'monitor' is not granted"),
        ("w0", {"membership": {"mesh": {}}}, "a membership 'mesh' is not granted"),
        ("w0", {"membership": {"ad-hoc": {"ssid": "one", "more": 1}}}, "the setting 'more' is not granted"),
        ("w0", {"membership": {"ad-hoc": {"ssid": "strange"}}}, "does not begin with the slice's name"),
        ("w0", {"membership": {"ad-hoc": {"ssid": "one-booked"}}}, "the SSID 'one-booked' is in use"),
        ("w0", {"membership": {"ad-hoc": {"ssid": "one" * 11}}}, "1 to 32 octets"),
        ("w0", {"transmit_buffers": 1_000_000}, "1000000 transmit buffers are not granted"),
        ("w0", {"tail_drop": 2049}, "2049 transmit buffers are not granted"),
    ],
    ids=repr,
)
def test_a_radio_outside_of_the_grant_is_refused(
    bench: Bench, radio: str, settings: dict[str, Any], why: str
) -> None:
    with bench.joined("2"), bench.joined("1") as seat:
        with pytest.raises(LabError, match=why):
            add_radio(seat, radio, **settings)
        add_radio(seat)  # nothing was changed
        assert [one["port"] for one in seat.ask(Read(what="radios"))] == ["n1:w0"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"channel": 40}, "channel 40 is not granted"),
        ({"channel": True}, "channel True is not granted"),
        ({"power": 20.0}, "20 dBm are not granted"),
        ({"position": {"x": 3.0, "y": 0.0, "z": 0.0}}, "a change of 'position' is not granted"),
        ({"ssid": "two"}, "does not begin with the slice's name"),
        ({"ssid": "late"}, "does not begin with the slice's name"),
        ({"ssid": "one-booked"}, "the SSID 'one-booked' is in use"),
        ({"ssid": 7}, "the SSID is no text"),
        ({"slots": None}, "a change of 'slots' is not granted"),
        ({"ssid": ""}, "the SSID has 1 to 32 octets"),
        ({"scan": {"channels": [], "active": True, "dwell_ns": 10_000_000}}, "a scan of all channels"),
        ({"scan": {"channels": [40], "active": True, "dwell_ns": 10_000_000}}, "channel 40 is not granted"),
    ],
    ids=repr,
)
def test_a_change_outside_of_the_grant_is_refused(bench: Bench, change: dict[str, Any], why: str) -> None:
    with bench.joined("2"), bench.joined("1") as seat:
        add_radio(seat)
        for at in (None, 1):
            with pytest.raises(LabError, match=why):
                seat.ask(Change(port="n1:w0", change=change, at=at))
        (radio,) = seat.ask(Read(what="radios"))
        assert (radio["settings"]["channel"], radio["settings"]["power_dbm"]) == (36, 10.0)
        seat.ask(Change(port="n1:w0", change={"power": 5.0}))
        assert seat.ask(Read(what="radios"))[0]["settings"]["power_dbm"] == 5.0
    eventually(lambda: bool(bench.reported), "a report of the attempts")
    last = bench.reported[-1][2]
    assert [(one.radio, one.what, one.frames) for one in last] == [("n1:w0", "setting", 2)]


def test_a_run_holds_few_names_and_frees_the_old_ones(bench: Bench) -> None:
    with bench.joined("1") as seat:
        add_radio(seat)
        for number in range(3 * names.MOST_NAMES):
            seat.ask(Change(port="n1:w0", change={"ssid": f"one-{number}"}))
        held = bench.laboratory._shared.names._held
        assert set(held) == {"one", f"one-{3 * names.MOST_NAMES - 1}"}
        soon = time.monotonic_ns() + 3600 * 10**9
        for number in range(names.MOST_NAMES - 1):
            seat.ask(Change(port="n1:w0", change={"ssid": f"one.{number}"}, at=soon + number))
        with pytest.raises(RunError, match=f"at most {names.MOST_NAMES} SSIDs"):
            seat.ask(Change(port="n1:w0", change={"ssid": "one.more"}))
    assert not held


def test_a_name_that_a_slice_needs_is_taken_back(bench: Bench) -> None:
    """The slice was booked after another one had announced its name."""
    second = bench.standing["2" * 32]
    bench.standing["2" * 32] = second.model_copy(update={"slice": "one-late"})
    with bench.joined("1") as first:
        add_radio(first)
        first.ask(Change(port="n1:w0", change={"ssid": "one-late"}))
        with bench.joined("2") as seat:
            add_radio(seat, "w1")
            (radio,) = first.ask(Read(what="radios"))
            assert radio["settings"]["membership"]["ad-hoc"]["ssid"] == "one"
            with pytest.raises(RunError, match="in use"):
                first.ask(Change(port="n1:w0", change={"ssid": "one-late"}))


def test_a_radio_that_has_left_stays_off(bench: Bench) -> None:
    """Whatever change the run had asked for at a later time."""
    with bench.joined("1") as seat:
        add_radio(seat)
        soon = time.monotonic_ns() + 10**9
        seat.ask(Change(port="n1:w0", change={"on": False}, at=soon))
        seat.ask(Change(port="n1:w0", change={"on": True}, at=soon + 10**8))
    engine = bench.laboratory._shared.engine
    end = engine.now() + 2 * 10**9

    def off() -> bool:
        (radio,) = engine.radios()
        assert not radio["on"]
        return engine.now() > end

    eventually(off, "the changes are over")


def test_a_run_does_not_fill_the_records_of_another(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """One offends in 1,100 ways, the other one in one: both are told of their own."""
    with bench.running("1") as one, bench.running("2") as two:
        shared = bench.laboratory._shared
        ports = {radio: shared.radios[radio]._own(radio) for radio in ("n1:w0", "n1:w1")}
        said(one, "n1", "ip neigh replace 10.9.0.12 lladdr 02:00:00:00:00:09 dev w0")
        sending = one.nodes["n1"].start(["ping", "-i", "0.001", "-q", "10.9.0.12"])
        for step in range(1_100):
            shared.engine.set_radio(ports["n1:w0"], {"power": 13.0 + step * 1e-3})
            time.sleep(0.003)
        sending.signal(9)
        state = shared.engine.violations()
        assert len([found for found in state["found"] if found["slice"] == "one"]) <= 1024
        shared.engine.set_radio(ports["n1:w1"], {"power": 13.0})
        said(two, "n1", "ping -c 3 -i 0.3 -W 1 10.9.0.22")
        mine = two.engine.violations()
        assert {found["what"] for found in mine["found"]} == {"power"}
        assert mine["unrecorded"] == 0
    assert shared.engine.violations()["found"] == []
    assert {found.radio for _, _, reported in bench.reported for found in reported} >= {"n1:w0", "n1:w1"}


@pytest.mark.parametrize(
    ("octets", "code"),
    [
        (b"", ""),
        (b"{", "lab.message"),
        (b"[" * 100_000, "lab.message"),
        (b'{"do": "begin"}', "lab.message"),
        (b'{"do": "join", "token": "token of 2", "reservation": "' + b"1" * 32 + b'"}', "token.wrong"),
        (b'{"do": "join", "token": "x", "reservation": "../../v1/users"}', "lab.message"),
        (b"\xff\x00", "lab.message"),
    ],
    ids=["nothing", "half", "deep", "not joined", "another's token", "path", "octets"],
)
def test_a_stranger_is_refused(bench: Bench, octets: bytes, code: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stranger:
        stranger.connect(os.fspath(bench.path / "lab.sock"))
        stranger.settimeout(30)
        if octets:
            stranger.send(octets)
        else:
            stranger.shutdown(socket.SHUT_WR)
        answer, _ = wire.receive(stranger)
        assert (f'"code": "{code}"'.encode() in answer) if code else not answer
    with bench.joined("1") as seat:
        seat.ask(Begin())


def test_messages_after_joining_are_checked(bench: Bench) -> None:
    with bench.joined("1") as seat:
        with pytest.raises(RunError, match="joined already"):
            seat.ask(Join(token="token of 1", reservation="1" * 32))
        add = Add(port="n1:w0", lent="n1:w0", settings={**SETTINGS, "mac": [2, 0, 0, 1, 0, 1]})
        with pytest.raises(RunError, match="one descriptor"):
            seat.ask(add)
        with open(os.devnull) as strange, pytest.raises(LabError):
            seat.ask(add, (strange.fileno(),))
        with open(os.devnull) as strange, pytest.raises(RunError, match="have none"):
            seat.ask(Begin(), (strange.fileno(),))
        seat.ask(Begin())


def test_a_laboratory_of_another_user_gets_no_token(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        path = tmp_path / "lab.sock"
        listener.bind(os.fspath(path))
        os.chown(path, 1234, 1234)
        with pytest.raises(HostError, match="no laboratory of root or of yours"):
            joining.check_owner(path)
