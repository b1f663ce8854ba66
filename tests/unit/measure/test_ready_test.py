"""Ready tests: which programs they run, and what their output says."""

from __future__ import annotations

from pathlib import Path

import pytest

from airloom.measure import sampling, voip, web
from airloom.measure.iperf3 import parse as parse_iperf3
from airloom.measure.ping import PingReading, Reply
from airloom.measure.ready_test import TestReading as Reading
from airloom.measure.ready_test import TestTool as Tool
from airloom.measure.tool import MeasureError, Place, Step
from airloom.scenario.model import Test as Asked

DATA = Path(__file__).parents[2] / "data" / "measure"
PLACE = Place("m", {"a": ["10.0.0.1"], "b": ["10.0.0.2"]}, 5201, 7, traffic="/traffic")


def steps_of(**said: object) -> dict[str, Step]:
    asked = Asked.model_validate({"from": "a", "to": "b", **said})
    return {step.role: step for step in Tool(asked, PLACE).steps()}


def test_rrul_is_four_marked_connections_each_way_and_three_pings() -> None:
    steps = steps_of(kind="rrul", duration="9 s", idle="2 s", congestion="cubic")
    clients = [step.argv for step in steps.values() if step.argv[:2] == ("iperf3", "-c")]
    assert len(clients) == 8
    assert sorted("-R" in argv for argv in clients) == [False] * 4 + [True] * 4
    marks = [argv[argv.index("--dscp") + 1] if "--dscp" in argv else "0" for argv in clients]
    assert marks == ["0", "8", "40", "46"] * 2
    assert len({argv[argv.index("-p") + 1] for argv in clients}) == 8
    assert all(argv[argv.index("-C") + 1] == "cubic" for argv in clients)
    assert {steps[f"{way}_ef/client"].at for way in ("up", "down")} == {2_000_000_000}
    pings = [step for step in steps.values() if step.argv[0] == "ping"]
    assert [step.argv[step.argv.index("-Q") + 1] if "-Q" in step.argv else "0" for step in pings] == [
        "0",
        "32",
        "184",
    ]
    assert {(step.at, step.argv[step.argv.index("-c") + 1]) for step in pings} == {(0, "130")}


def test_services_come_first_and_every_part_has_a_folder() -> None:
    steps = list(steps_of(kind="tcp_nup", streams=3).values())
    services = [step.service for step in steps]
    assert services == sorted(services, reverse=True)
    assert {step.stdout for step in steps} == {
        *(f"up_{number}/{end}.out" for number in (1, 2, 3) for end in ("client", "server")),
        "ping/client.out",
        "node_from/sampler.out",
        "node_to/sampler.out",
    }
    assert not [role for role in steps_of(kind="tcp_nup", sample="0 s") if "sampler" in role]


def test_a_call_is_rtp_both_ways() -> None:
    steps = steps_of(kind="voip")
    senders = [steps[f"{way}/sender"] for way in ("up", "down")]
    assert [step.node for step in senders] == ["a", "b"]
    for step in senders:
        assert step.argv[step.argv.index("--protocol") + 1] == "rtp"
        assert step.argv[step.argv.index("--size") + 1] == "172 B"
        assert step.argv[step.argv.index("--dscp") + 1] == "46"


def test_a_page_is_served_from_the_folder_of_its_part() -> None:
    server = steps_of(kind="web_page", size="20 kB")["page/server"]
    assert {name: len(content) for name, content in server.files.items()} == {
        "page/document": 10_000,
        "page/object": 20_000,
    }
    assert server.command(Path("/run/m"))[server.argv.index("--directory") + 1] == "/run/m/page"


def test_sockets_and_queueing_disciplines() -> None:
    text = (DATA / "sampler.txt").read_text()
    zero = 1795357141215458822
    reading = sampling.parse(text, (5201, 5202), zero)
    # The data connection and not the control connection; the sample that is cut off is left out.
    assert reading.sockets[5202]["cwnd"] == ([10_000_000_000, 10_214_149_480], [30.0, 28.0])
    assert reading.sockets[5201]["srtt"][1] == [120_952_000.0, 122_118_000.0]
    assert reading.congestion == {"bbr"}
    assert list(reading.qdiscs) == ["eth0"]
    assert len(reading.qdiscs["eth0"]["backlog"][1]) == 2
    (table, *_) = reading.of_connection(5202, "up_bk")
    assert table["metric"].to_pylist() == ["cwnd.up_bk"] * 2


@pytest.mark.parametrize("text", ["", "= 12\n[{", "[]\n", "= 5\nnothing\n= 6\n", "= 5\n[3]\n= 6\n"])
def test_damaged_samples_are_left_out(text: str) -> None:
    reading = sampling.parse(text, (5201,), 0)
    assert not reading.sockets
    assert reading.samples().num_rows == 0


def test_page_loads() -> None:
    reading = web.parse("1000 3000 0\n4000 9000 0\n10000 11000 2\n", 70_000)
    figures = {one.name: one.value for one in reading.metrics()}
    assert (figures["pages"], figures["failures"]) == (2, 1)
    assert (figures["page_time_min"], figures["page_time_max"]) == (2000, 5000)
    assert reading.samples()["t_ns"].to_pylist() == [3000, 9000]
    with pytest.raises(MeasureError, match="curl: not found"):
        web.parse("sh: curl: not found", 1)


def test_the_e_model() -> None:
    # G.107: the default values give R = 93.2 and a mean opinion score of 4.41.
    assert voip.rating(0, 0) == pytest.approx(93.2)
    assert voip.mos(93.2) == pytest.approx(4.41, abs=0.005)
    assert voip.rating(100e6, 0) == voip.rating(0, 0)
    assert voip.rating(150e6, 0) > voip.rating(300e6, 0) > voip.rating(300e6, 0.02)
    # G.113, table I.4: half of the largest impairment at a loss of Bpl percent.
    assert voip.rating(0, 0.251) == pytest.approx(93.2 - 95 / 2)
    assert (voip.mos(-5), voip.mos(120)) == (1.0, 4.5)
    assert voip.mos(5) >= 1.0


def test_figures_of_a_load() -> None:
    second = 1_000_000_000
    replies = tuple(
        Reply(number, number * second // 10, int((20 if number < 20 else 120) * 1e6), duplicate=False)
        for number in range(80)
    )
    ping = PingReading(80, 80, 0, 0, 0, None, None, None, None, replies, node="a")
    client, server = ((DATA / f"tcp.{end}.json").read_text() for end in ("client", "server"))
    tcp = parse_iperf3(client, server)
    reading = Reading("tcp_nup", {"up_1": tcp, "up_2": tcp, "ping": ping}, (2 * second, 8 * second))
    figures = {one.name: one.value for one in reading.metrics()}
    assert figures["throughput"] == pytest.approx(2 * tcp.throughput)
    assert figures["fairness_up"] == pytest.approx(1)
    assert figures["rtt_idle"] == 20e6
    assert figures["rtt_p50"] == 120e6
    assert figures["rtt_induced"] == 100e6
    assert figures["throughput.up_2"] == tcp.throughput
    assert reading.in_force() == {"congestion": tcp.congestion}
    metrics = set(reading.samples()["metric"].to_pylist())
    assert metrics == {"throughput.up_1", "throughput.up_2", "rtt.ping"}
