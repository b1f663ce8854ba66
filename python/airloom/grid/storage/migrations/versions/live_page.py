"""Where the live page of a reservation's run is served."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Changes the tables to this version."""
    op.add_column("reservations", sa.Column("live", sa.String(length=300), nullable=True))
