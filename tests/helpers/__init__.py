"""Shared test code: images, nodes, kernels, results, and the repository's path."""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
"""Root folder of the source tree."""
DATA = REPOSITORY / "tests" / "data"
"""Folder of test data."""
