"""Mininet's API: topologies, addresses, options and refusals, without a network."""

from __future__ import annotations

import sys

import pytest

from airloom.errors import RunError, ScenarioError
from airloom.mininet import log
from airloom.mininet.checks import iperfVals, parseIperf, parsePing, parsePingFull
from airloom.mininet.clean import sh
from airloom.mininet.node import RemoteController
from airloom.mininet.options import WITHOUT_MEANING, asked
from airloom.mininet.topo import (
    LinearTopo,
    MinimalTopo,
    SingleSwitchReversedTopo,
    SingleSwitchTopo,
    Topo,
)
from airloom.mininet.topolib import TorusTopo, TreeTopo
from airloom.mininet.traffic_control import direction, nanoseconds
from airloom.mininet.util import (
    buildTopo,
    custom,
    customClass,
    ipAdd,
    ipParse,
    irange,
    macColonHex,
    makeIntfPair,
    moveIntf,
    natural,
    netParse,
    retry,
    splitArgs,
)

# Topologies


def ends(topo: Topo) -> list[tuple[str, str]]:
    return topo.links(sort=True)


def test_single_switch():
    topo = SingleSwitchTopo(3)
    assert topo.hosts() == ["h1", "h2", "h3"]
    assert topo.switches() == ["s1"]
    assert ends(topo) == [("h1", "s1"), ("h2", "s1"), ("h3", "s1")]
    assert topo.port("h2", "s1") == (0, 2)
    assert topo.port("s1", "h2") == (2, 0)


def test_reversed_and_minimal():
    assert SingleSwitchReversedTopo(3).port("s1", "h1") == (3, 0)
    assert len(MinimalTopo().hosts()) == 2


def test_linear():
    topo = LinearTopo(3)
    assert ends(topo) == [("h1", "s1"), ("h2", "s2"), ("h3", "s3"), ("s2", "s1"), ("s3", "s2")]
    assert LinearTopo(2, 2).hosts() == ["h1s1", "h1s2", "h2s1", "h2s2"]


def test_tree_counts_depth_first():
    topo = TreeTopo(depth=2, fanout=2)
    assert set(ends(topo)) == {
        ("s1", "s2"),
        ("s2", "h1"),
        ("s2", "h2"),
        ("s1", "s3"),
        ("s3", "h3"),
        ("s3", "h4"),
    }


def test_torus_is_described():
    topo = TorusTopo(3, 3)
    assert len(topo.switches()) == len(topo.hosts()) == 9
    assert len(topo.links()) == 9 + 18
    with pytest.raises(ValueError, match="3x3"):
        TorusTopo(2, 3)


def test_own_topology_with_options_and_double_links():
    class Own(Topo):
        def build(self, n, **_opts):
            switch = self.addSwitch("s1")
            for i in irange(1, n):
                host = self.addHost(f"h{i}", cpu=0.5 / n)
                self.addLink(host, switch, bw=10)
                self.addLink(host, switch, bw=20)

    topo = Own(n=11)
    assert topo.hosts()[1:3] == ["h2", "h3"]
    assert topo.nodeInfo("h1")["cpu"] == 0.5 / 11
    assert topo.linkInfo("h1", "s1", key=1)["bw"] == 20
    assert topo.port("h1", "s1") == [(0, 1), (1, 2)]


# Helpers


def test_addresses():
    assert ipAdd(1) == "10.0.0.1"
    assert ipAdd(258, 16, ipParse("192.168.0.0")) == "192.168.1.2"
    assert netParse("192.168.123.0/24") == (ipParse("192.168.123.0"), 24)
    assert ipParse("10.1") == ipParse("10.0.0.1")
    assert macColonHex(258) == "00:00:00:00:01:02"
    with pytest.raises(ValueError, match="no address"):
        ipAdd(256, 24)


def test_arguments_of_options():
    assert splitArgs("tree,2,fanout=3,rate=1.5") == ("tree", [2], {"fanout": 3, "rate": 1.5})
    made = customClass({"tc": dict}, "tc,bw=10,delay=5ms")
    assert made() == {"bw": 10, "delay": "5ms"}
    assert custom(dict, a=1)(b=2) == {"a": 1, "b": 2}
    assert len(buildTopo({"linear": LinearTopo}, "linear,4").switches()) == 4
    with pytest.raises(ValueError, match="unknown topology 'x'"):
        buildTopo({"linear": LinearTopo}, "x")
    assert sorted(["h10", "h2"], key=natural) == ["h2", "h10"]


def test_what_tools_say():
    said = "1 packets transmitted, 1 received, 0% packet loss\nrtt min/avg/max/mdev = 0.1/0.2/0.3/0.04 ms"
    assert parsePing(said) == (1, 1)
    assert parsePingFull(said) == (1, 1, 0.1, 0.2, 0.3, 0.04)
    assert parsePing("connect: Network is unreachable") == (1, 0)
    assert parseIperf("[ 3] 0.0- 5.0 sec 5.9 MBytes 9.57 Mbits/sec") == "9.57 Mbits/sec"
    line = "20260101000000,10.0.0.2,5001,10.0.0.1,40000,4,0.0-5.0,100,1234"
    assert iperfVals(line, "10.0.0.2")["rate"] == "1234"


def test_times_as_tc_reads_them():
    assert nanoseconds("5ms") == 5_000_000
    assert nanoseconds("1.5s") == 1_500_000_000
    assert nanoseconds(10) == 10_000
    with pytest.raises(RunError, match="no time"):
        nanoseconds("soon")


def test_parameters_of_a_link():
    assert direction(bw=10, delay="5ms", loss=1, max_queue_size=100).engine() == {
        "rate": {"bits-per-second": 10_000_000},
        "delay_ns": 5_000_000,
        "loss": {"bernoulli": {"probability": 0.01}},
        "queue": {
            "packets": 100,
            "octets": None,
            "time_ns": None,
            "discipline": "drop-tail",
            "ecn": False,
        },
    }
    assert direction(bw="10") == direction(bw=10)
    for wrong in ({"bw": 0}, {"loss": 101}, {"max_queue_size": 0}):
        with pytest.raises(RunError):
            direction(**wrong)
    with pytest.raises(RunError, match="loss='much' is no number") as caught:
        direction(loss="much")
    assert caught.value.cure == "write it as 1, in percent"


def test_levels_of_messages(capsys):
    logger = log.MininetLogger()
    logger.info("not shown")
    logger.output("a", 1, "\n")
    logger.setLogLevel("info")
    logger.info("b")
    assert capsys.readouterr().err == "a 1 \nb"
    with pytest.raises(ValueError, match="levels are"):
        logger.setLogLevel("loud")


# Refusals


def test_a_refusal_names_the_line_of_the_script():
    with pytest.raises(RunError, match="channels are TCP") as caught:
        RemoteController("c0", ip="127.0.0.1", protocol="ssl")
    assert caught.value.where.startswith("test_words.py:")
    assert caught.value.code == "mininet.unsupported"


def test_what_is_done_to_the_machine_is_refused():
    for act in (lambda: makeIntfPair("a", "b"), lambda: moveIntf("eth0", "h1")):
        with pytest.raises(RunError) as caught:
            act()
        assert caught.value.code == "mininet.unsupported"


def test_trying_again():
    left = [True, False, False]
    retry(5, 0, left.pop)
    assert left == []


def test_options():
    options = asked(["--topo", "tree,2,3", "--link", "tc,bw=10,delay=5ms", "--test", "pingall", "--mac"])
    assert (options.topo, options.link, options.test, options.mac) == (
        "tree,2,3",
        "tc,bw=10,delay=5ms",
        ["pingall"],
        True,
    )


@pytest.mark.parametrize(
    "words",
    [
        *([name] for name in WITHOUT_MEANING),
        ["--innamespace"],
        ["--controller=nox"],
        ["--switch", "ivs"],
        ["--host", "rt"],
    ],
)
def test_options_without_a_meaning_are_refused(words):
    with pytest.raises(ScenarioError) as caught:
        asked(words)
    assert caught.value.code == "mn.without-meaning"
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("words", [["--nonsense"], ["--pre", "no-such-file"], ["-v", "loud"]])
def test_wrong_options(words):
    with pytest.raises(ScenarioError):
        asked(words)


def test_pexpect_speaks_text_where_it_is_installed(monkeypatch, tmp_path):
    (tmp_path / "pexpect.py").write_text("EOF = 1\ndef spawn(*args, **kwargs): return args, kwargs\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "pexpect", raising=False)
    from airloom.mininet.util import pexpect

    assert pexpect.spawn("mn", timeout=3) == (("mn",), {"encoding": "utf-8", "timeout": 3})
    assert pexpect.EOF == 1
    monkeypatch.delitem(sys.modules, "pexpect")


def test_a_shell_command_of_a_cleanup():
    assert sh("echo out; echo err >&2") == "out\n"
