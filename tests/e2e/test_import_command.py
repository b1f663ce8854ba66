"""``airloom import``, and laboratories of other tools given to ``airloom check`` and ``airloom run``."""

from __future__ import annotations

import pytest

from helpers import REPOSITORY

IMPORTS = REPOSITORY / "tests" / "data" / "imports"
PAIR = """\
name: pair
topology:
  nodes:
    a:
      kind: linux
      exec:
        - ip addr add 10.9.0.1/24 dev eth1
        - ping -c 3 -i 0.2 -W 2 10.9.0.2
    b:
      kind: linux
      exec: [ip addr add 10.9.0.2/24 dev eth1]
  links:
    - endpoints: ["a:eth1", "b:eth1"]
      mtu: 1500
      delay: 20ms
"""


def test_a_scenario_is_written_with_what_it_leaves_out(shell):
    done = shell.run("import", str(IMPORTS / "clab"), "--kind", "netns", "--out", "campus.yaml")
    assert done.returncode == 0, done.stderr
    assert "the programs are those of this machine" in done.stdout + done.stderr
    text = (shell.folder / "campus.yaml").read_text()
    assert text.startswith("# From campus.clab.yml, by `airloom import`.\n")
    assert f"source: {IMPORTS / 'clab' / 'frr.conf'}" in text, "its folder is another one"
    assert shell.run("check", "campus.yaml").returncode == 0


def test_what_is_no_laboratory_is_one_line(shell):
    (shell.folder / "x.gns3").write_text('{"project_id": "a", "topology": {}, "revision": 9}')
    done = shell.run("import", "x.gns3")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "the file is a GNS3 project" in line
    assert "import.format" in line


@pytest.mark.quick
def test_a_laboratory_of_containerlab_runs_as_it_is(shell):
    (shell.folder / "pair.clab.yml").write_text(PAIR)
    done = shell.run("run", "pair.clab.yml", "--out", "out")
    assert done.returncode == 0, done.stderr
    log = next((shell.folder / "out").glob("nodes/a/a-exec*.log")).read_text()
    assert "3 received" in log
    times = [float(part.split()[0]) for part in log.split("time=")[1:]]
    assert len(times) == 3
    assert min(times) >= 40, "the delay of the link, there and back"
