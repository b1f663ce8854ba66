"""Every example is a scenario that passes the check, and the short ones do what they claim."""

from __future__ import annotations

import json
import os
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

from airloom.cli import app
from helpers import REPOSITORY
from helpers.kernels import BUILT, needs_built, needs_option, needs_virtual_time

FOLDER = REPOSITORY / "examples"
EXAMPLES = sorted(FOLDER.glob("*.yaml"))

NEEDS = {
    "babel": "babeld",
    "mobile-babel": "babeld",
    "mobile-batman": "/usr/sbin/batmand",
    "mobile-batman-adv": "/usr/sbin/batctl",
    "ospf": "/usr/lib/frr/ospfd",
    "constellation": "/usr/lib/frr/ospfd",
    "multicast": "/usr/lib/frr/pimd",
    "openflow": "/usr/sbin/ovs-vswitchd",
    "sliver": "linux.uml",
    "wpa2": "/usr/sbin/hostapd",
    "wpa3": "/usr/sbin/hostapd",
    "roaming": "/usr/sbin/hostapd",
    "mesh": "/usr/sbin/iw",
    "location": "/usr/sbin/iw",
}
"""Programs that an example runs and not every machine has."""
SHORTER = {"chain": ("measurements[backward].iperf3.duration=1 s",)}
"""Settings for what an example measures longer than its claims need."""

pytestmark = pytest.mark.world


def require(name: str) -> None:
    """Skips what this machine cannot run."""
    if name not in NEEDS:
        return
    program = NEEDS[name]
    if shutil.which(program) is None and not os.access(program, os.X_OK):
        pytest.skip(f"{program} is not installed")
    if name == "openflow" and find_spec("os_ken") is None:
        pytest.skip("os-ken is not installed: pip install 'airloom[sdn]'")


def ran(shell, name: str, out: Path, *words: str) -> dict:
    """The result of an example; the run may be degraded on a busy machine, but it must end."""
    path = FOLDER / f"{name}.yaml"
    done = shell.run("run", str(path), "--out", str(out), "-q", *words)
    assert done.returncode == 0, done.stderr
    return json.loads((out / "result.json").read_text())


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_passes_the_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    # In this process: to start one for each example takes far longer than the check.
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["check", str(path)])
    assert done.exit_code == 0, done.output
    assert not any(tmp_path.iterdir()), "a check leaves nothing"


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("chain", marks=pytest.mark.measures),
        pytest.param("hidden-terminals", marks=pytest.mark.measures),
        pytest.param("80211n", marks=pytest.mark.measures),
        pytest.param("80211n-aggregation", marks=pytest.mark.measures),
        "babel",
        "ospf",
        "constellation",
        pytest.param("collision-free", marks=pytest.mark.measures),
        "mobile-babel",
        "mobile-batman",
        "openflow",
        "oml",
        "time-slots",
        "hopping-slices",
        "coded-slices",
        pytest.param("radio-handover", marks=pytest.mark.measures),
        pytest.param("vlans", marks=pytest.mark.measures),
        pytest.param("fat-tree", marks=pytest.mark.measures),
        pytest.param("sliver", marks=pytest.mark.measures),
        pytest.param("asymmetric", marks=pytest.mark.measures),
    ],
)
def test_an_example_does_what_it_claims(shell, name: str) -> None:
    holds(shell, name, *(word for setting in SHORTER.get(name, ()) for word in ("--set", setting)))


@pytest.mark.timeout(400)
@needs_built
def test_the_kernels_own_mesh_does_what_its_example_claims(shell) -> None:
    folder = holds(shell, "mobile-batman-adv", "--set", f"guest.kernel={BUILT}")
    neighbours = (folder / "nodes/n1/neighbours.log").read_text()
    assert "B.A.T.M.A.N. adv" in neighbours


@pytest.mark.timeout(400)
@needs_virtual_time
@needs_option("CONFIG_TCP_CONG_DCTCP", b"dctcp")
def test_dctcp_keeps_the_queue_at_the_threshold(shell) -> None:
    holds(shell, "dctcp", "--set", f"guest.kernel={BUILT}")


@pytest.mark.timeout(400)
@needs_virtual_time
def test_tcp_over_80211n_with_and_without_aggregation(shell) -> None:
    holds(shell, "80211n-tcp", "--set", f"guest.kernel={BUILT}")


@pytest.mark.timeout(400)
@needs_virtual_time
@needs_option("CONFIG_MPLS_ROUTING", b"mpls")
def test_the_middle_of_a_path_knows_labels_only(shell) -> None:
    folder = holds(shell, "mpls", "--set", f"guest.kernel={BUILT}")
    said = (folder / "nodes/r2/routes.log").read_text().splitlines()
    networks = {line.split()[0] for line in said if "/30" in line}
    assert networks == {"10.0.0.4/30", "10.0.0.8/30"}, "those of its links and of no host"
    assert {"100 as to 200", "300 as to 400"} <= {line.partition(" via ")[0] for line in said}


@pytest.mark.timeout(400)
@needs_built
def test_a_station_joins_by_wpa3(shell) -> None:
    folder = holds(shell, "wpa3", "--set", f"guest.kernel={BUILT}")
    status = (folder / "nodes/station/status.log").read_text().splitlines()
    assert {"key_mgmt=SAE", "pmf=2", "wpa_state=COMPLETED"} <= set(status)


@pytest.mark.timeout(400)
@needs_built
def test_a_guest_finds_its_place_by_the_signals_of_a_scan(shell) -> None:
    """The program compares places itself, and fails the run if it is too far off."""
    require("location")
    out = shell.folder / "out"
    ran(shell, "location", out, "--set", f"guest.kernel={BUILT}")
    for name, place in (("first", "20 m, 15 m"), ("second", "45 m, 40 m")):
        said = (out / f"nodes/walker/{name}.log").read_text()
        assert f"away from {place}; heard: library -" in said
    shell.gone()


def holds(shell, name: str, *words: str) -> Path:
    """Asserts that the claims of an example hold; the folder of its results."""
    require(name)
    out = shell.folder / "out"
    result = ran(shell, name, out, *words)
    assert result["claims"], "an example makes claims"
    assert not [one for one in result["claims"] if one["outcome"] == "fails"]
    shell.gone()
    return out


def test_programs_in_nodes_do_not_look_for_the_hosts_temporary_folder(shell, scenario) -> None:
    text = (
        "name: tmp\nnodes: {a: {}, b: {}}\nlinks: [{ends: [a, b]}]\n"
        "programs: [{node: a, name: temporary, run: 'touch \"$(mktemp)\"'}]\n"
    )
    done = shell.run("run", scenario(text), "--out", "results", "-q")
    assert done.returncode == 0, done.stderr
    shell.gone()
