"""``airloom image make``: an image of this machine's programs, and a scenario that has it."""

from __future__ import annotations

import json
import shutil

import pytest


def test_its_help_teaches(shell):
    done = shell.run("image", "make", "--help")
    assert done.returncode == 0
    assert "airloom image make own.oci sh ping iperf3 python3" in done.stdout
    assert "image: own.oci" in done.stdout


def test_mistakes_are_one_line_and_leave_nothing(shell):
    done = shell.run("image", "make", "own.oci", "sh", "no-such-program")
    assert done.returncode == 3
    (line,) = done.stderr.splitlines()
    assert "not on this machine: no-such-program" in line
    assert not (shell.folder / "own.oci").exists()
    done = shell.run("image", "make", str(shell.temporary.parent), "sh")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "name another folder" in line


@pytest.mark.skipif(shutil.which("skopeo") is None, reason="skopeo is not installed")
def test_a_registry_that_cannot_be_reached_is_one_line(shell):
    shell.env["XDG_CACHE_HOME"] = str(shell.folder / "cache")
    done = shell.run("image", "pull", "docker://localhost:1/web:1")
    assert done.returncode == 3
    (line,) = done.stderr.splitlines()
    assert "connection refused" in line
    assert "skopeo copy docker://localhost:1/web:1 oci:image:latest" in line


@pytest.mark.quick
@pytest.mark.world
def test_an_image_is_made_and_run(shell, scenario):
    shell.env["XDG_CACHE_HOME"] = str(shell.folder / "cache")
    made = shell.run("image", "make", "own.oci", "sh", "ping")
    assert made.returncode == 0
    assert made.stdout.startswith("own.oci: 2 programs, ")
    assert made.stderr == ""
    file = scenario(
        "name: two\nkind: container\nimage: own.oci\nnodes: {a: {}, b: {}}\nlinks: [{ends: [a, b]}]\n"
        "measurements: [{name: rtt, ping: {from: a, to: b, count: 3, interval: 100 ms}}]\n"
    )
    done = shell.run("run", file, "--out", "out")
    assert done.returncode == 0, done.stderr
    result = json.loads((shell.folder / "out" / "result.json").read_text())
    assert result["kinds"] == ["container"]
    shell.gone()
