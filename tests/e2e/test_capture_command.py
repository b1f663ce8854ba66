"""``airloom capture`` and ``airloom extcap``: frames of laboratories and runs, read while they are up."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from airloom.cli.extcap import folder_of
from airloom.host import pcap
from helpers.terminal import talk

pytestmark = [pytest.mark.world, pytest.mark.timeout(180)]

TSHARK = pytest.mark.skipif(shutil.which("tshark") is None, reason="sudo apt-get install tshark")
STAR = (
    "name: star\nnodes: {h1: {}, h2: {}}\nswitches: {s1: {}, s2: {}}\n"
    "links: [{ends: [h1, s1]}, {ends: [s1, s2]}, {ends: [h2, s2], delay: 5 ms}]\n"
)
AIR = """\
media: {air: {radio: {phy: 802.11a, channel: 36, rate: 24 Mbit/s}}}
nodes:
  base: {position: [0 m, 0 m], radios: {wlan0: }}
  walker: {position: [5 m, 5 m], radios: {wlan0: }}
"""
PINGED = "measurements: [{name: echo, ping: {from: h1, to: h2, count: 3000, interval: 20 ms}}]\n"


@pytest.fixture
def up(shell, scenario):
    """A laboratory that is up, and in which h1 pings h2."""
    text = STAR + "programs: [{node: h1, run: ping -q -i 0.02 h2, until_end: true}]\n"
    with shell.up(scenario(text), "h1", "h2") as process:
        yield process


def echoes(path: Path, port: str) -> list[pcap.Captured]:
    """The ICMP packets of a port in a file that is complete so far."""
    return [one for one in pcap.frames(path) if one.port == port and one.octets[23:24] == b"\x01"]


def has_octets(path: Path, count: int) -> bool:
    return path.exists() and path.stat().st_size > count


def test_a_link_of_a_laboratory_into_a_file_until_ctrl_c(shell, up):
    path = shell.folder / "link.pcapng"
    client = shell.start("capture", "--lab", str(up.pid), "h1-s1", "--out", str(path))
    shell.wait_until(lambda: has_octets(path, 3000), "it captures")
    client.send_signal(signal.SIGINT)
    _, said = client.communicate(timeout=60)
    assert client.returncode == 0, said
    assert said.startswith("captured ")
    assert "dropped" not in said
    got = echoes(path, "h1:eth0")
    assert {one.direction for one in got} == {"in", "out"}
    # Times are those of the model: there and back is 10 ms, however late this machine is.
    out = {one.octets[38:42]: one.at for one in got if one.direction == "out"}
    # The first reply may be to a request from before the capture.
    replies = [one for one in got if one.direction == "in" and one.octets[38:42] in out]
    trips = [one.at - out[one.octets[38:42]] for one in replies]
    assert trips
    assert min(trips) >= 10_000_000


def test_a_capture_to_a_pipe_ends_with_its_reader_and_another_one_with_the_laboratory(shell, up):
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as stream:
        client = shell.start("capture", "--lab", str(up.pid), "h2", "--live", stdout=stream)
    path = shell.folder / "all.pcapng"
    other = shell.start("capture", "--lab", str(up.pid), "--snap", "60", "--out", str(path))
    octets = b""
    while len(octets) < 2000:
        octets += os.read(reading, 4096)
    os.close(reading)
    assert b"h2:eth0" in octets
    _, said = client.communicate(timeout=60)
    assert client.returncode == 0, said
    shell.wait_until(lambda: has_octets(path, 2000), "it captures")
    up.stdin.write("exit\n")
    up.stdin.flush()
    _, said = other.communicate(timeout=60)
    assert other.returncode == 0, said
    got = list(pcap.frames(path))
    assert {one.port for one in got} == {"h1:eth0", "h2:eth0"}
    assert max(len(one.octets) for one in got) == 60
    assert max(one.length for one in got) == 98


def test_a_run_can_be_captured_and_not_be_entered(shell, scenario):
    run = shell.start("run", scenario(STAR + PINGED), "--out", "results", "--quiet")
    path = shell.folder / "run.pcapng"
    words = ("capture", "--lab", str(run.pid), "h1", "--out", str(path))
    shell.wait_until(lambda: shell.run(*words[:3], "h9").returncode == 2, "the run is up")
    client = shell.start(*words)
    shell.wait_until(lambda: has_octets(path, 3000), "it captures")
    entered = shell.run("exec", "--lab", str(run.pid), "h1", "--", "true")
    assert entered.returncode == 1
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=60)
    _, said = client.communicate(timeout=60)
    assert client.returncode == 0, said
    assert echoes(path, "h1:eth0")
    shell.gone()


def test_wrong_words_are_refused_before_anything_is_written(shell, up):
    lab = ("--lab", str(up.pid))
    cases = [
        (("h1:eth9",), "did you mean 'h1:eth0'"),
        (("s1-s2",), "no frame of a port, node, link or medium 's1-s2'"),
        (("h1", "--snap", "3"), "the snap length is not from 14"),
        (("h1", "--live"), "leave one of them out"),
    ]
    for words, message in cases:
        done = shell.run("capture", *lab, *words, "--out", "none.pcapng")
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr
    assert not (shell.folder / "none.pcapng").exists()
    (shell.folder / "scenario.txt").write_text("mine")
    done = shell.run("capture", *lab, "--out", "scenario.txt")
    assert (done.returncode, "is not a capture" in done.stderr) == (2, True), done.stderr
    code, heard = talk(shell, ["capture", *lab], [("not for a terminal", "")])
    assert code == 2, heard


def test_without_a_laboratory_there_is_nothing_to_capture(shell):
    done = shell.run("capture", "--lab", "nobody", "--out", "none.pcapng")
    assert done.returncode == 1
    assert "airloom up FILE" in done.stderr or "no laboratory is called nobody" in done.stderr


@TSHARK
def test_a_filter_of_libpcap(shell, up):
    lab = ("--lab", str(up.pid))
    wrong = shell.run("capture", *lab, "--filter", "tcp prot 80", "--out", "none.pcapng")
    assert wrong.returncode == 2
    assert "syntax error" in wrong.stderr
    path = shell.folder / "filtered.pcapng"
    wanted = "icmp[icmptype] == icmp-echoreply"
    client = shell.start("capture", *lab, "h1", "--filter", wanted, "--out", str(path))
    shell.wait_until(lambda: has_octets(path, 2000), "it captures")
    client.send_signal(signal.SIGTERM)
    _, said = client.communicate(timeout=60)
    assert client.returncode == 0, said
    got = list(pcap.frames(path))
    assert got
    assert {(one.octets[34], one.direction) for one in got} == {(0, "in")}


@TSHARK
def test_tshark_lists_and_captures_interfaces_of_laboratories(shell, scenario):
    # Others of this machine are listed too. One of the same name would change names of interfaces.
    name = f"star-{os.getpid()}"
    wired = STAR.replace("nodes: {h1: {}, h2: {}}\n", "").replace("name: star", f"name: {name}")
    text = (
        AIR
        + "  h1: {}\n  h2: {}\n"
        + wired
        + (
            "programs:\n"
            "  - {node: h1, run: ping -q -i 0.02 h2, until_end: true}\n"
            "  - {node: walker, run: ping -q -i 0.02 base, until_end: true}\n"
        )
    )
    up = shell.start("up", scenario(text), "--out", "results", stdin=subprocess.PIPE)
    up.stdin.write("nodes\n")
    up.stdin.flush()
    assert up.stdout.readline().startswith("nodes:")
    # This machine's Wireshark has one folder, which others use: this test sees its own in that place.
    folder = shell.folder / "extcap"
    env = {**shell.env, "HOME": str(shell.folder)}
    said = subprocess.run(["tshark", "-G", "folders"], env=env, capture_output=True, text=True, timeout=60)
    place = folder_of(said.stdout)
    assert place is not None
    place.mkdir(parents=True, exist_ok=True)
    seen = ["unshare", "-m", "sh", "-c", 'mount --bind "$0" "$1" && shift && exec tshark "$@"']

    def tshark(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*seen, folder, place, *words],
            cwd=shell.folder,
            env=env,
            capture_output=True,
            text=True,
            timeout=60,
        )

    assert shell.run("extcap", "install", "--folder", str(folder)).returncode == 0
    lines = tshark("-D").stdout.splitlines()
    ours = [line.split()[1] for line in lines if f"airloom:{name}:" in line]
    names = {name.partition(":")[2].partition(":")[2]: name for name in ours}
    assert {"h1:eth0", "h2:eth0", "base:wlan0", "walker:wlan0", "air"} <= set(names)
    fields = ("-T", "fields", "-e", "frame.interface_name", "-e", "icmp.type", "-e", "wlan.fc.type")
    wired_frames = tshark("-i", names["h1:eth0"], "-f", "icmp", "-c", "4", *fields)
    got = [line.split("\t") for line in wired_frames.stdout.splitlines()]
    assert {row[1] for row in got} == {"0", "8"}, wired_frames.stderr
    on_air = tshark("-i", names["air"], "-c", "4", *fields)
    got = [line.split("\t") for line in on_air.stdout.splitlines()]
    assert len(got) == 4, on_air.stderr
    assert all(row[2] for row in got)
    up.stdin.write("exit\n")
    up.stdin.flush()
    up.communicate(timeout=60)
    shell.gone()


@TSHARK
def test_the_folder_is_the_one_that_tshark_says():
    said = subprocess.run(["tshark", "-G", "folders"], capture_output=True, text=True, timeout=60).stdout
    found = folder_of(said)
    assert found is not None
    assert found.name == "extcap"
    assert str(found) in said
    newer = said + "Personal Extcap path:\t/home/me/.local/lib/wireshark/extcap\n"
    assert str(folder_of(newer)) == "/home/me/.local/lib/wireshark/extcap"
    assert folder_of("Temp:\t/tmp\n") is None


def test_the_program_for_wireshark_is_installed_and_removed(shell):
    folder = shell.folder / "extcap"
    assert shell.run("extcap", "install", "--folder", str(folder)).returncode == 0
    program = folder / "airloom"
    listed = subprocess.run(
        [program, "--extcap-interfaces", "--extcap-version=4.0"], capture_output=True, text=True, timeout=60
    )
    assert listed.stdout.startswith("extcap {version="), listed.stderr
    assert shell.run("extcap", "remove", "--folder", str(folder)).returncode == 0
    assert not program.exists()
    program.write_text("mine")
    for word in ("install", "remove"):
        assert shell.run("extcap", word, "--folder", str(folder)).returncode == 2
    assert program.read_text() == "mine"
