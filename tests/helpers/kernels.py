"""The guest kernels of the distribution and of ``kernel/build``, and what tests need of them."""

from __future__ import annotations

import os
import shutil
from functools import cache
from pathlib import Path

import pytest

from airloom.errors import HostError
from airloom.nodes.kinds import uml
from airloom.nodes.kinds.uml import require_registers, require_virtual_time

BUILT = Path(os.environ.get("AIRLOOM_TEST_KERNEL") or uml.built())
"""Path of the kernel, which may not exist."""

PACKAGED = shutil.which(uml.PROGRAM)
"""Path of the distribution's kernel."""


def _lack_of_packaged() -> str:
    if PACKAGED is None:
        return "sudo apt-get install user-mode-linux"
    try:
        require_registers(Path(PACKAGED).resolve())
    except HostError as error:
        return error.message
    return ""


LACK_OF_PACKAGED = _lack_of_packaged()
"""Why guests cannot have the distribution's kernel on this machine; empty if they can."""

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
