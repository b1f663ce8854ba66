"""Violations of grants."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Changes the tables to this version."""
    op.create_table(
        "violations",
        sa.Column("reservation_id", sa.String(length=32), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("radio", sa.String(length=127), nullable=False),
        sa.Column("what", sa.String(length=10), nullable=False),
        sa.Column("channel", sa.Integer(), nullable=False),
        sa.Column("until", sa.BigInteger(), nullable=False),
        sa.Column("amount", sa.Double(), nullable=False),
        sa.Column("unit", sa.String(length=3), nullable=False),
        sa.Column("frames", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["reservation_id"], ["reservations.id"], name=op.f("fk_violations_reservation_id_reservations")
        ),
        sa.PrimaryKeyConstraint(
            "reservation_id", "at", "radio", "what", "channel", name=op.f("pk_violations")
        ),
    )
    op.create_index(op.f("ix_violations_at"), "violations", ["at"])
