"""What tests share: made images, nodes, kernels, results, and where the repository is."""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
"""The folder of the source tree."""
DATA = REPOSITORY / "tests" / "data"
"""Files that tests read."""
