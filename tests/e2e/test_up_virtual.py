"""``airloom up --time virtual``: a prompt at which time stands still, and ``replay`` of a run."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from helpers.kernels import BUILT, needs_virtual_time
from helpers.ordinary import ordinary_user
from helpers.terminal import talk

pytestmark = [pytest.mark.world, pytest.mark.timeout(300)]

PAIR = (
    f"name: pair\nguest: {{kernel: {BUILT}}}\nnodes: {{h1: {{}}, h2: {{}}}}\n"
    "links: [{ends: [h1, h2], rate: 10 Mbit/s, delay: 10 ms}]\n"
)
SCRIPT = """\
now
h1 ping -c 2 -i 0.5 h2
until 2 s
now
link h1 h2 set delay=50ms
h1 ping -c 1 h2
continue 1500 ms
h1 ping -i 4 h2 > /dev/null &
until 10 s
step 2
until h2 test -d /tmp
pingall
now
"""


@needs_virtual_time
def test_a_script_says_the_same_each_time(shell, scenario):
    said = []
    for out in ("one", "two"):
        done = shell.run("up", scenario(PAIR), "--time", "virtual", "--out", out, input=SCRIPT)
        assert done.returncode == 0, done.stderr + done.stdout
        said.append(done.stdout.replace(f"results in {out}", "results"))
    assert said[0] == said[1]
    assert said[0].startswith("0.000000000 s\n")
    assert "\n2.000000000 s\n" in said[0]
    assert "time=100 ms" in said[0]
    assert re.search(r"^1\d\.\d{9} s  from h\d:eth0 +\d+ octets$", said[0], re.MULTILINE)
    assert "2 of 2 received" in said[0]
    assert "verdict: valid" in said[0]
    shell.gone()


@needs_virtual_time
def test_another_terminal_lets_time_pass_and_is_noted(shell, scenario):
    up = shell.start("up", scenario(PAIR), "--time", "virtual", "--out", "out", stdin=subprocess.PIPE)
    try:
        up.stdin.write("now\n")
        up.stdin.flush()
        assert up.stdout.readline() == "0.000000000 s\n"
        lab = ("--lab", str(up.pid))
        done = shell.run("exec", *lab, "h1", "--", "sh", "-c", "sleep 3; echo there; exit 4")
        assert (done.returncode, done.stdout) == (4, "there\n"), done.stderr
        up.stdin.write("now\nnode h1 pause\nnode h1 resume\nnode h1 start\nverdict\nexit\n")
        up.stdin.flush()
        said = up.communicate(timeout=100)[0]
    finally:
        up.kill()
    assert said.startswith("3.00"), said
    assert "'start' is not built for virtual time" in said
    for word in ("pause", "resume"):
        assert re.search(rf"virtual.touched: at [\d.]+ s h1 was told by hand: {word}", said)
    assert re.search(r"virtual.touched: at [\d.]+ s sh was started in h1 from another terminal", said)
    shell.gone()


@needs_virtual_time
def test_time_passes_until_it_is_stopped_at_the_terminal(shell, scenario):
    code, heard = talk(
        shell,
        ["up", scenario(PAIR), "--time", "virtual", "--out", "out"],
        [
            ("airloom 0.000000000 s> ", "continue\r"),
            ("virtual seconds a second", "\x03\r"),
            ("s> ", "exit\r"),
        ],
    )
    assert code == 0, heard
    shell.gone()


ORDINARY = """
import airloom
with airloom.Lab("v.yaml", time="virtual", out="lab") as lab:
    print(lab.run_for("1 s"))
    lab.link("h1", "h2").set(delay="30 ms")
    print(lab.run_until(lambda: lab["h1"].run("ping -c 1 h2").ok) == lab.now())
    lab["h1"].start("ping -c 1 h2")
    print(lab.step()[0].port)
"""


@needs_virtual_time
def test_an_ordinary_user_steers_a_laboratory_in_another_process():
    with ordinary_user() as user:
        kernel = user.folder / "linux"
        shutil.copy(BUILT, kernel)
        kernel.chmod(0o755)
        (user.folder / "v.yaml").write_text(PAIR.replace(str(BUILT), str(kernel)))
        done = user.script(ORDINARY)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["1000000000", "True", "h1:eth0"]


@needs_virtual_time
def test_a_run_is_replayed_up_to_an_instant(shell, scenario):
    parts = "measurements: [{name: rtt, ping: {from: h1, to: h2, count: 5, interval: 1 s}}]\n"
    done = shell.run("run", scenario(PAIR + parts), "--time", "virtual", "--quiet", "--out", "run")
    assert done.returncode == 0, done.stderr
    for words, message in (
        (["run"], "a run is replayed up to a time"),
        (["run", "--until", "1 h"], "is not within the run"),
        (["run/scenario.yaml", "--until", "1 s"], "is not the folder of a run"),
        (["run/scenario.yaml"], "which interface?"),
    ):
        refused = shell.run("replay", *words)
        assert (refused.returncode, message in refused.stderr) == (2, True), refused.stderr
    words = ("replay", "run", "--until", "2500 ms", "--out", "again")
    done = shell.run(*words, input="now\nstep\nexit\n")
    assert done.returncode == 0, done.stderr
    assert "\n2.500000000 s\n3.0" in done.stdout
    assert "problem" not in done.stdout
    shell.gone()
