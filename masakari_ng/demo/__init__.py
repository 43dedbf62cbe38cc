"""A simulated cloud and what can be shown on it."""
