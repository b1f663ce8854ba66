"""iperf3's JSON, as figures: real documents of version 3.12."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airloom.measure import Ended, MeasureError, Outcome, Place
from airloom.measure.iperf3 import Iperf3Tool, parse, unreached
from airloom.scenario.model import Iperf3
from helpers import DATA

FILES = DATA / "measure"


def read(name):
    return parse((FILES / f"{name}.client.json").read_text(), (FILES / f"{name}.server.json").read_text())


def metrics(reading):
    return {metric.name: metric.value for metric in reading.metrics()}


def test_tcp():
    reading = read("tcp")
    document = json.loads((FILES / "tcp.client.json").read_text())
    assert reading.throughput == document["end"]["sum_received"]["bits_per_second"]
    assert reading.retransmits == 13
    assert (reading.rtt_min, reading.rtt_mean, reading.rtt_max) == (99_000, 104_000, 110_000)
    assert reading.congestion == "bbr"
    assert len(reading.sent) == 2
    assert [one.octets for one in reading.received] == [2_092_367_713, 523_758]
    assert "loss" not in metrics(reading)


def test_reverse_takes_the_receivers_intervals_from_the_client():
    reading = read("tcprev")
    client = json.loads((FILES / "tcprev.client.json").read_text())
    assert [one.octets for one in reading.received] == [one["sum"]["bytes"] for one in client["intervals"]]
    assert reading.retransmits is not None


def test_streams_are_summed():
    reading = read("tcp4")
    client = json.loads((FILES / "tcp4.client.json").read_text())
    assert reading.sent[0].octets == sum(s["bytes"] for s in client["intervals"][0]["streams"])
    assert reading.congestion == "cubic"


@pytest.mark.parametrize("name", ["udp", "udprev"])
def test_udp(name):
    reading = read(name)
    assert (reading.packets, reading.lost, reading.out_of_order) == (39, 0, 0)
    assert metrics(reading)["loss"] == 0
    assert reading.jitter is not None
    assert 10_000 < reading.jitter < 30_000
    assert reading.throughput == pytest.approx(10.22e6, rel=0.001)


def test_losses_behind_the_last_packet_that_came_count():
    document = json.loads((FILES / "udp.client.json").read_text())
    end = document["end"]
    # The receiver saw the first 9 packets only, and says that it lost none of 9.
    for key in ("sum", "sum_received"):
        end[key] |= {"lost_packets": 0, "packets": 9 if key == "sum_received" else 39}
    end["sum_received"] |= {"bytes": 9 * 32768, "seconds": 1.5}
    found = metrics(parse(json.dumps(document)))
    assert (found["packets"], found["lost"]) == (39, 30)
    assert found["loss"] == 30 / 39
    assert found["goodput"] == pytest.approx(9 * 32768 * 8 / 1.000169), "over the time of sending"
    end["sum_received"] |= {"packets": 0, "bytes": 0, "bits_per_second": 0}
    found = metrics(parse(json.dumps(document)))
    assert (found["loss"], found["goodput"], found["throughput"]) == (1, 0, 0)


def test_samples_are_rates_at_the_ends_of_intervals():
    table = read("tcp").samples().to_pandas()
    offered = table[table.metric == "offered"]
    assert offered.t_ns.tolist() == [500_244_000, 1_000_282_000]
    assert offered.value.iloc[0] == pytest.approx(15_679_044_914, rel=1e-5)
    assert (table.metric == "throughput").sum() == 1, "the remainder of 0.2 ms is left out"
    assert set(table.metric) == {"throughput", "offered", "rtt", "window", "retransmits"}


def test_its_own_error_is_passed_on():
    with pytest.raises(MeasureError, match="unable to connect to server: Connection refused"):
        parse((FILES / "refused.json").read_text())


@pytest.mark.parametrize("text", ["", "{", "[]", '{"start": {}}', '{"start": {"test_start": 3}, "end": {}}'])
def test_what_is_no_result_is_refused(text):
    with pytest.raises(MeasureError):
        parse(text)


def _paths(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from _paths(inner, (*path, key))


DOCUMENT = json.loads((FILES / "udp.client.json").read_text())
JSON = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just([]) | st.just({})
)


@given(st.sampled_from([path for path in _paths(DOCUMENT) if path]), JSON)
def test_a_document_with_any_value_wrong_is_read_or_refused(path, value):
    document = json.loads(json.dumps(DOCUMENT))
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    try:
        reading = parse(json.dumps(document))
        reading.metrics()
    except MeasureError:
        return
    reading.samples()


PLACE = Place("forward", {"n1": ["10.0.0.1"], "n5": ["10.0.3.2", "fd00::5"]}, port=5207, seed=1)


def ask(**more):
    values = {
        "source": "n1",
        "to": "n5",
        "duration": 1_500_000_000,
        "protocol": "tcp",
        "rate": None,
        "size": None,
        "streams": 1,
        "reverse": False,
        "congestion": None,
        "at": 0,
    }
    return Iperf3.model_construct(**values | {"family": None, "dscp": 0} | more)


def test_commands():
    server, client = Iperf3Tool(ask(congestion="cubic"), PLACE).steps()
    assert server.service
    assert server.node == "n5"
    assert server.ready is not None
    assert server.ready.port == 5207
    assert client.argv[1:3] == ("-c", "10.0.3.2")
    assert client.argv[client.argv.index("-t") + 1] == "2"
    assert client.argv[-2:] == ("-C", "cubic")
    udp = Iperf3Tool(ask(protocol="udp", rate=10_000_000, size=1400, to="fd00::5", reverse=True), PLACE)
    assert udp.steps()[0].node == "n5"
    words = " ".join(udp.steps()[1].argv)
    assert "-c fd00::5" in words
    assert "-u -b 10000000 -l 1400 -R" in words


def test_reading_of_a_run(tmp_path):
    for role in ("client", "server"):
        (tmp_path / f"{role}.out").write_bytes((FILES / f"tcp.{role}.json").read_bytes())
    ended = {"server": Ended(0, 9, code=0), "client": Ended(1_000, 9, code=0)}
    reading = Iperf3Tool(ask(), PLACE).read(Outcome(tmp_path, 400, 0, ended))
    assert (reading.sender, reading.receiver, reading.began) == ("n1", "n5", 600)


def test_a_client_that_was_killed(tmp_path):
    (tmp_path / "client.out").write_text("")
    (tmp_path / "client.err").write_text("")
    outcome = Outcome(tmp_path, 0, 0, {"client": Ended(0, 1, signal=9, killed=True)})
    with pytest.raises(MeasureError, match="killed after its limit"):
        Iperf3Tool(ask(), PLACE).read(outcome)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("unable to connect to server: Connection timed out", "Connection timed out"),
        (
            "unable to connect to server - server may have stopped running or use a different port, "
            "firewall issue, etc.: No route to host",
            "No route to host",
        ),
        ("unable to connect to server: Network is unreachable", "Network is unreachable"),
    ],
)
def test_a_server_out_of_reach_gives_zero(said, why):
    reading = unreached(json.dumps({"start": {"connected": []}, "end": {}, "error": said}), "tcp")
    figures = {one.name: one.value for one in reading.metrics()}
    assert (figures["goodput"], figures["throughput"], figures["octets"]) == (0, 0, 0)
    assert reading.in_force() == {"reached nobody": why}
    assert reading.samples().num_rows == 0


@pytest.mark.parametrize("said", ["unable to connect to server: Connection refused", "busy", ""])
def test_other_errors_of_iperf3_are_no_figures(said):
    assert unreached(json.dumps({"start": {}, "end": {}, "error": said}), "tcp") is None
    assert unreached("[]", "tcp") is None
