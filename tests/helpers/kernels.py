"""The guest kernel of ``kernel/build``, for tests that need more of a kernel than the distribution's has."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from airloom.nodes.kinds import uml

BUILT = Path(os.environ.get("AIRLOOM_TEST_KERNEL") or uml.built())
"""Where it is, if it is there."""

needs_built = pytest.mark.skipif(
    not os.access(BUILT, os.X_OK), reason=f"there is no {BUILT}: make kernel (six to eight minutes)"
)
