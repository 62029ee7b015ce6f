"""Switches with events at their ports: a program's egress at each departure, and pauses.

The fast kernels (`sim.kernels.switches`) forward a packet once, when it arrives, and foresee its
departure. Where a departure is an event of its own, a switch merges it with arrivals in the order
of time; this package is that one loop, for built-in rules and for P4 programs:

    loop         a switch in one window: packets, control frames, events of its ports, samples
    upcoming     the next event of each port, and the first of all
    programs     a packet in a P4 program: ingress and queue at its arrival, egress at its departure
    gates        a port that its far end may pause, and that pauses the links into its switch
    pause_times  renewals, ends and watchdogs of pauses
    windows      all hosts, then all switches, window by window; the end of a run
"""
