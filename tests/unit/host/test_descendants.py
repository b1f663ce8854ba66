"""Processes below a process, while others end."""

from __future__ import annotations

import os
import subprocess
import sys

from airloom.host.descendants import processes_below, threads

# Its threads end and start all the time; two children were started by one thread that goes on.
RESTLESS = """
import subprocess, sys, threading, time
def child():
    return subprocess.Popen(["sleep", "30"])
children = []
def starter():
    children.extend([child(), child()])
    ready.set()
    time.sleep(30)
ready = threading.Event()
threading.Thread(target=starter, daemon=True).start()
ready.wait()
print(*[one.pid for one in children], flush=True)
while True:
    one = threading.Thread(target=time.sleep, args=(0.0001,))
    one.start()
    one.join()
"""


def test_all_children_are_found_while_threads_end() -> None:
    parent = subprocess.Popen([sys.executable, "-c", RESTLESS], stdout=subprocess.PIPE, text=True)
    children: list[int] = []
    try:
        assert parent.stdout is not None
        children = [int(word) for word in parent.stdout.readline().split()]
        for _ in range(500):
            assert processes_below(parent.pid) == [parent.pid, *children]
        assert set(children) < set(processes_below(os.getpid()))
    finally:
        for pid in (parent.pid, *children):
            os.kill(pid, 9)
        parent.communicate()


def test_a_process_that_has_ended_has_no_threads() -> None:
    done = subprocess.Popen(["true"])
    done.wait()
    assert threads(done.pid) == []
    assert processes_below(done.pid) == [done.pid]
    assert os.getpid() in threads(os.getpid())
