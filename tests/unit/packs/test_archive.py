"""The archive of a pack: what is written is read, and nothing hostile reaches the disk."""

from __future__ import annotations

import hashlib
import io
import json
import stat
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airloom.errors import ScenarioError
from airloom.packs import archive
from airloom.packs.archive import Pack, fault_of
from airloom.packs.manifest import FILE, Manifest

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="/"), min_size=1, max_size=12)
TREES = st.dictionaries(
    st.lists(NAMES, min_size=1, max_size=3)
    .map("/".join)
    .filter(lambda name: name != FILE and not fault_of(name)),
    st.binary(max_size=300),
    max_size=6,
)


def made(folder: Path, members: dict[str, bytes]) -> Path:
    files = {}
    for number, (name, octets) in enumerate(members.items()):
        files[name] = folder / f"source-{number}"
        files[name].write_bytes(octets)
    path = folder / "made.zip"
    archive.write(path, Manifest(of="run", scenario="s"), files)
    return path


def contents(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def unprefixed(tree: dict[str, bytes]) -> bool:
    return not any(other.startswith(f"{name}/") for name in tree for other in tree)


@settings(deadline=None, max_examples=40)
@given(tree=TREES.filter(unprefixed))
def test_what_is_packed_is_unpacked(tree: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        path = made(folder, tree)
        again = path.read_bytes()
        with Pack(path) as pack:
            pack.unpack(folder / "out")
        assert contents(folder / "out") == tree
        assert made(folder, tree).read_bytes() == again


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(
    flips=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255)), min_size=1, max_size=4),
    cut=st.floats(0.5, 1),
    more=st.binary(max_size=20),
)
def test_a_damaged_archive_is_refused_or_read_whole(
    flips: list[tuple[float, int]], cut: float, more: bytes
) -> None:
    tree = {"results/result.json": b'{"a": 1}' * 40, "inputs/x": bytes(range(256)), "empty": b""}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        octets = bytearray(made(folder, tree).read_bytes())
        for where, sign in flips:
            octets[int(where * len(octets))] ^= sign
        path = folder / "damaged.zip"
        path.write_bytes(bytes(octets[: int(cut * len(octets))]) + more)
        before = set(folder.rglob("*"))
        refused: ScenarioError | None = None
        try:
            with Pack(path) as pack:
                pack.unpack(folder / "out")
        except ScenarioError as error:
            refused = error
        if refused is not None:
            assert set(folder.rglob("*")) == before
        else:
            # What the manifest does not cover may differ: names that it states too, and padding.
            stated = {hashlib.sha256(one).hexdigest() for one in tree.values()}
            assert {hashlib.sha256(one).hexdigest() for one in contents(folder / "out").values()} == stated


@settings(deadline=None, max_examples=100)
@given(octets=st.binary(max_size=400))
def test_any_file_is_refused_without_a_trace(octets: bytes) -> None:
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "any.zip")
        path.write_bytes(octets)
        with pytest.raises(ScenarioError), Pack(path) as pack:
            pack.unpack(Path(place, "out"))
        assert [one.name for one in Path(place).iterdir()] == ["any.zip"]


def hostile(path: Path, change: Callable[[zipfile.ZipFile, dict[str, object]], None]) -> Path:
    """Writes an archive with one good member, its manifest stated for whatever ``change`` adds."""
    members: dict[str, object] = {}
    draft = io.BytesIO()
    with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as sink:
        put(sink, members, "good", b"good")
        change(sink, members)
        text = json.dumps({"schema": 1, "of": "run", "scenario": "s", "members": members})
        sink.writestr("manifest.json", text)
    path.write_bytes(draft.getvalue())
    return path


def put(
    sink: zipfile.ZipFile, members: dict[str, object], name: str, octets: bytes, mode: int = stat.S_IFREG
) -> None:
    entry = zipfile.ZipInfo(name)
    entry.external_attr = (mode | 0o644) << 16
    sink.writestr(entry, octets)
    members[name] = {"size": len(octets), "sha256": hashlib.sha256(octets).hexdigest()}


def named(name: str) -> Callable[[zipfile.ZipFile, dict[str, object]], None]:
    return lambda sink, members: put(sink, members, name, b"x")


def link(sink: zipfile.ZipFile, members: dict[str, object]) -> None:
    put(sink, members, "link", b"/etc/passwd", stat.S_IFLNK)


def twice(sink: zipfile.ZipFile, members: dict[str, object]) -> None:
    put(sink, members, "same", b"1")
    put(sink, members, "same", b"1")


def file_and_folder(sink: zipfile.ZipFile, members: dict[str, object]) -> None:
    put(sink, members, "a", b"1")
    put(sink, members, "a/b", b"1")


def other_digest(sink: zipfile.ZipFile, members: dict[str, object]) -> None:
    put(sink, members, "results/x", b"1")
    members["results/x"] = {"size": 1, "sha256": "0" * 64}


def other_size(sink: zipfile.ZipFile, members: dict[str, object]) -> None:
    put(sink, members, "results/x", b"12")
    members["results/x"] = {"size": 1, "sha256": hashlib.sha256(b"1").hexdigest()}


def unstated(sink: zipfile.ZipFile, members: dict[str, object]) -> None:
    put(sink, members, "more", b"1")
    del members["more"]


def gone(sink: zipfile.ZipFile, members: dict[str, object]) -> None:
    members["gone"] = {"size": 1, "sha256": "0" * 64}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        (named("../out"), "pack.name", "'../out' leaves the archive"),
        (named("a/../../out"), "pack.name", "leaves the archive"),
        (named("/etc/x"), "pack.name", "is absolute"),
        (named("a//b"), "pack.name", "has an empty part"),
        (named("a/./b"), "pack.name", "has an empty part"),
        (named("folder/"), "pack.name", "has an empty part"),
        (named("a\\b"), "pack.name", "no name may have"),
        (named("a\x1b[2J"), "pack.name", "no name may have"),
        (named("x" * 256), "pack.name", "is too long"),
        (named("/".join("x" * 65)), "pack.name", "is too long"),
        (link, "pack.kind", "'link' is a symbolic link"),
        (twice, "pack.twice", "'same' occurs twice"),
        (file_and_folder, "pack.name", "'a' is a file and a folder"),
        (other_digest, "pack.digest", "'results/x' does not match its digest"),
        (other_size, "pack.digest", "'results/x' has 2 octets, and 1 by manifest.json"),
        (unstated, "pack.members", "'more' is not in manifest.json"),
        (gone, "pack.members", "'gone' of manifest.json is missing"),
    ],
)
def test_a_hostile_archive_is_refused_before_anything_is_written(
    tmp_path: Path, change: Callable[[zipfile.ZipFile, dict[str, object]], None], code: str, said: str
) -> None:
    path = hostile(tmp_path / "hostile.zip", change)
    with pytest.raises(ScenarioError, match=r".") as refused, Pack(path) as pack:
        pack.unpack(tmp_path / "out")
    assert refused.value.code == code
    assert said in str(refused.value)
    assert list(tmp_path.iterdir()) == [path]


def test_a_size_that_deflate_cannot_reach_is_refused(tmp_path: Path) -> None:
    path = hostile(tmp_path / "bomb.zip", named("bomb"))
    octets = bytearray(path.read_bytes())
    # Both headers of the member claim 4 GiB - 2.
    for signature, field in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = -1
        while (at := octets.find(signature, at + 1)) >= 0:
            name_at = at + (30 if signature == b"PK\x03\x04" else 46)
            if octets[name_at : name_at + 4] == b"bomb":
                octets[at + field : at + field + 4] = (0xFFFFFFFE).to_bytes(4, "little")
    path.write_bytes(bytes(octets))
    with pytest.raises(ScenarioError, match=r"claims 4,294,967,294 octets from \d+: that cannot be"):
        Pack(path)


def test_too_large_packs_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made(tmp_path, {"a": b"x" * 100, "b": b"y" * 100})
    monkeypatch.setattr(archive, "LARGEST", 150)
    with pytest.raises(ScenarioError, match="octets unpacked are more than 150"):
        Pack(path)
    monkeypatch.setattr(archive, "MOST_MEMBERS", 2)
    with pytest.raises(ScenarioError, match="3 members are more than 2"):
        Pack(path)


def test_an_existing_folder_stays_as_it_is(tmp_path: Path) -> None:
    path = made(tmp_path, {"a": b"new"})
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a").write_bytes(b"old")
    with Pack(path) as pack, pytest.raises(ScenarioError, match="something at this place already"):
        pack.unpack(tmp_path / "out")
    assert contents(tmp_path / "out") == {"a": b"old"}


def test_programs_stay_executable(tmp_path: Path) -> None:
    source = tmp_path / "program"
    source.write_bytes(b"#!/bin/sh\n")
    source.chmod(0o700)
    archive.write(tmp_path / "p.zip", Manifest(of="run", scenario="s"), {"bin/program": source})
    with Pack(tmp_path / "p.zip") as pack:
        pack.unpack(tmp_path / "out")
    assert (tmp_path / "out" / "bin" / "program").stat().st_mode & 0o777 == 0o755
