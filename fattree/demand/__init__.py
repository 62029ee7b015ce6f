"""The demand: sources, destinations, sizes, times; matrices, flows, workloads, and their bound."""
