"""The fabric itself: levels, bundles and ports, and what its switches and hosts are called."""
