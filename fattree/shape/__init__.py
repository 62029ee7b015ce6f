"""The fabric itself: levels, bundles and ports, and the names of its switches and hosts."""
