"""A run on a GPU: the same kernels, one thread for each node of a window."""
