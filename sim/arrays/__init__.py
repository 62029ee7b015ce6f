"""From a scenario to the arrays that kernels work on: wiring, routes, flows, a host rule's code."""
