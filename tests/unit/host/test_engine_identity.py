"""The identity of an engine follows what it is built from, and nothing else."""

from __future__ import annotations

from pathlib import Path

from airloom.host import engine_identity, machine


def test_the_digest_follows_names_and_contents(tmp_path: Path) -> None:
    one, other = tmp_path / "a.rs", tmp_path / "b.rs"
    one.write_text("fn a() {}")
    other.write_text("fn b() {}")
    first = engine_identity.digest(tmp_path, [one, other])
    assert first == engine_identity.digest(tmp_path, [one, other])
    assert engine_identity.digest(tmp_path, [one]) != first
    other.write_text("fn b() {} ")
    assert engine_identity.digest(tmp_path, [one, other]) != first
    other.write_text("fn b() {}")
    moved = other.rename(tmp_path / "c.rs")
    assert engine_identity.digest(tmp_path, [one, moved]) != first


def test_results_name_the_engine_of_this_tree() -> None:
    known = engine_identity.identity()
    assert machine.versions()["engine"] == known
    assert known.removeprefix("module-").isalnum()
