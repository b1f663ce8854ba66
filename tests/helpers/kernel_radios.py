"""Laboratories whose nodes have radios of this machine's kernel; runs as root inside a guest.

``python -m helpers.kernel_radios FOLDER`` prints one line of JSON for each part, with what it saw.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import airloom
from airloom import Scenario, _engine
from airloom.images import own
from helpers.wlan import hostapd, joined, said, supplicant, until

WPA2 = ("wpa=2", "wpa_key_mgmt=WPA-PSK", "rsn_pairwise=CCMP", "wpa_passphrase=correct horse")
CELL = "ip link set wlan0 down && iw dev wlan0 set type ibss && ip link set wlan0 up"
CELL += " && iw dev wlan0 ibss join lab 5180 fixed-freq 02:ca:ff:ee:ba:be"


def radios() -> list[str]:
    """The simulated radios of this kernel, in all namespaces."""
    return sorted(path.name for path in Path("/sys/class/mac80211_hwsim").iterdir())


def scenario(nodes: dict[str, dict[str, Any]], **more: Any) -> Scenario:
    """Nodes in a row, each with a wireless device."""
    placed = {
        name: {"position": [f"{10 * place} m", "0 m"], "radios": {"wlan0": {}}, **node}
        for place, (name, node) in enumerate(nodes.items())
    }
    said = {"name": "host", "media": {"air": {"radio": {"device": "wlan"}}}, "nodes": placed, **more}
    return Scenario.model_validate(said)


def run_of_a_cell(folder: Path) -> dict[str, Any]:
    """``airloom run`` of a netns node and a container that ping each other in an ad hoc cell."""
    image = folder / "image"
    own.make(image, ["sh", "sleep", "echo", "ping", "ip", "iw"])
    kinds = {"a": {}, "b": {"kind": "container", "image": str(image)}}
    programs = [
        {"name": name, "node": name, "run": f"{CELL} && echo joined && sleep 1000", "until_end": True}
        | {"ready": {"log": "joined"}}
        for name in kinds
    ]
    flow = {"from": "a", "to": "b", "count": 20, "interval": "100 ms"}
    made = scenario(kinds, programs=programs, measurements=[{"name": "ping", "ping": flow}])
    file, out = folder / "cell.yaml", folder / "cell"
    file.write_text(made.model_dump_json(by_alias=True, exclude_defaults=True))
    done = subprocess.run(
        [sys.executable, "-m", "airloom", "run", str(file), "--out", str(out)],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((out / "result.json").read_text())
    found = {one["metric"]: one["mean"] for one in result["measurements"]}
    ledger = result["ledger"]
    return {"received": found["received"], "dropped": ledger["dropped"], "host_lost": ledger["host_lost"]}


def join_with_wpa2(folder: Path) -> dict[str, Any]:
    """An access point and a station, beside another program's radios, before and after a restart."""
    other = _engine.WlanDevice.of_kernel(2)
    files = {
        "ap": {"/etc/hostapd.conf": hostapd("lab", *WPA2)},
        "station": {"/etc/wpa.conf": supplicant("lab", 5180, 'psk="correct horse"')},
    }
    with airloom.Lab(scenario({name: {"files": texts} for name, texts in files.items()}), out=folder) as up:
        ap, station = up["ap"], up["station"]
        there = radios()

        def join() -> None:
            said(station, "wpa_supplicant -B -i wlan0 -c /etc/wpa.conf")
            until(lambda: joined(station), "it does not join")
            until(lambda: station.run("ping -c 3 -i 0.3 -W 2 ap", timeout=60).ok, "no answer")

        # Else the kernel could take the station's programs for those of the access point: in both nodes
        # they have the same process numbers (docs/limits.md).
        said(ap, "hostapd -B /etc/hostapd.conf && sleep 1")
        join()
        station.kill()
        until(lambda: not ap.run("ping -c 1 -W 1 station", timeout=60).ok, "it answers")
        station.restart()
        join()
        mac = up.radio("ap").info()["mac"]
        account = next(one for one in up.radio("station").stations() if one["mac"] == mac)
        signal = said(station, f"iw dev wlan0 station get {mac} | grep signal:").split()[1]
        phys = said(ap, "iw phy | grep -c ^Wiphy")
    seen = {"others": len(other.numbers()), "there": len(there)}
    return {**seen, "phys": int(phys), "signal": int(signal), "account": round(account["signal_dbm"])}


def two_at_once(folder: Path) -> dict[str, Any]:
    """Two laboratories with the same cell on the same channel do not hear each other."""
    with contextlib.ExitStack() as stack:
        pairs = [
            stack.enter_context(airloom.Lab(scenario({"a": {}, "b": {}}), out=folder / str(number)))
            for number in range(2)
        ]
        for up in pairs:
            for name in "ab":
                said(up[name], CELL)
        for up in pairs:
            until(lambda up=up: up["a"].run("ping -c 3 -i 0.3 -W 2 b", timeout=60).ok, "no cell")  # type: ignore[misc]
        return {"heard": [int(said(up["a"], "iw dev wlan0 station dump | grep -c ^Station")) for up in pairs]}


def end_of_the_controller(folder: Path) -> dict[str, Any]:
    """Radios end with the controller that is killed."""
    hold = [sys.executable, "-m", "helpers.kernel_radios", str(folder), "hold"]
    with subprocess.Popen(hold, stdout=subprocess.PIPE, text=True) as controller:
        assert controller.stdout is not None
        before = int(controller.stdout.readline())
        controller.kill()
    until(lambda: not radios(), "radios remain")
    return {"before": before}


def hold(folder: Path) -> None:
    """A laboratory that stays up."""
    with airloom.Lab(scenario({"a": {}, "b": {}}), out=folder / "held") as up:
        said(up["a"], CELL)
        print(len(radios()), flush=True)
        sys.stdin.read()


PARTS: list[Callable[[Path], dict[str, Any]]] = [
    run_of_a_cell,
    join_with_wpa2,
    two_at_once,
    end_of_the_controller,
]


def reports(folder: Path) -> Iterator[dict[str, Any]]:
    """Runs each part, and says what radios it left."""
    for part in PARTS:
        mine = folder / part.__name__
        mine.mkdir(parents=True)
        seen = part(mine)
        until(lambda: not radios(), "radios remain")
        yield {"part": part.__name__, **seen}


if __name__ == "__main__":
    if sys.argv[2:] == ["hold"]:
        hold(Path(sys.argv[1]))
    else:
        for report in reports(Path(sys.argv[1])):
            print(json.dumps(report), flush=True)
