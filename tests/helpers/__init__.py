"""Shared test code: images, nodes, kernels, results, and the repository's path."""

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
"""Root folder of the source tree."""
DATA = REPOSITORY / "tests" / "data"
"""Folder of test data."""

needs_root_to_mount = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a file system")
"""Mark of a test that gives the command other file systems than the machine's."""
