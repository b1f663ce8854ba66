"""What ping prints, as figures."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airloom.errors import ScenarioError
from airloom.measure import Ended, MeasureError, Outcome, Place
from airloom.measure.ping import PingTool, parse
from helpers import DATA

FILES = DATA / "measure"

LOSSY = """PING 10.0.0.2 (10.0.0.2) 56(84) bytes of data.
[1795174962.243247] no answer yet for icmp_seq=1
[1795174962.446041] 64 bytes from 10.0.0.2: icmp_seq=2 ttl=64 time=10.4 ms
[1795174962.446141] 64 bytes from 10.0.0.2: icmp_seq=2 ttl=64 time=10.5 ms (DUP!)
From 10.0.0.1 icmp_seq=3 Destination Host Unreachable
[1795174962.649146] 64 bytes from 10.0.0.2: icmp_seq=4 ttl=64 time=123 ms

--- 10.0.0.2 ping statistics ---
4 packets transmitted, 2 received, +1 duplicates, +1 errors, 50% packet loss, time 406ms
rtt min/avg/max/mdev = 10.412/66.706/123.001/56.294 ms
"""

BUSYBOX = """PING 10.0.0.2 (10.0.0.2): 56 data bytes
64 bytes from 10.0.0.2: seq=0 ttl=64 time=0.071 ms
64 bytes from 10.0.0.2: seq=1 ttl=64 time=0.103 ms

--- 10.0.0.2 ping statistics ---
2 packets transmitted, 2 packets received, 0% packet loss
round-trip min/avg/max = 0.071/0.087/0.103 ms
"""


def metrics(reading):
    return {metric.name: metric.value for metric in reading.metrics()}


def test_real_output():
    reading = parse((FILES / "ping.txt").read_text())
    found = metrics(reading)
    assert (reading.transmitted, reading.received, reading.loss) == (3, 3, 0.0)
    assert found["rtt_min"] == 44_000
    assert found["rtt_mean"] == 96_000
    assert found["rtt_max"] == found["rtt_first"] == 201_000
    assert found["rtt_max_after_first"] == 45_000
    assert reading.replies[0].received == 1_795_174_962_243_247_000


def test_real_output_over_ipv6():
    assert [reply.rtt for reply in parse((FILES / "ping6.txt").read_text()).replies] == [22_000, 47_000]


def test_loss_duplicates_and_errors():
    reading = parse(LOSSY)
    assert (reading.duplicates, reading.errors, reading.loss) == (1, 1, 0.5)
    assert [reply.duplicate for reply in reading.replies] == [False, True, False]
    assert [reply.sequence for reply in reading.replies] == [2, 2, 4]
    assert metrics(reading)["rtt_p50"] == (10_400_000 + 123_000_000) / 2
    assert metrics(reading)["rtt_mean"] == 66_706_000


def test_samples_count_from_time_zero():
    reading = replace(parse(LOSSY), zero_realtime=1_795_174_962_000_000_000, node="h1")
    table = reading.samples()
    assert table["t_ns"].to_pylist() == [446_041_000, 446_141_000, 649_146_000]
    assert table["node"].to_pylist() == ["h1"] * 3


def test_busybox():
    reading = parse(BUSYBOX)
    assert (reading.received, reading.rtt_mean, reading.rtt_mdev) == (2, 87_000, None)
    assert reading.samples().num_rows == 0


def test_sequence_goes_on_past_16_bits():
    lines = [
        f"64 bytes from 10.0.0.2: icmp_seq={n % 65536} ttl=64 time=1 ms" for n in (65534, 65536, 65535, 65540)
    ]
    text = "\n".join(["x", "64 bytes from 10.0.0.2: icmp_seq=32768 ttl=64 time=1 ms", *lines])
    text += "\n5 packets transmitted, 5 received, 0% packet loss, time 1ms\n"
    assert [reply.sequence for reply in parse(text).replies] == [32768, 65534, 65536, 65535, 65540]


def test_cut_short():
    with pytest.raises(MeasureError, match="after 2 replies"):
        parse(LOSSY.split("From")[0].replace("(DUP!)", ""))


@given(st.text() | st.text(alphabet="0123456789.=<[]/ bytes from:icmp_seqtlrmPackdv,+%\n"))
def test_any_text_is_read_or_refused(text):
    try:
        reading = parse(text)
    except MeasureError:
        return
    reading.metrics()
    reading.samples()


PLACE = Place("rtt", {"h1": ["10.0.0.1"], "h2": ["10.0.0.2", "fd00::2"]}, port=5201, seed=1)


def ask(**more):
    values = {"source": "h1", "to": "h2", "count": 3, "interval": 2_000_000, "size": 56, "at": 5}
    return SimpleNamespace(**values | {"family": None, "dscp": 0, "unreachable": "count"} | more)


def test_command():
    (step,) = PingTool(ask(), PLACE).steps()
    assert step.argv == ("ping", "-D", "-n", "-O", "-c", "3", "-i", "0.002000000", "-s", "56", "10.0.0.2")
    assert (step.node, step.at, step.service) == ("h1", 5, False)
    assert PingTool(ask(dscp=46), PLACE).steps()[0].argv[-3:] == ("-Q", "184", "10.0.0.2")
    assert PingTool(ask(to="fd00::2"), PLACE).steps()[0].argv[-1] == "fd00::2"
    with pytest.raises(ScenarioError, match="h9"):
        PingTool(ask(to="h9"), PLACE).steps()


NO_ROUTE = "ping: connect: Network is unreachable"


def outcome(folder, code, out="", err=""):
    (folder / "client.out").write_text(out)
    (folder / "client.err").write_text(err)
    return Outcome(folder, 0, 0, {"client": Ended(0, 1, code=code)})


def test_failure_is_said_in_pings_words(tmp_path):
    ended = outcome(tmp_path, 2, err=f"{NO_ROUTE}\n")
    with pytest.raises(MeasureError, match=f"exit code 2: {NO_ROUTE}"):
        PingTool(ask(unreachable="fail"), PLACE).read(ended)
    ended = outcome(tmp_path, 2, err="ping: bad number of packets to transmit\n")
    with pytest.raises(MeasureError, match="exit code 2: ping: bad number"):
        PingTool(ask(), PLACE).read(ended)


def test_without_a_route_it_starts_again_for_the_requests_that_are_left():
    (step,) = PingTool(ask(), PLACE).steps()
    assert step.again is not None
    assert step.again.when(2, NO_ROUTE)
    assert step.again.when(2, "ping: connect: No route to host")
    assert not step.again.when(1, NO_ROUTE)
    assert not step.again.when(2, "ping: sendmsg: Network is unreachable")
    commands = [step.again.argv(starts) for starts in (1, 2, 3)]
    assert [command and command[5] for command in commands] == ["2", "1", None]
    assert step.again.pause == 2_000_000
    assert PingTool(ask(unreachable="fail"), PLACE).steps()[0].again is None


def test_requests_without_a_route_are_lost(tmp_path):
    reading = PingTool(ask(), PLACE).read(outcome(tmp_path, 2, err=f"{NO_ROUTE}\n" * 3))
    found = metrics(reading)
    assert (found["transmitted"], found["received"], found["unreachable"]) == (3, 0, 3)
    assert found["loss"] == 1.0


def test_a_route_that_comes_late_and_goes(tmp_path):
    err = f"{NO_ROUTE}\n{NO_ROUTE}\nping: sendmsg: Network is unreachable\n"
    reading = PingTool(ask(), PLACE).read(outcome(tmp_path, 0, LOSSY, err))
    assert (reading.transmitted, reading.received, reading.unreachable) == (6, 2, 3)
    assert [reply.sequence for reply in reading.replies] == [4, 4, 6]


def test_no_reply_is_a_result(tmp_path):
    text = "3 packets transmitted, 0 received, 100% packet loss, time 406ms\n"
    reading = PingTool(ask(), PLACE).read(outcome(tmp_path, 1, text))
    assert metrics(reading)["loss"] == 1.0
