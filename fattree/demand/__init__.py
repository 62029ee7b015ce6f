"""Who sends to whom, how much, and when: matrices, flows, workloads, and the bound of them all."""
