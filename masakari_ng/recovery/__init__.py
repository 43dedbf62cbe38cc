"""Recovery workflows as taskflow flows, and their tasks."""
