"""The versions of the grid manager's tables."""
