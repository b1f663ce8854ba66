"""DCTCP over what Mininet's ``TCLink(enable_ecn=True)`` makes of a link: a short queue, marks and no loss.

The link's parameters are those of `airloom.mininet`; the hosts are guests, whose kernel has DCTCP.
"""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import pytest

import airloom
from airloom.mininet.traffic_control import direction
from airloom.runs.link_loads import LinkLoad
from helpers.kernels import needs_option, needs_virtual_time
from helpers.virtual import scenario

pytestmark = [
    pytest.mark.world,
    pytest.mark.timeout(300),
    needs_virtual_time,
    needs_option("CONFIG_TCP_CONG_DCTCP", b"dctcp"),
]

FRAMES = 200


def queue(**parameters: Any) -> dict[str, Any]:
    """The queue of a link with parameters of TCLink, in the words of a scenario."""
    made = direction(bw=100, max_queue_size=FRAMES, **parameters).queue
    assert made is not None
    words: dict[str, Any] = {"packets": made.packets}
    if made.discipline is not None:
        law = made.discipline.parameters
        words |= {
            "discipline": made.discipline.word,
            "ecn": made.ecn,
            "red_min": f"{law['min_octets']} B",
            "red_max": f"{law['max_octets']} B",
            "red_packet": f"{law['packet_octets']} B",
            "red_probability": law["probability"],
            "red_weight": law["weight"],
            "red_above": "mark" if law["marks_above"] else "drop",
        }
    return words


def seen(out: Path, congestion: str, **parameters: Any) -> list[LinkLoad]:
    """The load of the link each 5 ms while two connections share it, from a second after their start on."""
    sysctl = {"net.ipv4.tcp_congestion_control": congestion, "net.ipv4.tcp_ecn": int(congestion == "dctcp")}
    node = {"offloads": False, "sysctl": sysctl}
    links = [
        {"ends": ["h1", "s1"], "rate": "1 Gbit/s", "delay": "200 us"},
        {"ends": ["s1", "h2"], "rate": "100 Mbit/s", "delay": "200 us", "queue": queue(**parameters)},
    ]
    made = scenario(nodes={"h1": node, "h2": node}, switches={"s1": {}}, links=links)
    with airloom.Lab(made, out=out) as up:
        up["h2"].start("iperf3 -s", ready={"port": 5201})
        client = up["h1"].start("iperf3 -c h2 -t 3 -P 2")
        up.run_for("1 s")
        link = up.link("s1", "h2")
        loads = [link.load()]
        for _ in range(200):
            up.run_for("5 ms")
            loads.append(link.load())
        assert client.wait() == 0, client.output
    return loads


def test_marks_keep_the_queue_short_where_losses_fill_it(tmp_path: Path) -> None:
    dctcp = seen(tmp_path / "dctcp", "dctcp", enable_ecn=True)
    cubic = seen(tmp_path / "cubic", "cubic")
    # Marks begin with a mean of 30,000 octets: 20 frames of 1514.
    waiting = [load.queue for load in dctcp]
    assert 10 <= statistics.median(waiting) <= 30
    assert max(waiting) <= 60
    assert dctcp[-1].marked > dctcp[0].marked
    assert dctcp[-1].dropped == 0
    for loads in (dctcp, cubic):
        assert loads[-1].utilization_since(loads[0]) > 0.97
    assert statistics.median(load.queue for load in cubic) > 5 * statistics.median(waiting)
    assert cubic[-1].dropped > 0
