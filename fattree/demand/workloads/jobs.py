"""Jobs: collectives and workloads on hosts of their own, at their own time or one after another."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace

import numpy as np
from numpy.typing import NDArray

from fattree.demand.flows import Flows, offsets
from fattree.demand.matrices import pairs
from fattree.demand.planes import one_plane, over_nics, over_planes
from fattree.demand.workloads.collectives import collective_graph
from fattree.demand.workloads.file import About, read_workload
from fattree.demand.workloads.graph import (
    Graph,
    graph_flows,
    pipelined,
    refuse_many,
    shared_by_depth,
    transfers,
)
from fattree.demand.workloads.hosts import hosts_named, placed
from fattree.errors import TrafficError
from fattree.experiment.model import Collective, Scenario
from fattree.shape.addressing import host_name
from fattree.shape.topology import FatTree
from fattree.units import PS_PER_NS

Int64 = NDArray[np.int64]


def job_flows(scenario: Scenario) -> list[tuple[str, Flows]]:
    """Return each job's name and flows; a collective alone is a job without a name.

    A flow waits for flows by their numbers among all flows, job after job. Raises TrafficError.
    """
    scale_of(scenario)
    _refuse_idle_use(scenario)
    if not scenario.jobs:
        return [("", _flows(scenario, scenario.collective, 0))]

    by_name: dict[str, Flows] = {}
    first: dict[str, int] = {}
    count = 0
    for job in scenario.jobs:
        with _named(job.name):
            flows = _flows(scenario, job.collective, round(job.start_ns * PS_PER_NS))

        flows = replace(flows, after=flows.after + count)
        if job.after is not None:
            flows = _following(scenario.tree, flows, by_name[job.after], first[job.after], job.name)

        by_name[job.name] = flows
        first[job.name] = count
        count += len(flows)
        refuse_many(count)

    return list(by_name.items())


@contextmanager
def _named(job: str) -> Iterator[None]:
    """Put the job's name before an error of its collective; a collective alone has none."""
    try:
        yield
    except TrafficError as error:
        raise TrafficError(f"job {job}: {error}" if job else str(error)) from None


def _refuse_idle_use(scenario: Scenario) -> None:
    if scenario.fabric.plane_use and all(
        collective.placement == "rail" for collective in scenario.collectives
    ):
        raise TrafficError(
            f'fabric.plane_use = "{scenario.fabric.plane_use}" says nothing where placement = '
            '"rail" has chosen the plane of every message'
        )


def scale_of(scenario: Scenario) -> int:
    """Return the divisor of a scenario's workloads, 1 without a workload; raises TrafficError."""
    names = [job.name for job in scenario.jobs] or [""]
    scales = set()
    for name, collective in zip(names, scenario.collectives, strict=True):
        if collective.matrix == "workload" and collective.file:
            with _named(name):
                scales.add(read_workload(collective.file)[1].scale)

    if len(scales) > 1:
        raise TrafficError(f"workloads of different scales ({sorted(scales)}) have no common time")

    return scales.pop() if scales else 1


def is_in_one_plane(collective: Collective) -> bool:
    """Return whether each message has a plane of its own: by rail, or by the NIC that it names."""
    if collective.placement == "rail":
        return True

    is_file = collective.matrix == "workload" and collective.file is not None
    return is_file and read_workload(str(collective.file))[0].nic is not None


def joined_flows(parts: Sequence[Flows]) -> Flows:
    """Return the flows of all jobs, one job after the other."""
    columns = {
        field.name: np.concatenate([getattr(part, field.name) for part in parts])
        for field in fields(Flows)
        if field.name != "after_offset"
    }
    lengths = np.concatenate([np.diff(part.after_offset) for part in parts])
    return Flows(after_offset=offsets(lengths), **columns)


def _flows(scenario: Scenario, collective: Collective, start_ps: int) -> Flows:
    graph, hosts = _graph(scenario, collective)
    flows = graph_flows(graph, hosts, scenario.packets.payload_bytes, start_ps)
    if collective.placement == "rail":
        _refuse_between_rails(scenario.tree, flows)
        if graph.nic is not None:
            raise TrafficError(
                'placement = "rail" says nothing where the workload names the NIC of every message'
            )
    elif graph.nic is not None:
        flows = over_nics(scenario, flows, graph.nic)
    else:
        flows = over_planes(scenario, flows)

    return shared_by_depth(scenario.tree, flows)


def _refuse_between_rails(tree: FatTree, flows: Flows) -> None:
    rails = [ends // tree.machines for ends in (flows.source, flows.destination)]
    between = np.flatnonzero(rails[0] != rails[1])
    if len(between):
        ends = (flows.source[between[0]], flows.destination[between[0]])
        source, destination = (host_name(tree, int(end)) for end in ends)
        raise TrafficError(
            f'placement = "rail": {source} sends to {destination}, but planes do not meet: '
            "only GPUs of one number on their servers reach each other"
        )


def _graph(scenario: Scenario, collective: Collective) -> tuple[Graph, Int64]:
    """Return a collective's graph, and the host (of the first plane) of each of its ranks.

    By rail it is the NIC of the GPU's own plane.
    """
    tree = one_plane(scenario).tree
    hosts = hosts_named(tree, collective.hosts)
    if collective.matrix == "pairs":
        ends = pairs(tree, collective.pairs)
        sizes = np.full(len(ends[0]), collective.message_bytes, dtype=np.int64)
        return transfers(*ends, sizes), hosts

    if collective.matrix == "workload":
        if collective.file is None:
            raise TrafficError('matrix workload needs collective.file, as in file = "step.parquet"')

        graph, about = read_workload(collective.file)
        if collective.placement == "rail":
            hosts = _rails(scenario.tree, hosts, about)

        if about.ranks > len(hosts):
            raise TrafficError(
                f"{collective.file}: has {about.ranks:,} ranks, but there are {len(hosts):,} hosts"
            )

        # Packed or by rail, the first hosts; at random, any.
        candidates = hosts if collective.placement == "random" else hosts[: about.ranks]
        return graph, placed(candidates, collective.placement, scenario.seed, about.gpus_per_server)

    hosts = placed(hosts, collective.placement, scenario.seed, 1)
    algorithm = collective.algorithm or collective.usual_algorithm
    # Only where it matters: a ring needs no whole servers.
    servers = (
        _in_servers(tree, hosts)
        if algorithm == "hierarchical"
        else np.arange(len(hosts)).reshape(1, -1)
    )
    graph = collective_graph(collective.matrix, algorithm, servers, collective.message_bytes)
    return pipelined(graph, collective.chunks), hosts


def _rails(tree: FatTree, machines: Int64, about: About) -> Int64:
    """Return the hosts of GPUs, all first ones, all second ones, ...; over planes, a plane each."""
    if tree.planes == 1:
        return machines

    if about.gpus_per_server != tree.planes:
        raise TrafficError(
            f'placement = "rail" over planes gives each GPU of a server a plane: the workload has '
            f"{about.gpus_per_server} a server, and there are {tree.planes} planes"
        )

    used = machines[: -(-about.ranks // tree.planes)]
    return (np.arange(tree.planes)[:, None] * tree.machines + used).ravel()


def _in_servers(tree: FatTree, hosts: Int64) -> Int64:
    """Return the ranks of hosts in rows of one server (the hosts of an edge switch) each."""
    edges = hosts // tree.hosts_per_edge
    order = np.argsort(edges, kind="stable")
    _, counts = np.unique(edges, return_counts=True)
    if len(np.unique(counts)) > 1:
        raise TrafficError(
            'algorithm = "hierarchical" needs as many hosts on every server (edge switch) '
            f"that has some, not {counts.min()} to {counts.max()}"
        )

    return order.reshape(len(counts), -1)


def _following(tree: FatTree, flows: Flows, before: Flows, first: int, name: str) -> Flows:
    """Let the flows of a job that wait for nothing wait for their hosts' parts of another job."""
    # Both ends of a flow know when it is complete. A flow that another flow of the host
    # awaits is not awaited once more.
    machines = tree.machines
    number = np.arange(len(before)) + first
    host = np.concatenate([before.source, before.destination]) % machines
    flow = np.tile(number, 2)
    waiting = np.repeat(np.arange(len(before)), np.diff(before.after_offset))
    is_awaited = np.isin(
        flow * machines + host, before.after * machines + before.source[waiting] % machines
    )
    is_computation = np.arange(len(flow)) >= len(before)
    is_computation &= before.source[flow - first] == before.destination[flow - first]
    chosen = ~is_awaited & ~is_computation
    order = np.argsort(host[chosen], kind="stable")
    last = flow[chosen][order]
    bounds = offsets(np.bincount(host[chosen], minlength=machines))

    waits = np.diff(flows.after_offset)
    is_root = waits == 0
    lengths = np.where(is_root, np.diff(bounds)[flows.source % machines], waits)
    if (lengths == 0).any():
        stranger = host_name(tree, int(flows.source[np.argmin(lengths)]))
        raise TrafficError(
            f"job {name}: {stranger} has no part in the job that it is after, "
            "so that it cannot know when to begin"
        )

    # Rows of the one array or the other, each from where it begins in both laid end to end.
    begins = np.where(
        is_root, len(flows.after) + bounds[flows.source % machines], flows.after_offset[:-1]
    )
    offset = offsets(lengths)
    places = np.repeat(begins - offset[:-1], lengths) + np.arange(offset[-1])
    return replace(
        flows,
        after_offset=offset,
        after=np.concatenate([flows.after, last])[places],
        start_ps=np.full(len(flows), before.start_ps[0]),
    )
