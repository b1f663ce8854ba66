"""Alembic's migrations of the grid manager's tables."""
