"""masakari-ng: instance high availability for OpenStack."""
