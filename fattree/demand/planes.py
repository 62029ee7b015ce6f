"""Planes: fabrics side by side, with a NIC of every machine in each; the choice of planes.

A scenario's hosts are NICs: plane after plane, n-th machine after n-th machine. Its collectives
number the hosts of one plane, which are the machines. `spray` gives each plane an equal part of
every message, and a part waits for parts in its own plane only (a ring a rail), but a computation
for all parts, and they for it; `keep` leaves a message whole. A workload that names the NIC of each
message has chosen its plane. A machine's NICs share their knowledge.
"""

import numpy as np
from numpy.typing import NDArray

from fattree.demand.flows import Flows, entries, offsets, parted
from fattree.errors import TrafficError
from fattree.experiment.model import Scenario

Int64 = NDArray[np.int64]


def one_plane(scenario: Scenario) -> Scenario:
    """Return a scenario as if there were one plane."""
    if not scenario.fabric.planes:
        return scenario

    fabric = scenario.fabric.model_copy(update={"planes": None, "plane_use": None})
    return scenario.model_copy(update={"fabric": fabric})


def over_planes(scenario: Scenario, whole: Flows) -> Flows:
    """Return the flows between NICs of `whole`, which are between machines."""
    planes = scenario.tree.planes
    if planes == 1:
        return whole

    machines = scenario.tree.machines
    keeps = scenario.fabric.plane_use == "keep"
    if keeps:
        return _kept(whole, planes, machines)

    return _sprayed(whole, planes, machines, scenario.packets.payload_bytes)


def over_nics(scenario: Scenario, whole: Flows, nic: Int64) -> Flows:
    """Return the flows of `whole` between the NICs that they name; raises TrafficError.

    A NIC is in the plane of its number. A computation belongs to the machine: it has no NIC.
    """
    planes, use = scenario.tree.planes, scenario.fabric.plane_use
    named = np.where(whole.packets > 0, nic, 0)
    if (highest := int(named.max(initial=0))) >= planes:
        raise TrafficError(
            f"its messages name NICs up to {highest}, and each host has {planes} here: "
            f"fabric.planes = {highest + 1} gives it a NIC in each of so many planes"
        )

    if use:
        raise TrafficError(
            f'fabric.plane_use = "{use}" says nothing where the workload names the NIC of every '
            "message"
        )

    return _in_planes(whole, named, scenario.tree.machines)


def _sprayed(whole: Flows, planes: int, machines: int, payload_bytes: int) -> Flows:
    # A flow's parts follow each other, plane after plane; a computation has one part, in the first
    # plane.
    is_sent = whole.packets > 0
    parts = np.where(is_sent, planes, 1)
    first = offsets(parts)
    flow = np.repeat(np.arange(len(whole)), parts)
    plane = np.arange(first[-1]) - first[flow]

    # One row an awaited flow of a part: the part in the same plane, or all of them.
    waits = np.diff(whole.after_offset)[flow]
    row = np.repeat(np.arange(len(flow)), waits)
    awaited = whole.after[entries(whole.after_offset, flow)]
    is_own_plane = is_sent[flow[row]] & is_sent[awaited]
    counts = np.where(is_own_plane, 1, parts[awaited])
    begins = first[awaited] + np.where(is_own_plane, plane[row], 0)
    after = np.repeat(begins - offsets(counts)[:-1], counts) + np.arange(counts.sum())

    lengths = np.bincount(row, weights=counts, minlength=len(flow)).astype(np.int64)
    of_parts = parted(whole.message_bytes(payload_bytes), planes, payload_bytes)
    packets, last_bytes = (column[flow * planes + plane] for column in of_parts)
    return Flows(
        source=plane * machines + whole.source[flow],
        destination=plane * machines + whole.destination[flow],
        packets=packets,
        last_bytes=last_bytes,
        start_ps=whole.start_ps[flow],
        after_offset=offsets(lengths),
        after=after,
        compute_ps=whole.compute_ps[flow],
        share=whole.share[flow],
        in_turn=whole.in_turn[flow],
    )


def _kept(whole: Flows, planes: int, machines: int) -> Flows:
    # A machine's messages take the planes in turn, each machine from another one on.
    sent = np.flatnonzero(whole.packets)
    order = sent[np.argsort(whole.source[sent], kind="stable")]
    _, first, counts = np.unique(whole.source[order], return_index=True, return_counts=True)
    turn = np.arange(len(order)) - np.repeat(first, counts)
    plane = np.zeros(len(whole), dtype=np.int64)
    plane[order] = (whole.source[order] + turn) % planes
    return _in_planes(whole, plane, machines)


def _in_planes(whole: Flows, plane: Int64, machines: int) -> Flows:
    return Flows(
        source=plane * machines + whole.source,
        destination=plane * machines + whole.destination,
        packets=whole.packets,
        last_bytes=whole.last_bytes,
        start_ps=whole.start_ps,
        after_offset=whole.after_offset,
        after=whole.after,
        compute_ps=whole.compute_ps,
        share=whole.share,
        in_turn=whole.in_turn,
    )
