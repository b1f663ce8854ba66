"""Containers with an image of this machine's own programs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import airloom
from airloom import Scenario
from airloom.experiments import usable_kinds
from airloom.experiments.extent import Extent
from airloom.images import own

pytestmark = pytest.mark.world


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def pair(image: Path, **more: object) -> Scenario:
    return Scenario.model_validate(
        {
            "name": "pair",
            "kind": "container",
            "image": str(image),
            "nodes": {"a": {}, "b": {}},
            "links": [{"ends": ["a", "b"], "delay": "5 ms", "rate": "20 Mbit/s"}],
            **more,
        }
    )


def test_its_programs_run_and_the_hosts_files_are_not_there(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the host")
    own.make(tmp_path / "image", ["sh", "cat", "ping", "iperf3", "python3", "ip", "ss"])
    with airloom.Lab(pair(tmp_path / "image"), out=tmp_path / "out") as lab:
        code = "import json, socket, ssl, ctypes; print(json.dumps(socket.gethostbyname('b')))"
        assert lab["a"].run(["python3", "-c", code], check=True).stdout == f'"{lab.addresses["b"]}"\n'
        assert "rtt" in lab["a"].run("ping -c 2 b", check=True).stdout
        assert lab.addresses["a"] in lab["a"].run("ip address; ss -a", check=True).stdout
        for path in (secret, Path(__file__), Path(airloom.__file__)):
            assert not lab["a"].run(["cat", str(path)]).ok
        users = lab["a"].run("cat /etc/passwd", check=True).stdout
        assert [line.partition(":")[0] for line in users.splitlines()] == ["root", "nobody"]
        assert not lab["a"].run(["python3", "-c", "import pip"]).ok


def test_measurements_run_in_it(tmp_path: Path) -> None:
    own.make(tmp_path / "image", ["ping", "iperf3"])
    measurements = [
        {"name": "rtt", "ping": {"from": "a", "to": "b", "count": 5, "interval": "100 ms"}},
        {"name": "tcp", "iperf3": {"from": "a", "to": "b", "duration": "2 s"}},
    ]
    result = airloom.run(pair(tmp_path / "image", measurements=measurements), out=tmp_path / "out")
    found = {(one.name, one.metric): one.mean or 0.0 for one in result.result.measurements}
    assert 10e6 <= found["rtt", "rtt_min"] < 15e6
    assert 10e6 < found["tcp", "throughput"] < 20e6


def test_a_library_from_a_place_of_its_own_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("a C compiler is needed: apt-get install gcc")
    (tmp_path / "place").mkdir()
    (tmp_path / "one.c").write_text("int one(void) { return 41; }\n")
    (tmp_path / "main.c").write_text("int one(void); int main(void) { return one() + 1; }\n")
    library = ["-shared", "-fPIC", "-o", "place/libone.so", "one.c"]
    for words in (library, ["-o", "tool", "main.c", "-Lplace", "-lone"]):
        subprocess.run([compiler, *words], cwd=tmp_path, check=True)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path / "place"))
    own.make(tmp_path / "image", [str(tmp_path / "tool")])
    monkeypatch.delenv("LD_LIBRARY_PATH")
    with airloom.Lab(pair(tmp_path / "image"), out=tmp_path / "out") as lab:
        assert lab["a"].run(["tool"]).code == 42


def test_containers_are_among_the_kinds_that_work(tmp_path: Path) -> None:
    others = [kind for kind in usable_kinds.every() if kind != "container"]
    assert usable_kinds.kinds(tmp_path, lambda _: None, Extent.QUICK, without=others) == (["container"], {})
