"""Bring-up of thousands of nodes: duration, memory per node, and remains after the end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from airloom.bench import BenchResult, Progress

COUNTS = ((1000, 5.0), (5000, 45.0), (10_000, 20.0))
"""Numbers of nodes, and the promised seconds until they are up and pingable."""
MEGABYTE = 1_000_000


def run(progress: Progress) -> list[BenchResult]:
    """Brings each count up and down; the first one is also ended by SIGKILL."""
    results = []
    for count, limit in COUNTS:
        progress(f"{count} nodes up, and down in order")
        before = namespaces()
        child = _start(count)
        up = _line(child)
        assert child.stdin is not None
        child.stdin.close()
        down = _line(child)["down"]
        child.wait()
        left = _left(before)
        results += [
            BenchResult(f"{count} nodes up and pingable", "s", up["up"], promise=f"within {limit:g} s",
                        holds=up["up"] <= limit),
            BenchResult(f"memory a node, of {count}", "B", up["octets_a_node"], promise="at most 1 MB",
                        holds=up["octets_a_node"] <= MEGABYTE),
            BenchResult(f"{count} nodes taken down", "s", down),
            BenchResult(f"namespaces left of {count}", "1", left, promise="none", holds=left == 0),
        ]  # fmt: skip
    count = COUNTS[0][0]
    progress(f"{count} nodes, controller killed")
    before = namespaces()
    child = _start(count)
    _line(child)
    child.send_signal(signal.SIGKILL)
    child.wait()
    left = _left(before)
    results.append(
        BenchResult(f"namespaces left of {count} after kill -9", "1", left, promise="none", holds=left == 0)
    )
    return results


def namespaces() -> int | None:
    """Returns the kernel's number of network namespaces (/proc/slabinfo, root only), or None.

    Linux frees the structure of a removed namespace when it removes the next one (`net_free` in
    net/core/net_namespace.c), so one is made and removed first; the slab counts free objects of
    its caches as used until it shrinks.
    """
    if os.geteuid() != 0:
        return None
    subprocess.run(["unshare", "--net", "true"], check=True)
    try:
        Path("/sys/kernel/slab/net_namespace/shrink").write_text("1")
        lines = Path("/proc/slabinfo").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("net_namespace ")), None)


def _start(count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "airloom.bench.standing", str(count)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ,
    )  # fmt: skip


def _line(child: subprocess.Popen[str]) -> dict[str, Any]:
    assert child.stdout is not None
    line = child.stdout.readline()
    if not line:
        raise RuntimeError(f"the nodes did not come up: exit code {child.wait()}")
    found: dict[str, Any] = json.loads(line)
    return found


def _left(before: int | None) -> int:
    """Returns the number of additional namespaces; the kernel removes them asynchronously."""
    deadline = time.monotonic() + 60
    while True:
        now = namespaces()
        left = 0 if now is None or before is None else max(0, now - before)
        if left == 0 or time.monotonic() > deadline:
            return left
        time.sleep(0.5)
