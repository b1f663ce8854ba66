"""${message}."""

import sqlalchemy as sa
from alembic import op

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}


def upgrade() -> None:
    """Changes the tables to this version."""
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    """Changes the tables back."""
    ${downgrades if downgrades else "pass"}
