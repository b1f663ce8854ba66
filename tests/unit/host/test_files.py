"""Files that a user names: what never ends is refused at once."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from airloom.errors import ScenarioError
from airloom.host.files import content, head, remove
from airloom.planning.gate import check

TRACED = "name: x\nnodes: {{a: , b: }}\nlinks: [{{ends: [a, b], trace: {0}}}]\n"
IMAGE = "name: x\nkind: container\nimage: {0}\nnodes: {{a: }}\n"
MATRIX = (
    "name: x\nmedia: {{air: {{propagation: {{model: matrix, file: {0}}}}}}}\n"
    "nodes: {{a: {{radios: {{wlan0: }}}}}}\n"
)
MOVES = (
    "name: x\nmedia: {{air: }}\nnodes: {{a: {{radios: {{wlan0: }}, mobility: {{model: ns-2, file: {0}}}}}}}\n"
)
GRAPH = "name: x\ntopology: {{generator: graphml, file: {0}}}\n"
TRAFFIC = (
    "name: x\nnodes: {{a: , b: }}\nlinks: [{{ends: [a, b]}}]\n"
    "measurements: [{{name: m, traffic: {{from: a, to: b, pattern: trace, trace: {0}}}}}]\n"
)
KERNEL = "name: x\nkind: uml\nguest: {{kernel: {0}}}\nnodes: {{a: }}\n"
ROOT = "name: x\nkind: uml\nguest: {{root: {0}}}\nnodes: {{a: }}\n"
ALL = [TRACED, IMAGE, MATRIX, MOVES, GRAPH, TRAFFIC, KERNEL, ROOT]


def test_what_a_regular_file_holds(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"0123456789")
    assert (content(file, 10), head(file, 4)) == (b"0123456789", b"0123")
    with pytest.raises(OSError, match="larger than 9 octets"):
        content(file, 9)


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "/dev/tty0", "fifo"])
def test_what_is_no_regular_file_is_refused_without_waiting(tmp_path, path):
    os.mkfifo(tmp_path / "fifo")
    for act in (lambda file: content(file, 100), lambda file: head(file, 4)):
        with pytest.raises(OSError, match=r"it is no regular file|No such|Permission"):
            act(tmp_path / path)


def test_a_file_of_the_kernel_is_no_regular_file():
    with pytest.raises(OSError, match="no regular file"):
        content("/proc/self/status", 16)


def test_a_file_with_holes_counts_with_them(tmp_path):
    file = tmp_path / "giant"
    with file.open("wb") as sink:
        sink.truncate(1 << 40)
    with pytest.raises(OSError, match="larger than"):
        content(file, 1 << 20)


@pytest.mark.parametrize("path", ["/dev/zero", "fifo"])
def test_a_scenario_is_a_regular_file(tmp_path, path):
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(ScenarioError, match="it is no regular file") as caught:
        check(tmp_path / path)
    assert caught.value.code == "file.unreadable"


def test_a_scenario_has_a_largest_size(tmp_path):
    with (tmp_path / "giant.yaml").open("wb") as sink:
        sink.truncate(1 << 40)
    with pytest.raises(ScenarioError) as caught:
        check(tmp_path / "giant.yaml")
    assert caught.value.code == "file.size"


@pytest.mark.parametrize("path", ["/dev/zero", "fifo"])
@pytest.mark.parametrize("scenario", ALL)
def test_no_file_of_a_scenario_is_read_without_end(tmp_path: Path, scenario: str, path: str):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "x.yaml").write_text(scenario.format(path))
    with pytest.raises(ScenarioError, match=r"there is no file|neither a folder nor a regular file"):
        check(tmp_path / "x.yaml")


@pytest.mark.parametrize("scenario", [TRACED, IMAGE, MATRIX, MOVES, GRAPH, TRAFFIC])
def test_no_file_of_a_scenario_is_larger_than_its_bound(tmp_path: Path, scenario: str):
    with (tmp_path / "giant").open("wb") as sink:
        sink.truncate(1 << 40)
    (tmp_path / "x.yaml").write_text(scenario.format("giant"))
    with pytest.raises(ScenarioError) as caught:
        check(tmp_path / "x.yaml")
    assert re.search("larger than", caught.value.message)
    assert caught.value.where is not None


def nest(folder: Path, depth: int) -> None:
    """Folders in each other, below any length of a path, with files and links on the way."""
    folder.mkdir()
    here = os.open(folder, os.O_RDONLY)
    for level in range(depth):
        os.mkdir("1", dir_fd=here)
        os.symlink("..", "2", dir_fd=here)
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=here))
        inner = os.open("1", os.O_RDONLY, dir_fd=here)
        if level % 7 == 0:
            os.fchmod(here, 0o555)
        if level % 7 == 3:
            os.fchmod(here, 0)
        os.close(here)
        here = inner
    os.close(here)


def test_a_folder_is_removed_however_deep_it_nests(tmp_path):
    nest(tmp_path / "deep", 3000)
    (tmp_path / "kept").write_text("kept")
    (tmp_path / "deep" / "link").symlink_to(tmp_path / "kept") if os.geteuid() == 0 else None
    remove(tmp_path / "deep")
    remove(tmp_path / "deep")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_a_link_in_place_of_a_folder_is_not_followed(tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "link").symlink_to("kept")
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        remove(tmp_path / "link")
    assert (tmp_path / "kept").is_dir()
