"""The grid manager's database: SQLite by default, PostgreSQL by URL; migrations by Alembic."""
