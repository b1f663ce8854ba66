"""What a scenario asks of this machine's kernel."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from airloom.errors import HostError
from airloom.host import radios
from airloom.planning.gate import check
from airloom.planning.machine import host_needs
from airloom.planning.routing import frr
from airloom.scenario.model import Scenario

LINKS = [{"ends": ["a", "b"]}]


@pytest.fixture(autouse=True)
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "available").write_text("reno cubic bbr\n")
    monkeypatch.setattr(host_needs, "AVAILABLE", tmp_path / "available")
    monkeypatch.setattr(host_needs, "MODULES", tmp_path / "modules")
    return tmp_path


def lacks(congestion: str | None = None, **more: object) -> list[HostError]:
    flow = {"from": "a", "to": "b", "congestion": congestion}
    measurements = [{"name": name, "iperf3": flow} for name in ("first", "second")] if congestion else []
    said = {"nodes": {"a": {}, "b": {}}, **more}
    scenario = Scenario(name="x", links=LINKS, measurements=measurements, **said)
    return host_needs.lacks(check(scenario).plans[0])


def test_a_congestion_control_of_this_kernel_is_no_lack():
    assert lacks("bbr") == []
    assert lacks() == []


def test_one_that_it_has_not_is_named_once_with_its_place_and_those_there_are():
    (found,) = lacks("bbr3")
    assert found.exit_code == 3
    assert str(found) == (
        "measurements[first].iperf3.congestion: this machine's kernel has no TCP congestion control 'bbr3' "
        "(did you mean bbr? it has: reno, cubic, bbr) [host.congestion]"
    )


def test_a_nodes_own_setting_too():
    nodes = {"a": {"sysctl": {host_needs.SYSCTL: "vegas"}}, "b": {}}
    assert [lack.where for lack in lacks(nodes=nodes)] == [f"nodes.a.sysctl.{host_needs.SYSCTL}"]


def test_a_module_is_loaded_when_it_is_asked_for(kernel: Path):
    folder = kernel / "modules" / os.uname().release / "kernel/net/ipv4"
    folder.mkdir(parents=True)
    (folder / "tcp_vegas.ko.xz").touch()
    assert lacks("vegas") == []


def test_nodes_with_a_kernel_of_their_own_are_not_judged():
    assert lacks("bbr3", kind="uml") == []


def test_missing_daemons_of_a_routing_protocol_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frr, "FOLDER", str(tmp_path))
    monkeypatch.setattr(host_needs, "FRR", tmp_path)
    (tmp_path / "zebra").touch(mode=0o755)
    nodes = {"a": {"routing": "ospf", "forwarding": True}, "b": {}}
    (found,) = lacks(nodes=nodes)
    assert (found.code, found.message, found.cure) == (
        "host.frr",
        f"this machine has no {tmp_path}/ospfd, which 'routing' or a program starts",
        "sudo apt-get install frr",
    )
    started = [{"node": "b", "run": f"{tmp_path}/isisd -f /etc/frr/isisd.conf"}]
    (tmp_path / "ospfd").touch(mode=0o755)
    assert lacks(nodes=nodes) == []
    (found,) = lacks(nodes=nodes, programs=started)
    assert f"this machine has no {tmp_path}/isisd" in found.message


def test_a_mount_needs_a_folder_in_the_root(tmp_path: Path) -> None:
    mounts = [
        {"source": str(tmp_path), "target": "/no-such-folder/data"},
        {"source": str(tmp_path), "target": "/tmp/no-such-folder/data"},
    ]
    (found,) = lacks(nodes={"a": {"mounts": mounts}, "b": {}})
    assert (found.code, found.where) == ("host.mount", "nodes.a.mounts[0].target")
    assert "no folder /no-such-folder" in found.message


@pytest.mark.parametrize(("memory", "lacking"), [("512 MiB", False), ("513 MiB", True)])
def test_guests_have_no_more_memory_together_than_the_machine(
    memory: str, lacking: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(host_needs, "memory_octets", lambda: 1 << 30)
    found = lacks(kind="uml", guest={"memory": memory})
    if not lacking:
        assert found == []
        return
    assert [str(one) for one in found] == [
        "nodes: the 2 guests of this scenario have 1.0 GiB of memory together, and this machine has 1.0 GiB "
        "(give them less with 'guest: {memory: 64 MiB}', or have fewer of them) [host.memory]"
    ]
    assert found[0].exit_code == 3


def test_a_guest_that_nodes_share_counts_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(host_needs, "memory_octets", lambda: 1 << 30)
    nodes = {"a": {"inside": "g"}, "b": {"inside": "g"}}
    assert lacks(nodes=nodes, guests={"g": {"kind": "uml", "memory": "1 GiB"}}) == []
    assert lacks() == [], "nodes without a guest have no memory of their own"


RADIOS = {
    "media": {"air": {"radio": {"device": "wlan"}}},
    "nodes": {
        name: {"kind": kind, "position": ["0 m", "0 m"], "radios": {"wlan0": {}}}
        for name, kind in (("a", "uml"), ("b", "netns"))
    },
}


def test_wireless_devices_on_this_kernel_need_its_module(kernel: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(radios, "MODULES", kernel / "modules")
    monkeypatch.setattr(radios._engine, "has_radios", lambda: False)
    place = "nodes.b.radios.wlan0.device: "
    assert [str(one) for one in lacks(**RADIOS)] == [
        f"{place}this machine's kernel has no mac80211_hwsim "
        "(make the nodes of kind uml or qemu) [host.radios]"
    ]
    folder = kernel / "modules" / os.uname().release / "kernel/drivers/net/wireless/virtual"
    folder.mkdir(parents=True)
    (folder / "mac80211_hwsim.ko.xz").touch()
    assert [str(one) for one in lacks(**RADIOS)] == [
        f"{place}the module mac80211_hwsim is not loaded (modprobe mac80211_hwsim radios=0) [host.radios]"
    ]
    monkeypatch.setattr(radios._engine, "has_radios", lambda: True)
    assert lacks(**RADIOS) == []
    monkeypatch.setattr(radios._engine, "has_radios", lambda: pytest.fail("not needed"))
    assert lacks() == []


def test_a_mount_needs_a_target_of_its_kind(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    folder, file = str(tmp_path / "folder"), str(tmp_path / "file")
    mounts = [
        {"source": file, "target": folder},
        {"source": folder, "target": file},
        {"source": folder, "target": f"{file}/below"},
        {"source": file, "target": f"{file}/below/more"},
    ]
    found = lacks(nodes={"a": {"mounts": mounts}, "b": {}})
    assert [(one.code, one.where) for one in found] == [
        ("host.mount", f"nodes.a.mounts[{number}].target") for number in range(4)
    ]
    assert f"{folder} is a folder on this machine, and the source is a file" in found[0].message
    assert f"{file} is a file on this machine, and the source is a folder" in found[1].message
    assert f"{file} is no folder" in found[2].message
    right = [{"source": file, "target": file}, {"source": folder, "target": f"{folder}/new"}]
    assert lacks(nodes={"a": {"mounts": right}, "b": {}}) == []
