"""The database: rows, queries, transactions, migrations."""
