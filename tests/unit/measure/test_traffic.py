"""The generator as a tool: its command lines, and what is read afterwards."""

from types import SimpleNamespace

import pytest

from airloom.errors import ScenarioError
from airloom.measure import Ended, MeasureError, Outcome, Place, tool_for
from airloom.measure.traffic import TrafficTool
from helpers.record_files import file


def ask(**more):
    values = {
        "source": "h1",
        "to": "h2",
        "protocol": "udp",
        "pattern": "constant",
        "rate": 10_000_000,
        "interval": None,
        "size": 1470,
        "duration": 10**9,
        "on": None,
        "off": None,
        "trace": None,
        "at": 500,
    }
    return SimpleNamespace(
        **values
        | {"family": None, "frame": None, "rate_of": "payload", "dscp": 0, "ecn": 0, "stages": False}
        | more
    )


PLACE = Place(
    "voice", {"h1": ["10.0.0.1"], "h2": ["10.0.0.2", "fd00::2"]}, port=5203, seed=11, traffic="/bin/t"
)


def send_words(tool):
    return " ".join(tool.steps()[1].argv)


def test_commands():
    receiver, sender = TrafficTool(ask(), PLACE).steps()
    assert receiver.service
    assert (receiver.node, sender.node, sender.at) == ("h2", "h1", 500)
    assert receiver.ready is not None
    assert (receiver.ready.protocol, receiver.ready.port) == ("udp", 5203)
    assert receiver.argv[:4] == ("/bin/t", "receive", "--port", "5203")
    words = " ".join(sender.argv)
    assert "--to 10.0.0.2 --port 5203 --protocol udp --record - --json" in words
    assert "--rate 10000000 bit/s" in words
    assert "--size 1470 B" in words
    assert "--seed 11" in words


def test_other_loads():
    words = send_words(TrafficTool(ask(rate=None, interval=5, pattern="poisson", to="fd00::2"), PLACE))
    assert "--to fd00::2" in words
    assert "--pattern poisson" in words
    assert "--interval 5 ns" in words
    words = send_words(TrafficTool(ask(pattern="on-off", on=7, off=8), PLACE))
    assert "--on 7 ns --off 8 ns" in words
    assert TrafficTool(ask(protocol="tcp"), PLACE).steps()[0].ready.protocol == "tcp"
    assert TrafficTool(ask(protocol="rtp"), PLACE).steps()[0].ready.protocol == "udp"


def test_frames_marks_and_no_limit():
    words = send_words(TrafficTool(ask(frame=1518, rate_of="wire", dscp=46, ecn=1), PLACE))
    assert "--frame 1518 B --rate 10000000 bit/s --rate-of wire --dscp 46 --ecn 1" in words
    assert "--size" not in words
    assert "--rate max" in send_words(TrafficTool(ask(protocol="tcp", rate=None), PLACE))


def test_a_family_chooses_among_the_addresses():
    assert "--to fd00::2" in send_words(TrafficTool(ask(family="ipv6"), PLACE))
    assert "--to 10.0.0.2" in send_words(TrafficTool(ask(family="ipv4"), PLACE))
    only = Place("voice", {"h1": ["10.0.0.1"], "h2": ["10.0.0.2"]}, 1, 1)
    with pytest.raises(ScenarioError, match="h2 has no ipv6 address"):
        TrafficTool(ask(family="ipv6"), only).steps()


def test_a_trace_goes_with_the_command(tmp_path):
    (tmp_path / "t.trace").write_text("0 100\n")
    place = Place("voice", PLACE.addresses, 1, 1, folder=tmp_path)
    tool = TrafficTool(ask(pattern="trace", trace="t.trace", rate=None), place)
    _, sender = tool.steps()
    assert sender.files == {"flow.trace": b"0 100\n"}
    words = sender.command(tmp_path)
    assert words[words.index("--trace") + 1] == f"{tmp_path}/flow.trace"
    with pytest.raises(ScenarioError, match=r"none\.trace"):
        TrafficTool(ask(pattern="trace", trace="none.trace"), place).steps()


def test_reading(tmp_path):
    sent = [(n, 1000 + n, 1001 + n, 100, 0) for n in range(3)]
    (tmp_path / "sender.out").write_bytes(file(*sent, announced=3))
    (tmp_path / "receiver.out").write_bytes(file((0, 1001, 1011, 100, 0), end=1))
    ended = {"sender": Ended(0, 1, code=0), "receiver": Ended(0, 1, code=0)}
    reading = TrafficTool(ask(), PLACE).read(Outcome(tmp_path, 1000, 0, ended))
    assert (reading.zero, reading.sender, reading.receiver) == (1000, "h1", "h2")
    assert (reading.lost, reading.delays.tolist()) == (2, [10])


def test_nothing_came_is_a_result_and_a_refusal_is_not(tmp_path):
    (tmp_path / "sender.out").write_bytes(file((0, 1, 1, 100, 0), announced=1))
    (tmp_path / "receiver.out").write_bytes(file(end=1))
    (tmp_path / "sender.err").write_text("airloom-traffic: no receiver at 10.0.0.2:5203\n")
    tool = TrafficTool(ask(), PLACE)
    ended = {"sender": Ended(0, 1, code=0), "receiver": Ended(0, 1, code=5)}
    assert tool.read(Outcome(tmp_path, 0, 0, ended)).lost == 1
    with pytest.raises(MeasureError, match=r"in node h1 ended with exit code 4: .*no receiver"):
        tool.read(Outcome(tmp_path, 0, 0, ended | {"sender": Ended(0, 1, code=4)}))


def test_the_right_tool_for_each_measurement():
    measurement = SimpleNamespace(name="x", ping=None, iperf3=None, traffic=ask(), test=None)
    assert isinstance(tool_for(measurement, PLACE), TrafficTool)
    with pytest.raises(ScenarioError, match="exactly one tool"):
        tool_for(SimpleNamespace(name="x", ping=None, iperf3=None, traffic=None, test=None), PLACE)
