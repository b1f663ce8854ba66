"""The guest kernel of ``kernel/build``, for tests that need more than the distribution's kernel."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

from airloom.errors import HostError
from airloom.nodes.kinds import uml
from airloom.nodes.kinds.uml import require_virtual_time

BUILT = Path(os.environ.get("AIRLOOM_TEST_KERNEL") or uml.built())
"""Path of the kernel, which may not exist."""

needs_built = pytest.mark.skipif(
    not os.access(BUILT, os.X_OK), reason=f"there is no {BUILT}: make kernel (six to eight minutes)"
)


def _has_virtual_time(*, turns: bool = False) -> bool:
    try:
        require_virtual_time(BUILT, waits=turns)
    except HostError:
        return False
    return True


@cache
def _image() -> bytes:
    return BUILT.read_bytes() if os.access(BUILT, os.R_OK) else b""


def needs_option(option: str, word: bytes) -> pytest.MarkDecorator:
    """Skips if the kernel was built without an option, whose code has ``word``."""
    has = word in _image()
    return pytest.mark.skipif(not has, reason=f"{BUILT} lacks {option}: make kernel")


needs_virtual_time = pytest.mark.skipif(
    not _has_virtual_time(), reason=f"{BUILT} is no kernel for virtual time: make kernel"
)

needs_virtual_turns = pytest.mark.skipif(
    not _has_virtual_time(turns=True), reason=f"{BUILT} cannot take turns in virtual time: make kernel"
)
