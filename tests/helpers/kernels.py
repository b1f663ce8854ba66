"""The guest kernel of ``kernel/build``, for tests that need more than the distribution's kernel."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from airloom.nodes.kinds import uml

BUILT = Path(os.environ.get("AIRLOOM_TEST_KERNEL") or uml.built())
"""Path of the kernel, which may not exist."""

needs_built = pytest.mark.skipif(
    not os.access(BUILT, os.X_OK), reason=f"there is no {BUILT}: make kernel (six to eight minutes)"
)
