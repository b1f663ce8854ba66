"""Context switches of a cgroup's threads, on the threads of this test."""

from __future__ import annotations

import subprocess
import threading
import time
from pathlib import Path

from airloom.nodes.process.cgroups import Group


def test_switches_of_threads_in_a_group_and_below_it_are_counted(tmp_path: Path) -> None:
    own = threading.get_native_id()
    (tmp_path / "inside").mkdir()
    (tmp_path / "cgroup.threads").write_text("")
    (tmp_path / "inside" / "cgroup.threads").write_text(f"{own}\n")
    group = Group(tmp_path, None)
    before = group.switches()[own]
    for _ in range(50):
        time.sleep(0.001)
    assert group.switches()[own] >= before + 50


def test_a_thread_that_has_ended_is_left_out(tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    (tmp_path / "cgroup.threads").write_text(f"{ended.pid}\n")
    assert Group(tmp_path, None).switches() == {}
