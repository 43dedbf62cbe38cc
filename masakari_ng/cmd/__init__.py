"""The programs: each builds its objects, connects them and starts."""
