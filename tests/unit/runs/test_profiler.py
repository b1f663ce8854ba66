"""Samples of perf, by component."""

from __future__ import annotations

import pytest

from airloom.runs.profiler import hotspots

TEXT = """\
 airloom-engine  100/104  U      7f00aa turn (/opt/_engine.abi3.so)
 airloom-engine  100/104  K      ffff81 tun_get_user ([kernel.kallsyms])
         python  100/100  U      7f00bb [unknown] (/usr/bin/python3.11)
      linux.uml  200/200  U      6000aa schedule (/usr/bin/linux.uml)
      linux.uml  200/200  U      6000ab schedule (/usr/bin/linux.uml)
      linux.uml  201/201  U      40aabb main loop (with spaces) (/usr/bin/iperf3)
      linux.uml  201/201  K      ffff82 ptrace_stop ([kernel.kallsyms])
qemu-system-x86  300/302  U      7f00dd [unknown] ([JIT] tid 302)
          other  400/400  U      40aabb main (/usr/bin/other)
            sh  200/200   PERF_RECORD_FORK(301:301):(300:300)
           new  301/301  U      40aabb main (/usr/bin/new)
            sh  400/400   PERF_RECORD_FORK(401:401):(400:400)
           new  401/401  U      40aabb main (/usr/bin/new)
a line that is none of this
"""


def test_every_sample_belongs_to_one_component() -> None:
    found = hotspots(TEXT.splitlines(), 100, [200, 201, 300], frozenset({"linux.uml"}))
    whole = {one.component: one.share for one in found if not one.place}
    assert whole == {
        "guest_kernel": pytest.approx(3 / 9),
        "engine": pytest.approx(2 / 9),
        "airloom": pytest.approx(1 / 9),
        "guest_user": pytest.approx(2 / 9),
        "host_kernel": pytest.approx(1 / 9),
    }
    places = [one.place for one in found if one.component == "guest_kernel" and one.place]
    assert places[0] == "schedule (linux.uml)"
    assert hotspots([], 1, [], frozenset()) == ()
