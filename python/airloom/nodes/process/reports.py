"""Validates reports of a node's first process, ``Report`` in ``init/src/message.rs``.

A program that has broken out of a node or guest could send reports in place of its first process.
Every report is therefore checked before it is used.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from airloom.nodes.process.channel import Message, ProtocolError

_MOST_NOTES = 100
_MOST_WORDS = 1000
"""Maximum number of characters of a text from a node."""
_LAST_SIGNAL = 64


def check(message: Message) -> None:
    """Raises :class:`ProtocolError` for a report that is not part of the protocol.

    Texts for users are shortened, and control characters are removed.
    """
    fields = _FIELDS.get(message["event"])
    if fields is None or not all(allows(message.get(field)) for field, allows in fields.items()):
        raise ProtocolError(f"a report {_readable(json.dumps(message))}")
    for field in ("why", "what"):
        if field in fields:
            message[field] = _readable(message[field])
    if "notes" in fields:
        message["notes"] = [_readable(note) for note in message["notes"]]


def _readable(text: str) -> str:
    return "".join(sign if sign.isprintable() else " " for sign in text[:_MOST_WORDS])


def _below(most: int) -> Callable[[object], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and 0 <= value < most


def _or_none(allows: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or allows(value)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and len(value) <= _MOST_NOTES and all(map(_is_text, value))


_ID = _NS = _below(1 << 64)
_NUMBER = _below(1 << 31)
_SIGNAL = _below(_LAST_SIGNAL + 1)
_TIMES = {"user_ns": _NS, "system_ns": _NS}
_FIELDS: dict[str, dict[str, Callable[[object], bool]]] = {
    "ready": {"notes": _are_texts},
    "broken": {"why": _is_text},
    "started": {"id": _ID, "pid": _NUMBER},
    "refused": {"id": _ID, "what": _is_text, "errno": _NUMBER},
    "exited": {"id": _ID, "code": _or_none(_NUMBER), "signal": _or_none(_SIGNAL), **_TIMES},
    "cpu": {"id": _ID, **_TIMES},
    "content": {"id": _ID, "text": _or_none(_is_text)},
    "clock": {"id": _ID, "before_ns": _NS, "inside_ns": _NS, "after_ns": _NS},
    "hosted": {"id": _ID, "notes": _are_texts},
    "unhosted": {"id": _ID, "why": _is_text},
    "settled": {"id": _ID, "moved": lambda value: isinstance(value, bool)},
}
