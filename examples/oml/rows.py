"""Ends with an error unless a table that the collector wrote has so many rows: FILE TABLE ROWS."""

import sqlite3
import sys

file, table, wanted = sys.argv[1:]
(rows,) = sqlite3.connect(file).execute(f'SELECT COUNT(*) FROM "{table}"').fetchone()
print(f"{rows} rows in {table}")
sys.exit(rows != int(wanted))
