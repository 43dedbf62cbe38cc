"""The REST API: HTTP in, operations called, JSON out. Falcon is known here only."""
