"""``airloom calibrate link``: from two captures to a scenario with the link."""

from __future__ import annotations

import random

from airloom.planning.gate import check
from helpers.pcap_files import ethernet, udp_packet, write

ZERO = 1_700_000_000_000_000_000


def captures(shell) -> None:
    """1000 packets of 200 octets over 4 Mbit/s and 10 ms, two in a hundred lost; 20 echoes back."""
    dice = random.Random(4)
    sent, came = [], []
    at = free = 0
    for number in range(1200):
        at += round(dice.expovariate(1 / 800e3) * (0.4 if number // 100 % 2 else 1.6))
        frame = ethernet(udp_packet(number.to_bytes(4, "big") + bytes(196), number=number))
        sent.append((ZERO + at, frame))
        # 266 octets on the wire.
        free = max(free, at) + 532_000
        if number % 50 != 7:
            came.append((ZERO + free + 10_000_000, frame))
    write(shell.folder / "a.pcap", sent)
    write(shell.folder / "b.pcap", came)


def test_a_scenario_is_written_and_its_error_is_told(shell) -> None:
    captures(shell)
    done = shell.run("calibrate", "link", "a.pcap", "b.pcap", "--synchronized", "--out", "wan.yaml")
    assert done.returncode == 0, done.stderr
    assert "delay p95" in done.stdout
    assert "held-out packets" in done.stdout
    assert "backward: too few packets" in done.stdout + done.stderr
    (plan,) = check(shell.folder / "wan.yaml").plans
    forward = plan.links["path"].forward
    assert abs(forward.constant_rate - 4e6) < 0.02e6
    assert abs(forward.delay - 10e6) < 0.1e6
    assert 0.015 < forward.loss < 0.025
    # It is replaced by another one, and nothing else is.
    again = shell.run("calibrate", "link", "a.pcap", "b.pcap", "--synchronized", "--out", "wan.yaml")
    assert again.returncode == 0, again.stderr
    other = shell.run("calibrate", "link", "a.pcap", "b.pcap", "--synchronized", "--out", "a.pcap")
    assert other.returncode == 2
    assert "[file.exists]" in other.stderr


def test_mistakes_are_named(shell) -> None:
    captures(shell)
    (shell.folder / "text").write_text("no capture")
    files = ("a.pcap", "b.pcap")
    for words, code in (
        (("link", "a.pcap"), "[calibrate.captures]"),
        (("link", *files), "[capture.one-way]"),
        (("link", "text", "b.pcap"), "[measure.capture.damaged]"),
        (("link", "none", "b.pcap"), "[measure.capture.missing]"),
        (("link", *files, "--least-delay", "12"), "[unit.missing]"),
        (("link", *files, "--least-delay", "12 ms", "--synchronized"), "[option.both]"),
        (("netns", "--synchronized"), "[option.unused]"),
    ):
        done = shell.run("calibrate", *words)
        assert done.returncode == 2, words
        assert code in done.stderr, (words, done.stderr)
    assert not (shell.folder / "path.yaml").exists()
