"""The functions that numba compiles: hosts, switches and queues, window by window, on records.

`jit` compiles them, `state` defines the records. Kernels import kernels, the rules that hosts share
(`hostagent`) and constants, nothing else: a cached kernel depends on these alone.
"""
