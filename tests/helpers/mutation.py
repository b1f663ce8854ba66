"""Seeded damage to the octets of a file: what a broken disk, another version or an attacker leaves."""

from __future__ import annotations

import random
from collections.abc import Iterator

_WORDS = [
    *(b"0", b"-1", b"1e999", b"-1e308", b"nan", b"inf", b"9" * 400, b"0x", b"1.5", b"true", b"null", b"~"),
    *(b"", b" ", b"\n", b"\r\n\r\n", b"\t", b"\x00", b"\xff\xfe", b"\xc3", "ü٣".encode(), b"\x1b[31m", b"'"),
    *(b"[", b"]", b"{", b"}", b"<", b">", b"</", b"&x;", b"<!DOCTYPE a [", b"*a", b"&a [*a]", b"!!python/x"),
    *(b"[" * 3000, b"<a>" * 3000, b"{a: " * 500, b"/" * 5000, b"a" * 70000, b"1" * 70000, b" " * 70000),
    *(b"\n" * 70000, b"-", b":", b",", b"$", b"\\", b"%s", b'"'),
]


def mutations(seeds: list[bytes], count: int, seed: int) -> Iterator[bytes]:
    """Yields damaged forms of the seeds; the same ones for the same ``seed``."""
    dice = random.Random(seed)
    for _ in range(count):
        octets = dice.choice(seeds)
        for _ in range(dice.choice((1, 1, 1, 2, 5))):
            octets = _damaged(octets, dice)
        yield octets


def _damaged(octets: bytes, dice: random.Random) -> bytes:
    start = dice.randrange(len(octets) + 1)
    end = min(len(octets), start + dice.choice((1, 1, 2, 4, 16, 200)))
    match dice.randrange(8):
        case 0:
            return octets[:start]
        case 1:
            return octets[:start] + octets[end:]
        case 2:
            return octets[:start] + octets[start:end] * dice.choice((2, 3, 100)) + octets[end:]
        case 3:
            return octets[:start] + bytes(dice.randrange(256) for _ in range(end - start)) + octets[end:]
        case 4:
            return octets[:start] + dice.choice(_WORDS) + octets[start:]
        case 5:
            return octets[:start] + dice.choice(_WORDS) + octets[end:]
        case 6:
            return _word(octets, start, dice)
        case _:
            other = dice.randrange(len(octets) + 1)
            return octets[:start] + octets[other : other + 100] + octets[end:]


def _word(octets: bytes, start: int, dice: random.Random) -> bytes:
    """Replaces a whole word or number."""
    signs = b" \n\t,;:<>[]{}()\"'=/"
    first = start
    while first > 0 and octets[first - 1] not in signs:
        first -= 1
    last = start
    while last < len(octets) and octets[last] not in signs:
        last += 1
    return octets[:first] + dice.choice(_WORDS) + octets[last:]
