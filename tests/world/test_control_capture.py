"""Control channels in captures: what controllers and real switches said, decoded by tshark."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import airloom
from airloom import Capture, Scenario
from airloom.report.all_tables import all_tables
from airloom.results import RunReader

pytestmark = [
    pytest.mark.world,
    pytest.mark.skipif(
        shutil.which("ovs-vswitchd", path="/usr/sbin:/usr/bin") is None,
        reason="sudo apt-get install openvswitch-switch",
    ),
    pytest.mark.skipif(
        shutil.which("ovs-testcontroller") is None, reason="sudo apt-get install openvswitch-testcontroller"
    ),
    pytest.mark.skipif(shutil.which("tshark") is None, reason="sudo apt-get install tshark"),
]

WRONG = """\
import socket, struct
listener = socket.create_server(("127.0.0.1", 6654))
switch, _ = listener.accept()
switch.sendall(struct.pack("!BBHI", 4, 0, 8, 1))
switch.sendall(struct.pack("!BBHI", 4, 5, 8, 2))
body = struct.pack("!QQBBHHHIIIHxxHHxxxx", 0, 0, 0, 99, 0, 0, 1, 2**32 - 1, 0, 0, 0, 1, 4)
switch.sendall(struct.pack("!BBHI", 4, 14, 8 + len(body), 3) + body)
stream = switch.makefile("rb")
while header := stream.read(8):
    _, kind, length, _ = struct.unpack("!BBHI", header)
    stream.read(length - 8)
    if kind == 1:
        refused = socket.create_server(("127.0.0.1", 6655))
"""
"""A controller of OpenFlow 1.3 that asks for a command of FLOW_MOD that does not exist.

It listens on port 6655 as soon as the switch has refused it.
"""


def scenario() -> Scenario:
    return Scenario.model_validate(
        {
            "name": "control",
            "nodes": {"h1": {}, "h2": {}, "c0": {}, "c1": {"files": {"/etc/wrong.py": WRONG}}},
            "switches": {
                "s1": {"kind": "openvswitch", "controllers": ["tcp:c0:6653"], "protocols": ["OpenFlow10"]},
                "s2": {
                    "kind": "openvswitch",
                    "controllers": ["tcp:c0:6653", "tcp:c1:6654"],
                    "protocols": ["OpenFlow13"],
                },
            },
            "links": [{"ends": ["h1", "s1"]}, {"ends": ["s1", "s2"]}, {"ends": ["s2", "h2"]}],
            "programs": [
                {
                    "node": "c0",
                    "run": "ovs-testcontroller -O OpenFlow10,OpenFlow13 --unixctl=/tmp/ctl ptcp:6653",
                    "ready": {"port": 6653},
                    "until_end": True,
                    "expect": None,
                },
                {
                    "node": "c1",
                    "run": "python3 /etc/wrong.py",
                    "ready": {"port": 6655},
                    "until_end": True,
                    "expect": None,
                },
            ],
            "measurements": [{"name": "rtt", "ping": {"from": "h1", "to": "h2", "count": 3}}],
        }
    )


def test_messages_of_two_versions_are_counted_and_answers_found(tmp_path: Path) -> None:
    airloom.run(scenario(), out=tmp_path / "out", capture=True)
    run = RunReader(tmp_path / "out")
    details = run.details
    for switch, version in (("s1", "1.0"), ("s2", "1.3")):
        own = [one for one in details.control if (one.switch, one.controller) == (switch, "tcp:c0:6653")]
        count = {(one.sender, one.message): one.count for one in own}
        assert count["switch", "HELLO"] == count["controller", "HELLO"] == 1
        assert count["switch", "FEATURES_REPLY"] == 1
        # The first frames of ARP and of ICMP, each way, have no flow yet.
        assert count["switch", "PACKET_IN"] >= 3
        assert count["controller", "FLOW_MOD"] >= 2
        assert {one.version for one in own if one.message == "PACKET_IN"} == {version}
        # Counted independently: by the number that tshark prints for this type.
        file = tmp_path / "out/captures" / f"{switch}.control.pcapng"
        kind = "openflow_1_0.type" if version == "1.0" else "openflow_v4.type"
        command = ["tshark", "-r", file, "-Y", f"{kind} == 10", "-T", "fields", "-e", kind]
        command += ["-d", "tcp.port==6654,openflow"]
        shown = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
        packet_ins = shown.replace(",", " ").split().count("10")
        in_all = [one for one in details.control if (one.switch, one.message) == (switch, "PACKET_IN")]
        assert sum(one.count for one in in_all) == packet_ins
        (answer,) = [
            one
            for one in details.control_answers
            if (one.switch, one.controller, one.answer) == (switch, "tcp:c0:6653", "FLOW_MOD")
        ]
        assert answer.answered >= 2
        assert 0 < answer.median_ns <= answer.max_ns < 10**9
    assert run.result.verdict.notes == ()
    (wrong,) = [one for one in details.control if one.error]
    assert (wrong.switch, wrong.controller, wrong.message) == ("s2", "tcp:c1:6654", "ERROR")
    assert wrong.error == "OFPET_FLOW_MOD_FAILED, OFPFMFC_BAD_COMMAND"
    assert {"openflow", "openflow-answers"} <= {table.name for table in all_tables(run)}
    samples = run.samples("control")
    assert {"PACKET_IN", "FLOW_MOD"} <= set(samples["metric"])


def test_only_chosen_switches_are_captured(tmp_path: Path) -> None:
    with airloom.Lab(scenario(), out=tmp_path / "out", capture=Capture(ports=("s1",))):
        pass
    assert [file.name for file in (tmp_path / "out/captures").glob("*.control.pcapng")] == [
        "s1.control.pcapng"
    ]
    assert {one.switch for one in RunReader(tmp_path / "out").details.control} == {"s1"}
