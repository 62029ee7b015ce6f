"""What numba compiles: hosts, switches and their queues, window by window, on records in arrays.

`jit` says how, `state` what the records are. Kernels import kernels, the rules that hosts share
(`hostagent`) and constants, nothing else: the room is what a cached kernel depends on.
"""
