"""Runs a benchmark: `python -m tests.bench [NAME [ARG...]]`, without a name that of recoveries."""

import importlib
import sys

if __name__ == "__main__":
    name, *arguments = sys.argv[1:] or ["recovery"]
    sys.argv[1:] = arguments
    importlib.import_module(f"tests.bench.{name}").main()
