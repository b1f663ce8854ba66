"""How processors of the machine spent their time, from lines of /proc/stat (proc_stat(5))."""

from __future__ import annotations


def processor_ticks(text: str) -> tuple[int, int, int]:
    """Stolen, busy and all clock ticks from a text's first line: /proc/stat, or one processor's line of it.

    The fields are user, nice, system, idle, iowait, irq, softirq, steal; guest time is part of user
    time (Linux, ``Documentation/filesystems/proc.rst``).
    """
    ticks = [int(word) for word in text.split("\n", 1)[0].split()[1:9]]
    ticks += [0] * (8 - len(ticks))
    idle = ticks[3] + ticks[4]
    total = sum(ticks)
    return ticks[7], total - idle - ticks[7], total


def interrupt_ticks(text: str) -> int:
    """Clock ticks in interrupts (irq and softirq), in the same way."""
    return sum(int(word) for word in text.split("\n", 1)[0].split()[6:8])
