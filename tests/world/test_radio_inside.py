"""``airloom radio`` in nodes with a kernel of their own: it reaches the radios of its node only."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

import airloom
from airloom.nodes.all_nodes import KINDS
from airloom.scenario.model import Scenario
from helpers.nodes import PYTHON, airloom_in_nodes

pytestmark = [pytest.mark.world, pytest.mark.timeout(240)]

PACKAGE = {"PYTHONPATH": str(Path(airloom.__file__).parents[1]), "PATH": os.environ["PATH"]}

SPEAK = """
import json, socket, sys
for words in sys.argv[1:]:
    control = socket.socket(socket.AF_UNIX)
    control.connect("\\0airloom/radio")
    control.sendall(words.encode() + b"\\n")
    print(b"".join(iter(lambda: control.recv(4096), b"")).decode(), end="")
"""

# As many as may be inside at a time, and more, who say nonsense, too much, or nothing.
RUDE = """
import os, socket, time
crowd = []
for turn in range(120):
    one = socket.socket(socket.AF_UNIX)
    one.settimeout(5)
    try:
        one.connect("\\0airloom/radio")
        one.sendall((b"", b"{}\\n", b"[" * 4000 + b"\\n", os.urandom(20000), b'{"do":[]}\\n')[turn % 5])
    except OSError:
        pass
    crowd.append(one)
    del crowd[:-40]
print("done", flush=True)
time.sleep(1000)
"""


def lab(tmp_path: Path, kind: str) -> airloom.Lab:
    """``n1`` of a kind, ``n2`` of one that starts quickly in its range, and ``n3`` that only listens."""
    for lacking in [*KINDS[kind].lacks(), *KINDS["uml"].lacks()]:
        pytest.skip(f"{lacking.message}: {lacking.cure}")
    nodes: dict[str, Any] = {
        name: {"kind": kind, "position": [f"{place} m", "0 m"], "radios": {"wlan0": {}}}
        for place, (name, kind) in enumerate([("n1", kind), ("n2", "uml"), ("n3", "netns")])
    }
    media = {"air": {"radio": {"rate": "54 Mbit/s"}}}
    return airloom.Lab(Scenario(name="radio", media=media, nodes=nodes), out=tmp_path / "results")


def channels(up: airloom.Lab) -> dict[str, int]:
    return {name: up.radio(name).info()["channel"] for name in up.nodes}


@pytest.mark.parametrize("kind", ["uml", "qemu"])
def test_a_guest_speaks_through_the_control_socket_of_its_own_node_only(tmp_path: Path, kind: str) -> None:
    with lab(tmp_path, kind) as up:

        def speak(*requests: dict[str, Any]) -> list[dict[str, Any]]:
            words = [json.dumps(request) for request in requests]
            done = up["n1"].run([PYTHON, "-c", SPEAK, *words], timeout=100, check=True)
            return [json.loads(line) for line in done.stdout.splitlines()]

        change = {"do": "set", "key": "channel"}
        info, mine, other, sly = speak(
            {"do": "info"},
            change | {"value": 40},
            change | {"value": 44, "radio": "n2:wlan0"},
            change | {"value": 48, "radio": "wlan0", "node": "n2", "port": "n2:wlan0"},
        )
        assert [radio["channel"] for radio in info["answer"]] == [36]
        assert mine == {"answer": None}
        assert other["error"]["code"] == "radio.unknown"
        assert sly["error"]["code"] == "radio.request"
        assert channels(up) == {"n1": 40, "n2": 36, "n3": 36}


def test_a_guest_looks_at_its_radio_sets_it_and_looks_around(tmp_path: Path) -> None:
    with lab(tmp_path, "uml") as up:

        def radio(words: str) -> Any:
            done = up["n1"].run(airloom_in_nodes() + " radio " + words, env=PACKAGE, timeout=100, check=True)
            return json.loads(done.stdout or "null") if "--json" in words else done.stdout

        up["n1"].run("ping -c 2 -i 0.4 -W 3 n2", check=True, timeout=60)
        macs = {name: up.radio(name).info()["mac"] for name in up.nodes}
        assert {one["mac"] for one in radio("station --json")} >= {macs["n2"]}
        radio("set ssid other")
        radio("set rate 12 Mbit/s")
        assert [(one["ssid"], one["rate_bit_s"]) for one in radio("info --json")] == [("other", 12_000_000)]
        assert not up["n1"].run("ping -c 1 -W 1 n2", timeout=60).ok
        up.radio("n2").set(ssid="there")
        (cell,) = (one for one in radio("scan passive 36 --json") if one["mac"] == macs["n2"])
        assert (cell["ssid"], cell["channel"], cell["mode"]) == ("there", 36, "ad-hoc")
        refused = up["n1"].run(airloom_in_nodes() + " radio set channel 7", env=PACKAGE, timeout=60)
        assert (refused.code, "[radio.channel]" in refused.stderr) == (1, True)


def test_rude_clients_in_a_guest_disturb_nobody_else(tmp_path: Path) -> None:
    with lab(tmp_path, "uml") as up:
        rude = up["n1"].start([PYTHON, "-c", RUDE])
        info = [PYTHON, "-c", SPEAK, '{"do": "info"}']
        until = time.monotonic() + 120
        while "done" not in rude.output:
            assert time.monotonic() < until
            assert rude.code is None
            for name in ("n2", "n3"):
                told = json.loads(up[name].run(info, timeout=60, check=True).stdout)
                assert told["answer"][0]["channel"] == 36
        rude.signal("KILL")
        rude.wait(30)
        # Those who left make room, so that the next one is heard.
        told = json.loads(up["n1"].run(info, timeout=60, check=True).stdout)
        assert told["answer"][0]["channel"] == 36
        assert up["n2"].run("ping -c 1 -W 5 n1", timeout=60).ok


def test_a_guest_without_a_radio_is_told_so(tmp_path: Path) -> None:
    for lacking in KINDS["uml"].lacks():
        pytest.skip(f"{lacking.message}: {lacking.cure}")
    parts: dict[str, Any] = {"nodes": {"a": {"kind": "uml"}, "b": {}}, "links": [{"ends": ["a", "b"]}]}
    with airloom.Lab(Scenario(name="wired", **parts), out=tmp_path / "results") as up:
        done = up["a"].run(airloom_in_nodes() + " radio info", env=PACKAGE, timeout=100)
        assert (done.code, "[radio.none]" in done.stderr) == (1, True)
