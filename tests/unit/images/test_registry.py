"""Images from a registry: fetched once, pinned by digest, and clear errors without it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from airloom import images
from airloom.errors import HostError
from airloom.images import ImageError, registry
from airloom.planning.gate import check
from airloom.planning.inputs import digests
from airloom.scenario.model import Scenario
from helpers.images import entry, layer, oci
from helpers.registry import push
from helpers.registry import registry as served

MACHINE = os.uname().machine


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def host(tmp_path: Path) -> Iterator[str]:
    with served(tmp_path) as address:
        yield address


def image(folder: Path, word: str) -> Path:
    return oci(folder / word, [layer(entry("word", word.encode()))], {"Cmd": [word]})


@pytest.mark.skipif(os.geteuid() != 0, reason="unpacking by itself needs root; run the tests as root")
def test_an_image_is_fetched_and_its_tag_keeps_its_digest(host: str, tmp_path: Path) -> None:
    name = f"docker://{host}/team/web:1"
    push(image(tmp_path, "old"), name.removeprefix("docker://"))
    assert images.read(name, MACHINE).command == ("old",)
    exact = images.pinned(name)
    assert exact.startswith(f"docker://{host}/team/web@sha256:")
    push(image(tmp_path, "new"), name.removeprefix("docker://"))
    assert images.read(name, MACHINE).command == ("old",), "a run stays with what it had"
    registry.update(name)
    assert images.read(name, MACHINE).command == ("new",)
    assert images.read(exact, MACHINE).command == ("old",)
    assert (images.root_of(images.read(name, MACHINE)) / "word").read_text() == "new"


def test_a_fetched_image_needs_no_registry(tmp_path: Path) -> None:
    with served(tmp_path) as host:
        name = f"docker://{host}/web"
        push(image(tmp_path, "kept"), f"{host}/web:latest")
        exact = images.pinned(name)
        images.read(name, MACHINE)
    assert images.read(name, MACHINE).command == ("kept",)
    assert images.read(exact, MACHINE).command == ("kept",)


def test_the_checked_scenario_names_the_digest(host: str, tmp_path: Path) -> None:
    push(image(tmp_path, "one"), f"{host}/one:1")
    push(image(tmp_path, "two"), f"{host}/two:1")
    scenario = Scenario.model_validate(
        {
            "name": "x",
            "kind": "container",
            "image": f"docker://{host}/one:1",
            "nodes": {"a": {}, "b": {"image": f"docker://{host}/two:1"}},
            "links": [{"ends": ["a", "b"]}],
        }
    )
    (plan,) = check(scenario).plans
    assert plan.scenario.image == images.pinned(f"docker://{host}/one:1")
    assert plan.scenario.nodes["b"].image == images.pinned(f"docker://{host}/two:1")
    assert set(digests([plan.scenario])) == {plan.scenario.image, plan.scenario.nodes["b"].image}
    assert all(value.startswith("image:") for value in digests([plan.scenario]).values())
    (again,) = check(plan.scenario).plans
    assert again.nodes == plan.nodes


@pytest.mark.parametrize(
    ("said", "name", "tag"),
    [
        ("docker://alpine:3", "docker.io/library/alpine", "3"),
        ("docker://alpine", "docker.io/library/alpine", "latest"),
        ("docker://host:5000/web", "host:5000/web", "latest"),
        ("docker://host:5000/web:7", "host:5000/web", "7"),
        ("docker://group/web:1.2", "docker.io/group/web", "1.2"),
    ],
)
def test_a_number_behind_a_colon_is_a_port_before_a_slash_alone(said: str, name: str, tag: str) -> None:
    assert registry._parts(said) == (name, tag, None)


def test_an_image_that_the_registry_does_not_have(host: str) -> None:
    with pytest.raises(ImageError) as caught:
        images.read(f"docker://{host}/nothing:1", MACHINE)
    assert caught.value.code == "image.missing"
    assert "skopeo login" in str(caught.value)


@pytest.mark.skipif(shutil.which("skopeo") is None, reason="skopeo is not installed")
def test_without_a_registry_the_cure_is_named() -> None:
    with pytest.raises(HostError) as caught:
        images.read("docker://localhost:1/web:1", MACHINE)
    assert caught.value.code == "image.registry"
    assert "connection refused" in caught.value.message
    assert "skopeo copy docker://localhost:1/web:1 oci:image:latest" in (caught.value.cure or "")


def test_without_skopeo_its_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry.programs, "find", lambda name: None)
    with pytest.raises(HostError) as caught:
        images.read("docker://alpine", MACHINE)
    assert caught.value.code == "image.skopeo"
    assert "sudo apt-get install skopeo" in (caught.value.cure or "")


@pytest.mark.parametrize(
    ("said", "full"),
    [
        ("alpine", "docker.io/library/alpine"),
        ("team/web:2", "docker.io/team/web"),
        ("quay.io/frrouting/frr:10.1", "quay.io/frrouting/frr"),
        ("localhost:5000/web", "localhost:5000/web"),
    ],
)
def test_a_short_name_is_one_of_the_usual_registry(said: str, full: str) -> None:
    digest = "sha256:" + "0" * 64
    bare = said.rpartition(":")[0] if "/" not in said.rpartition(":")[2] and ":" in said else said
    assert images.pinned(f"docker://{bare}@{digest}") == f"docker://{full}@{digest}"
