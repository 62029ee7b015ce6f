"""Planes: fabrics side by side, with a NIC of every host in each; what a host sends over which.

A scenario's hosts are NICs: plane after plane, n-th host after n-th host. Its collective speaks of
hosts of one plane, which are the machines. `spray` gives each plane an equal part of every message,
and a part waits for parts in its own plane only (a ring a rail); `keep` leaves a message whole.
"""

import numpy as np
from numpy.typing import NDArray

from fattree.errors import TrafficError
from fattree.experiment import Scenario
from fattree.flows import Flows, entries, offsets

Int64 = NDArray[np.int64]


def one_plane(scenario: Scenario) -> Scenario:
    """Return a scenario as if there were one plane; raises TrafficError for what planes lack."""
    if scenario.jobs or scenario.collective.is_graph:
        raise TrafficError(
            "fabric.planes: jobs, workloads and collectives by algorithm know one plane only"
        )

    fabric = scenario.fabric.model_copy(update={"planes": None, "plane_use": None})
    return scenario.model_copy(update={"fabric": fabric})


def over_planes(scenario: Scenario, whole: Flows) -> Flows:
    """Return the flows between NICs of `whole`, which are between hosts; raises TrafficError."""
    planes = scenario.fabric.planes or 1
    hosts = scenario.tree.hosts // planes
    if scenario.fabric.plane_use == "keep":
        return _kept(whole, planes, hosts)

    # Part p of flow f is flow f * planes + p, in plane p.
    flow = np.repeat(np.arange(len(whole)), planes)
    plane = np.tile(np.arange(planes), len(whole))
    waits = np.diff(whole.after_offset)[flow]
    after = whole.after[entries(whole.after_offset, flow)]
    return Flows(
        source=plane * hosts + whole.source[flow],
        destination=plane * hosts + whole.destination[flow],
        packets=-(-whole.packets[flow] // planes),
        start_ps=whole.start_ps[flow],
        after_offset=offsets(waits),
        after=after * planes + np.repeat(plane, waits),
        compute_ps=whole.compute_ps[flow],
        share=whole.share[flow],
    )


def _kept(whole: Flows, planes: int, hosts: int) -> Flows:
    if len(whole.after):
        raise TrafficError(
            'fabric.plane_use = "keep": flows that wait for others may be on another plane than'
            ' those: take "spray"'
        )

    # A host's flows take the planes in turn, each host from another one on.
    order = np.argsort(whole.source, kind="stable")
    _, first, counts = np.unique(whole.source[order], return_index=True, return_counts=True)
    turn = np.empty(len(whole), dtype=np.int64)
    turn[order] = np.arange(len(whole)) - np.repeat(first, counts)
    plane = (whole.source + turn) % planes

    return Flows(
        source=plane * hosts + whole.source,
        destination=plane * hosts + whole.destination,
        packets=whole.packets,
        start_ps=whole.start_ps,
        after_offset=whole.after_offset,
        after=whole.after,
        compute_ps=whole.compute_ps,
        share=whole.share,
    )
