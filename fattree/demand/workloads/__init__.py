"""Workloads: collectives, traces and training steps as graphs of transfers and computations."""
