"""Images of this machine's own programs: what is gathered, that it stays the same, what is refused."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from airloom import images
from airloom.compare.kinds import of_kind
from airloom.errors import HostError
from airloom.experiments import capacity_search
from airloom.images import ImageError, own
from airloom.images.gather import Entry, File, Link, gather
from airloom.planning.gate import check
from airloom.planning.machine import default_image
from airloom.scenario.model import Scenario

MACHINE = os.uname().machine


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def program(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def inside(entries: dict[str, Entry], path: str) -> Entry:
    """What a node would find at a path, its links followed."""
    for _ in range(40):
        parts = Path(path).parts
        for number in range(2, len(parts) + 1):
            here = os.path.join(*parts[:number])
            found = entries[here]
            if isinstance(found, Link):
                path = os.path.normpath(os.path.join(os.path.dirname(here), found.target, *parts[number:]))
                break
        else:
            return found
    raise AssertionError(f"links of {path} go round in a circle")


def test_a_program_brings_its_libraries_and_loader() -> None:
    entries = gather(["ping"])
    needed = subprocess.run(["ldd", shutil.which("ping") or ""], capture_output=True, text=True, check=True)
    paths = re.findall(r"(/\S+) \(0x", needed.stdout)
    assert len(paths) >= 2
    for path in ("/bin/ping", *paths):
        assert isinstance(inside(entries, path), File), path
    assert not any(path.startswith("/home") for path in entries)


def test_a_script_brings_what_stands_in_its_first_line(tmp_path: Path) -> None:
    plain = gather([program(tmp_path / "plain", "#!/bin/cat\n")])
    assert isinstance(inside(plain, str(tmp_path / "plain")), File)
    assert isinstance(inside(plain, "/usr/local/bin/plain"), File)
    assert isinstance(inside(plain, "/bin/cat"), File)
    by_env = gather([program(tmp_path / "by-env", "#!/usr/bin/env -S A=1 sleep 1\n")])
    assert isinstance(inside(by_env, "/usr/bin/env"), File)
    assert isinstance(inside(by_env, "/bin/sleep"), File)


def test_python_brings_its_library_without_what_was_installed_beside_it() -> None:
    entries = gather(["python3"])
    names = {path for path in entries if re.search(r"/python3\.\d+/", path)}
    assert any(path.endswith("/json/decoder.py") for path in names)
    assert any(path.endswith("/socket.py") for path in names)
    assert not [path for path in names if re.search(r"site-packages|dist-packages|/tests?/|\.opt-", path)]


def test_a_file_and_a_folder_are_taken_in_on_request(tmp_path: Path) -> None:
    (tmp_path / "data" / "deep").mkdir(parents=True)
    (tmp_path / "data" / "deep" / "x").write_text("1")
    (tmp_path / "data" / "dangling").symlink_to("nowhere")
    (tmp_path / "link").symlink_to("data")
    entries = gather([], [str(tmp_path / "link")])
    assert isinstance(inside(entries, str(tmp_path / "link" / "deep" / "x")), File)
    assert entries[str(tmp_path / "data" / "dangling")] == Link("nowhere")
    with pytest.raises(ImageError, match=r"--with: .*nothing cannot be added: No such file or directory"):
        gather([], [str(tmp_path / "nothing")])


def test_missing_programs_are_named_together_with_their_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airloom.host.programs._MORE", ())
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(HostError) as caught:
        gather(["iperf3", "ss", "ip", "strange"])
    assert str(caught.value) == (
        "not on this machine: iperf3, ss, ip, strange (sudo apt-get install iperf3 iproute2; "
        "install the package that has strange, or give a path) [host.program.missing]"
    )
    assert caught.value.exit_code == 3


def test_the_same_programs_give_the_same_image(tmp_path: Path) -> None:
    made = [own.make(tmp_path / name, ["sh", "ping"]) for name in ("a", "b")]
    assert made[0] == made[1]
    assert made[0].programs == 2
    trees = [
        {
            path.relative_to(tmp_path / name): path.read_bytes()
            for path in (tmp_path / name).rglob("*")
            if path.is_file()
        }
        for name in ("a", "b")
    ]
    assert trees[0] == trees[1]
    first, second = (images.read(str(tmp_path / name), MACHINE) for name in ("a", "b"))
    assert first.key == second.key
    assert dict(first.env) == {"LANG": "C.UTF-8"}


def test_an_image_that_is_kept_follows_its_programs(tmp_path: Path) -> None:
    tool = program(tmp_path / "tool", "#!/bin/sh\necho 1\n")
    first = own.of([tool])
    assert own.of([tool]) == first
    program(tmp_path / "tool", "#!/bin/sh\necho other\n")
    own._gathered.cache_clear()  # as another run would find it
    assert own.of([tool]) != first


def test_two_processes_make_one_image_at_once(cache: Path) -> None:
    command = [sys.executable, "-c", "from airloom.images import own; print(own.of(['sh', 'sleep']))"]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = {process.communicate(timeout=60)[0].strip() for process in running}
    assert len(said) == 1
    (path,) = said
    assert images.read(path, MACHINE).layers
    assert [one.name for one in (cache / "airloom" / "own").iterdir() if one.is_dir()] == [Path(path).name]


def test_only_an_image_that_was_made_here_is_replaced(tmp_path: Path) -> None:
    own.make(tmp_path / "image", ["sh"])
    before = images.read(str(tmp_path / "image"), MACHINE).key
    own.make(tmp_path / "image", ["sh", "sleep"])
    assert images.read(str(tmp_path / "image"), MACHINE).key != before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "index.json").write_text(json.dumps({"manifests": []}))
    (tmp_path / "file").write_text("x")
    for name in ("mine", "file"):
        with pytest.raises(
            ImageError, match="is no image that was made of this machine's programs"
        ) as caught:
            own.make(tmp_path / name, ["sh"])
        assert caught.value.where == str(tmp_path / name)
    assert (tmp_path / "file").read_text() == "x"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "image", "mine"]


def pair(**more: Any) -> Scenario:
    return Scenario.model_validate(
        {
            "name": "pair",
            "kind": "container",
            "nodes": {"a": {}, "b": {}},
            "links": [{"ends": ["a", "b"]}],
            **more,
        }
    )


def test_containers_without_an_image_get_the_programs_that_the_scenario_names(tmp_path: Path) -> None:
    own_file = {"a": {"files": {"/opt/mine": "#!/bin/sh\n"}}, "b": {}}
    scenario = pair(
        nodes=own_file,
        programs=[
            {"node": "a", "run": "test -e /x || kill 1; exec env A=1 head -c 1 /dev/zero"},
            {"node": "a", "run": ["tail", "-f", "/dev/null"], "ready": {"command": "wc -l /etc/passwd"}},
            {"node": "a", "run": "/opt/mine"},
        ],
    )
    found = default_image.programs_of(scenario)
    assert {"/bin/sh", "kill", "env", "tail", "wc", "ping"} <= found
    image = default_image.provided(scenario).image
    assert image is not None
    assert check(default_image.provided(scenario)).plans[0].nodes["a"].image is not None
    assert Path(image).is_relative_to(tmp_path / "cache")


def test_who_names_an_image_or_has_no_container_keeps_the_scenario(tmp_path: Path) -> None:
    own.make(tmp_path / "image", ["sh"])
    for scenario in (pair(image=str(tmp_path / "image")), pair(kind="netns")):
        assert default_image.provided(scenario) == scenario


def test_a_program_that_is_missing_is_said_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(HostError, match=r"not on this machine: no-such-program"):
        capacity_search.point(tmp_path, "one", pair(programs=[{"node": "a", "run": "no-such-program"}]))
    assert not (tmp_path / capacity_search.POINTS).exists()


def test_a_comparison_takes_images_from_kinds_without_and_gives_them_to_containers(tmp_path: Path) -> None:
    own.make(tmp_path / "image", ["sh"])
    image = str(tmp_path / "image")
    named = pair(kind="netns", nodes={"a": {"kind": "container", "image": image}, "b": {}})
    for scenario in (named, pair(image=image), pair(kind="netns")):
        for kind in ("netns", "container"):
            (plan,) = check(of_kind(scenario, kind)).plans
            assert {node.kind for node in plan.nodes.values()} == {kind}
            assert all((node.image is not None) == (kind == "container") for node in plan.nodes.values())
    (plan,) = check(of_kind(named, "container")).plans
    a, b = (plan.nodes[name].image for name in "ab")
    assert a is not None
    assert b is not None
    assert str(a.path) == image
    assert b.path.is_relative_to(tmp_path / "cache")
