"""The rules of hosts that every network shares: transports, labels, congestion control.

Pure functions on records; the simulator's kernels are compiled with them.
"""
