"""The engine: from a received notification to its recorded outcome."""
