"""Images: what is read of them, and what a hostile layer cannot do."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airloom import images
from airloom.errors import ScenarioError
from airloom.images import Image, ImageError
from helpers.images import docker_tar, entry, layer, link, oci, oci_tar

MACHINE = os.uname().machine
root = pytest.mark.skipif(os.geteuid() != 0, reason="unpacking by itself needs root; run the tests as root")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def unpacked(tmp_path: Path, *layers: bytes, compress: Any = gzip.compress) -> Path:
    return images.root_of(images.read(str(oci(tmp_path / "image", layers, compress=compress)), MACHINE))


def tree(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


CONFIG = {
    "Env": ["A=1", "B=x=y"],
    "Entrypoint": ["/bin/e"],
    "Cmd": ["arg"],
    "WorkingDir": "/srv",
    "User": "app",
}


@pytest.mark.parametrize("make", [oci, oci_tar, docker_tar])
def test_an_image_says_the_same_in_every_form(tmp_path: Path, make: Any) -> None:
    path = make(tmp_path / "image", [layer(entry("a", b"1")), layer(entry("b", b"2"))], CONFIG)
    image = images.read(str(path), MACHINE)
    assert image.command == ("/bin/e", "arg")
    assert (dict(image.env), image.folder, image.user) == ({"A": "1", "B": "x=y"}, "/srv", "app")
    assert len(image.layers) == 2


def test_one_of_several_images_is_named_by_its_tag(tmp_path: Path) -> None:
    for tag in ("one", "two"):
        oci(tmp_path / "image", [layer(entry(tag, b""))], {"Cmd": [tag]}, tag=tag)
    assert images.read(f"{tmp_path}/image:two", MACHINE).command == ("two",)
    with pytest.raises(ImageError, match="image has 2 images"):
        images.read(f"{tmp_path}/image", MACHINE)
    with pytest.raises(ImageError, match="image has no image 'three'"):
        images.read(f"{tmp_path}/image:three", MACHINE)


def test_an_index_of_several_machines_gives_the_one_that_runs_here(tmp_path: Path) -> None:
    folder = tmp_path / "image"
    oci(folder, [layer(entry("other", b""))], {"Cmd": ["other"]}, architecture="riscv64")
    oci(folder, [layer(entry("mine", b""))], {"Cmd": ["mine"]}, tag="mine")
    index = json.loads((folder / "index.json").read_text())
    names = [("riscv64", index["manifests"][0]), ("amd64", index["manifests"][1])]
    inner = {
        "schemaVersion": 2,
        "manifests": [{**one, "platform": {"os": "linux", "architecture": name}} for name, one in names],
    }
    from helpers.images import sha256

    octets = json.dumps(inner).encode()
    (folder / "blobs/sha256" / sha256(octets)[7:]).write_bytes(octets)
    kind = "application/vnd.oci.image.index.v1+json"
    index["manifests"] = [{"mediaType": kind, "digest": sha256(octets), "size": len(octets)}]
    (folder / "index.json").write_text(json.dumps(index))
    assert images.read(str(folder), "x86_64").command == ("mine",)
    with pytest.raises(ImageError, match=r"is for amd64, riscv64, and this machine is arm64 \(build or save"):
        images.read(str(folder), "aarch64")


def test_an_image_for_another_machine_is_refused(tmp_path: Path) -> None:
    path = oci(tmp_path / "image", [layer(entry("a", b""))], architecture="riscv64")
    with pytest.raises(ImageError, match="the image image is for riscv64, and this machine is amd64"):
        images.read(str(path), "x86_64")


@root
@pytest.mark.parametrize(
    "compress",
    [
        bytes,
        gzip.compress,
        bz2.compress,
        lzma.compress,
        lambda octets: pyarrow.compress(octets, "zstd", True),
    ],
    ids=["plain", "gzip", "bzip2", "xz", "zstd"],
)
def test_layers_lie_over_each_other_however_compressed(tmp_path: Path, compress: Any) -> None:
    lower = layer(
        entry("d"), entry("d/old", b"1"), entry("d/kept", b"2"), entry("x", b"3", mode=0o4750, uid=7)
    )
    upper = layer(
        entry("d/.wh.old", b""), entry("d/new", b"4"), link("y", "x", hard=True), link("z", "/d/new")
    )
    folder = unpacked(tmp_path, lower, upper, compress=compress)
    assert tree(folder) == ["d", "d/kept", "d/new", "x", "y", "z"]
    about = (folder / "x").stat()
    assert (about.st_mode & 0o7777, about.st_uid, about.st_nlink) == (0o4750, 7, 2)
    assert os.readlink(folder / "z") == "/d/new"


@root
def test_an_opaque_folder_hides_what_was_below_and_keeps_its_own(tmp_path: Path) -> None:
    lower = layer(entry("d"), entry("d/a", b"1"), entry("d/sub"), entry("d/sub/b", b"2"))
    upper = layer(entry("d"), entry("d/c", b"3"), entry("d/.wh..wh..opq", b""), entry("d/e", b"4"))
    assert tree(unpacked(tmp_path, lower, upper)) == ["d", "d/c", "d/e"]


@root
def test_a_file_may_take_the_place_of_a_folder_and_the_other_way_round(tmp_path: Path) -> None:
    lower = layer(entry("d"), entry("d/a", b"1"), entry("f", b"2"))
    folder = unpacked(tmp_path, lower, layer(entry("d", b"file"), entry("f"), entry("f/g", b"3")))
    assert (folder / "d").read_text() == "file"
    assert tree(folder) == ["d", "f", "f/g"]


@root
@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([entry("../out", b"x")], "the name '../out' leaves the image"),
        ([entry("a/../../out", b"x")], "leaves the image"),
        ([entry("a", b""), link("b", "../../out", hard=True)], "leaves the image"),
        ([entry("../.wh.victim", b"")], "leaves the image"),
        ([link("b", "nothing", hard=True)], "No such file"),
    ],
)
def test_a_name_that_leaves_the_image_is_refused(
    tmp_path: Path, cache: Path, entries: Sequence[Any], words: str
) -> None:
    (tmp_path / "victim").write_text("here")
    with pytest.raises(ImageError, match="the image image cannot be unpacked: layer 1: ") as caught:
        unpacked(tmp_path, layer(*entries))
    assert words in caught.value.message
    assert caught.value.exit_code == 2
    assert (tmp_path / "victim").read_text() == "here"
    assert not (tmp_path / "out").exists()
    assert [path.suffix for path in (cache / "airloom/images").iterdir()] == [".lock"]


@root
@pytest.mark.parametrize("target", ["{outside}", "../../../../../../../../../../../..{outside}"])
def test_links_lead_nowhere_else(tmp_path: Path, target: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "victim").write_text("here")
    where = target.format(outside=outside)
    below = str(outside).lstrip("/")
    folders = [entry("/".join(below.split("/")[:depth])) for depth in range(1, below.count("/") + 2)]
    folder = unpacked(
        tmp_path,
        layer(*folders, link("door", where)),
        layer(entry("door/planted", b"x"), entry("door/.wh.victim", b""), entry("/absolute", b"y")),
        layer(link("stolen", "door/planted", hard=True)),
    )
    assert (outside / "victim").read_text() == "here"
    assert not (outside / "planted").exists()
    assert (folder / below / "planted").read_text() == "x"
    assert (folder / "absolute").read_text() == "y"


@root
def test_devices_are_passed_over(tmp_path: Path) -> None:
    device = entry("disk", b"", type=tarfile.BLKTYPE, devmajor=8, devminor=0)
    assert tree(unpacked(tmp_path, layer(device, entry("f", b"")))) == ["f"]


@root
def test_a_layer_that_was_changed_is_refused(tmp_path: Path) -> None:
    path = oci(tmp_path / "image", [layer(entry("a", b"1"))])
    image = images.read(str(path), MACHINE)
    blob = path / image.layers[0].place
    blob.write_bytes(gzip.compress(layer(entry("evil", b"1"))))
    with pytest.raises(ImageError, match="is damaged: blobs/sha256/"):
        images.root_of(image)


@pytest.mark.slow
@root
def test_an_image_that_nests_without_end_is_refused_again_and_again(tmp_path: Path, cache: Path) -> None:
    deep = "a/" * 200 + "a"
    entries = [entry("a"), *(entry(deep[: 2 * n + 1]) for n in range(1, 201))]
    for number in range(6):  # each link leads to the end of what is there, where more is made
        entries += [
            link(f"s{number}", f"s{number - 1}/{deep}" if number else deep),
            entry(f"s{number}/{deep}"),
        ]
    for _ in range(2):
        with pytest.raises(ImageError, match="leaves the image"):
            unpacked(tmp_path, layer(*entries, entry("../x", b"")))
        assert [path.suffix for path in (cache / "airloom/images").iterdir()] == [".lock"]
    with pytest.raises(ImageError, match="nested deeper than 256 folders"):
        unpacked(tmp_path, layer(entry("b/" * 1900 + "b")))


@root
def test_a_bomb_does_not_fill_the_disk(tmp_path: Path, cache: Path) -> None:
    info = tarfile.TarInfo("huge")
    info.size = 1 << 50
    with pytest.raises(ImageError, match="layer 1: its files take more than half of the space that is free"):
        unpacked(tmp_path, info.tobuf() + bytes(1 << 20))
    assert [path.suffix for path in (cache / "airloom/images").iterdir()] == [".lock"]


@root
def test_an_image_is_unpacked_once(tmp_path: Path) -> None:
    first = unpacked(tmp_path, layer(entry("a", b"1")))
    (first / "mark").write_text("still there")
    assert unpacked(tmp_path, layer(entry("a", b"1"))) == first
    assert (first / "mark").exists()


WRONG: dict[str, Any] = {
    "no tar": b"hello",
    "empty": b"",
    "neither": layer(entry("x", b"")),
    "no JSON": layer(entry("index.json", b"{")),
    "no list": layer(entry("index.json", b'{"manifests": 5}')),
    "digest": layer(entry("index.json", b'{"manifests": [{"digest": "sha256:../../etc/passwd"}]}')),
    "no layers": layer(entry("manifest.json", b'[{"Config": "c"}]'), entry("c", b"{}")),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_image_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "file.tar"
    path.write_bytes(WRONG[name])
    with pytest.raises(ImageError) as caught:
        images.read(str(path), MACHINE)
    assert caught.value.code in ("image.format", "image.incomplete")
    assert "file.tar" in caught.value.message


@pytest.mark.slow
@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=9),
        lambda more: (
            st.lists(more)
            | st.dictionaries(
                st.sampled_from(
                    ["manifests", "digest", "annotations", "Config", "Layers", "RepoTags", "config", "rootfs"]
                ),
                more,
            )
        ),
    )
)
def test_any_description_is_an_image_or_an_error(tmp_path_factory: pytest.TempPathFactory, said: Any) -> None:
    folder = tmp_path_factory.mktemp("any")
    for name in ("index.json", "manifest.json"):
        path = folder / f"{name}.tar"
        path.write_bytes(layer(entry(name, json.dumps(said).encode())))
        with pytest.raises(ScenarioError):
            assert isinstance(images.read(str(path), MACHINE), Image)
