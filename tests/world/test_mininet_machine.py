"""A node of Mininet with `inNamespace=False`: in the network of the machine, here one of the test's own."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.world,
    pytest.mark.skipif(os.geteuid() != 0, reason="the machine's own network is root's"),
]


def on_a_machine(script: str, tmp_path: Path) -> list[str]:
    """What a script prints, line by line, on a machine whose network has a loopback and nothing else."""
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(script))
    words = f"ip link set lo up && exec {shlex.quote(sys.executable)} {shlex.quote(str(path))}"
    ran = subprocess.run(
        ["unshare", "--net", "sh", "-c", words], capture_output=True, text=True, timeout=90, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def test_the_machine_and_the_hosts_reach_each_other_and_no_interface_is_left(tmp_path: Path) -> None:
    script = """
        import subprocess
        from airloom.mininet.net import Mininet
        from airloom.mininet.topo import SingleSwitchTopo

        def machine(words):
            return subprocess.run(words.split(), capture_output=True, text=True).stdout

        net = Mininet(topo=SingleSwitchTopo(1))
        root = net.addHost("root", inNamespace=False)
        net.addLink(root, net["s1"])
        root.setIP("10.0.0.2/8")
        net.start()
        print("1 received" in root.cmd("ping -c1", net["h1"].IP()))
        print("1 received" in machine("ping -c1 10.0.0.1"))
        print("1 received" in net["h1"].cmd("ping -c1 10.0.0.2"))
        print("root-eth0" in machine("ip link"))
        net.stop()
        print("root-eth0" in machine("ip link"))
        """
    assert on_a_machine(script, tmp_path) == ["True", "True", "True", "True", "False"]


def test_its_interface_goes_with_a_script_that_is_killed(tmp_path: Path) -> None:
    killed = tmp_path / "killed.py"
    killed.write_text(
        textwrap.dedent(
            """
            import os, signal, subprocess
            from airloom.mininet.node import Host

            Host("h1").linkTo(Host("root", inNamespace=False))
            print("root-eth0" in subprocess.check_output(["ip", "link"], text=True), flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
            """
        )
    )
    script = f"""
        import subprocess, sys, time

        child = subprocess.run([sys.executable, {str(killed)!r}], capture_output=True, text=True)
        print(child.stdout.strip(), child.returncode)
        until = time.monotonic() + 20
        while "root-eth0" in (links := subprocess.check_output(["ip", "link"], text=True)):
            if time.monotonic() > until:
                break
            time.sleep(0.05)
        print("root-eth0" in links)
        """
    assert on_a_machine(script, tmp_path) == ["True -9", "False"]


def test_an_interface_that_the_machine_has_is_not_taken(tmp_path: Path) -> None:
    script = """
        import subprocess
        from airloom.errors import LabError
        from airloom.mininet.node import Host

        subprocess.run("ip tuntap add root-eth0 mode tap".split(), check=True)
        try:
            Host("h1").linkTo(Host("root", inNamespace=False))
        except LabError as error:
            print(error.message)
        """
    assert on_a_machine(script, tmp_path) == ["interface root-eth0: Device or resource busy"]


@pytest.mark.skipif(
    shutil.which("ovs-vswitchd", path="/usr/sbin:/usr/bin") is None
    or shutil.which("ovs-testcontroller") is None,
    reason="sudo apt-get install openvswitch-switch openvswitch-testcontroller",
)
def test_switches_reach_their_controller_over_a_network_that_was_made_for_it(tmp_path: Path) -> None:
    script = """
        from airloom.mininet.net import Mininet
        from airloom.mininet.node import Controller, OVSSwitch
        from airloom.mininet.topo import SingleSwitchTopo

        control = Mininet(ipBase="192.168.123.0/24", controller=None)
        c0 = control.addHost("c0", cls=Controller)
        control.addLink(c0, control.addHost("root", inNamespace=False))
        control.start()
        net = Mininet(topo=SingleSwitchTopo(2), switch=OVSSwitch, controller=None, waitConnected=True)
        net.addController(c0)
        net.start()
        print(net.pingAll())
        print("192.168.123.2" in c0.cmd("ss -Htn state established sport = :6653"))
        control.configLinkStatus("c0", "root", "down")
        net["s1"].dpctl("del-flows")
        print(net.pingAll(timeout=0.5))
        net.stop()
        control.stop()
        """
    assert [line for line in on_a_machine(script, tmp_path) if line[0] not in "*h"] == [
        "0.0",
        "True",
        "100.0",
    ]
