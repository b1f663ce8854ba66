"""Virtual machines by QEMU: what cannot start says why."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import airloom
from airloom import HostError, RunError, Scenario
from airloom.nodes.guests import accelerator, modules, tap_bridge
from airloom.nodes.kinds import qemu
from helpers.nodes import eventually

pytestmark = pytest.mark.world


@pytest.fixture(autouse=True)
def installed() -> None:
    for lacking in qemu.QemuKind.lacks():
        pytest.skip(f"{lacking.message}: {lacking.cure}")


def machine(**guest: Any) -> Scenario:
    nodes = {"guest": {"kind": "qemu", "guest": guest}, "other": {}}
    return Scenario.model_validate({"name": "q", "nodes": nodes, "links": [{"ends": ["guest", "other"]}]})


def test_a_kernel_that_does_not_start_is_named_with_its_last_words(tmp_path: Path) -> None:
    real = qemu.kernel_of(None)
    release = real.modules.name
    (tmp_path / "boot").mkdir()
    (tmp_path / "lib/modules").mkdir(parents=True)
    (tmp_path / "lib/modules" / release).symlink_to(real.modules)
    image = tmp_path / "boot" / f"vmlinuz-{release}"
    image.write_bytes(b"\x7fELF" + bytes(1 << 16))
    with pytest.raises(RunError, match="node guest: its machine ended with exit code 1") as caught:
        airloom.run(machine(kernel=str(image)), out=tmp_path / "out")
    said = (tmp_path / "out/nodes/guest/console.log").read_text().strip()
    assert said.startswith("qemu")
    assert f"last console output: {said.splitlines()[-1]}" in caught.value.message


@pytest.mark.parametrize("network", ["vhost", "tap"])
def test_frames_and_the_carrier_reach_it_by_the_engines_own_device_or_through_the_hosts_kernel(
    tmp_path: Path, network: str
) -> None:
    with airloom.Lab(machine(network=network), out=tmp_path / "out") as lab:
        guest, other = lab["guest"], lab["other"]
        assert guest.run("ping -n -c 3 -i 0.3 -W 5 other", timeout=110).ok
        assert other.run("ping -n -c 3 -i 0.3 -W 5 -M do -s 1472 guest", timeout=60).ok
        for server, client in ((guest, other), (other, guest)):
            served = server.start("iperf3 -s -1")
            until = time.monotonic() + 60
            while not server.listens(5201):
                assert time.monotonic() < until
                time.sleep(0.1)
            client.run(f"iperf3 -c {server.name} -n 20M", timeout=60, check=True)
            assert served.wait(60) == 0
        assert guest.counters()["eth0"]["rx_packets"] > 100
        if accelerator.of(qemu.program_of(), qemu.kernel_of(None).image).name == "tcg":
            assert guest.run("grep -q -w erms /proc/cpuinfo", timeout=30).code == 1
        assert ("guest:eth0" in lab._up().world.engine.guests()) == (network == "vhost")
        monitor = guest.start("ip monitor link")
        eventually(lambda: guest.run("ss -f netlink | grep -q ip/", timeout=30).ok, "ip listens")
        lab.link("guest", "other").down()
        eventually(lambda: "NO-CARRIER" in monitor.output, "news of the lost carrier")
        assert carrier(guest) == "0"
        lab.link("guest", "other").up()
        eventually(lambda: "LOWER_UP" in monitor.output.rpartition("NO-CARRIER")[2], "news of the carrier")
        assert carrier(guest) == "1"
        assert other.run("ping -n -c 2 -i 0.3 -W 5 guest", timeout=60).ok
        assert lab.ledger()["host_lost"] == {}


def carrier(node: airloom.LiveNode) -> str:
    return node.run("cat /sys/class/net/eth0/carrier", timeout=30, check=True).stdout.strip()


def test_a_kernel_without_its_modules_is_refused_before_anything_starts(tmp_path: Path) -> None:
    image = tmp_path / "vmlinuz-1.2.3-none"
    image.write_bytes(b"\x7fELF")
    with pytest.raises(HostError, match=r"the modules of .*vmlinuz-1\.2\.3-none are not on this machine"):
        airloom.run(machine(kernel=str(image)), out=tmp_path / "out")


def test_how_machines_run_is_found_by_trying_and_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = qemu.kernel_of(None).image
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    tried = []
    monkeypatch.setattr(
        accelerator,
        "_try",
        lambda program, kernel: tried.append(kernel) or accelerator.Accelerator("tcg", "it says nothing"),
    )
    monkeypatch.setattr(accelerator, "KVM", Path("/dev/null"))
    accelerator.of.cache_clear()
    try:
        assert accelerator.of(qemu.program_of(), kernel).words == "in software, for it says nothing"
        accelerator.of.cache_clear()
        assert accelerator.of(qemu.program_of(), kernel).name == "tcg"
        assert tried == [kernel]
        monkeypatch.setattr(accelerator, "KVM", tmp_path / "none")
        accelerator.of.cache_clear()
        assert "none does not exist" in accelerator.of(qemu.program_of(), kernel).why
    finally:
        accelerator.of.cache_clear()


def test_modules_come_after_those_that_they_need() -> None:
    folder = qemu.kernel_of(None).modules
    names = [Path(path).name.partition(".")[0] for path in modules.in_order(folder, ("virtio_net", "9p"))]
    assert names.index("net_failover") < names.index("virtio_net")
    assert names.index("9pnet") < names.index("9p")
    assert len(set(names)) == len(names)
    assert modules.lacking(folder, ("virtio_net", "no_such_module", "ext4")) == ["no_such_module"]


def test_names_behind_an_interface_fit_the_kernel() -> None:
    assert len(tap_bridge.tap_name(999)) < 16
