"""Small random graphs of transfers: collectives, jobs, and workload files with computations."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from fattree.demand.traffic import check_collective
from fattree.demand.workloads.collectives import ALGORITHMS
from fattree.demand.workloads.file import About, write_workload
from fattree.demand.workloads.graph import Graph
from fattree.errors import FabricError
from fattree.experiment.model import Collective, Fabric, Job, LoadBalancer, Scenario
from fattree.policies import POLICIES
from fattree.shape.topology import FatTree
from tests.parity.scenarios import allowed, failures, options, transports

TREE = FatTree(4)
PAYLOAD = 4096
HOSTS = (
    "",
    "pod0",
    "pod1, pod2",
    "edge1_*",
    "edge3_1, edge0_0",
    "h2_0_1, h0_1_0",
    "h3_*_0-1",
    "pod0-1",
    "h*_0_0",
)
FEW_HOSTS = HOSTS[1:7]


@st.composite
def collectives(draw: Any, hosts: tuple[str, ...] = HOSTS) -> Collective:
    matrix = draw(st.sampled_from(sorted(ALGORITHMS)))
    return Collective(
        matrix=matrix,
        algorithm=draw(st.sampled_from(sorted(ALGORITHMS[matrix]))),
        chunks=draw(st.sampled_from((1, 1, 2, 3))),
        hosts=draw(st.sampled_from(hosts)),
        placement=draw(st.sampled_from(("packed", "random"))),
        message_bytes=draw(st.integers(1, (4 if matrix == "all_to_all" else 30) * PAYLOAD)),
    )


@st.composite
def single_flows(draw: Any) -> Collective:
    hosts = st.integers(0, TREE.hosts - 1)
    ends = st.tuples(hosts, hosts).filter(lambda pair: pair[0] != pair[1])
    return Collective(
        matrix="pairs",
        pairs=tuple(draw(st.lists(ends, min_size=1, max_size=5))),
        message_bytes=draw(st.integers(1, 30 * PAYLOAD)),
    )


@st.composite
def jobs(draw: Any) -> tuple[Job, ...]:
    chosen: list[Job] = []
    for number in range(draw(st.integers(1, 3))):
        is_after = bool(chosen) and draw(st.booleans())
        before = draw(st.sampled_from(chosen)) if is_after else None
        if draw(st.booleans()) and not before:
            chosen.append(Job(name=f"job{number}", collective=draw(single_flows())))
            continue

        chosen.append(
            Job(
                name=f"job{number}",
                # Most jobs after another have its hosts: others have no part in it.
                collective=draw(collectives((before.collective.hosts,) if before else FEW_HOSTS)),
                start_ns=0 if before else draw(st.sampled_from((0, 1_234.5, 20_000))),
                after=before.name if before else None,
            )
        )
    return tuple(chosen)


@st.composite
def graphs(draw: Any) -> Graph:
    """Draw up to 14 transfers and computations, each after some earlier ones of its rank."""
    rows: list[tuple[int, int, int, int]] = []
    edges: list[tuple[int, int]] = []
    ranks = st.integers(0, TREE.hosts - 1)
    for number in range(draw(st.integers(1, 14))):
        source, destination = draw(ranks), draw(ranks)
        if source == destination and number:
            rows.append((source, source, 0, draw(st.sampled_from((0, 1, 5_120, 3_000_000)))))
        else:
            target = (source + 1) % TREE.hosts if source == destination else destination
            rows.append((source, target, draw(st.integers(1, 12 * PAYLOAD)), 0))
        earlier = [n for n, row in enumerate(rows[:-1]) if source in row[:2]]
        if earlier:
            chosen = draw(st.lists(st.sampled_from(earlier), max_size=3, unique=True))
            edges += [(number, target) for target in chosen]
    waits = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    source, destination, size, compute_ps = np.array(rows, dtype=np.int64).T.copy()
    return Graph(source, destination, size, compute_ps, waits[0], waits[1])


@st.composite
def graph_scenarios(draw: Any, folder: Path, is_any: bool = True, most_planes: int = 3) -> Scenario:
    """Draw a scenario at k = 4 with a collective, jobs or a workload file, and failures.

    Or in up to `most_planes` planes of that. Not `is_any`: only settings of the virtual network,
    too.
    """
    planes = draw(st.sampled_from([None, None, *range(2, most_planes + 1)]))
    use = draw(st.sampled_from((None, "spray", "keep"))) if planes else None
    kind = draw(st.sampled_from(("collective", "jobs", "workload")))
    if kind == "jobs":
        traffic: dict[str, Any] = {"jobs": draw(jobs())}
    elif kind == "collective":
        traffic = {"collective": draw(collectives())}
    else:
        path = folder / "drawn.parquet"
        graph = replace(draw(graphs()), in_turn=draw(st.booleans()))
        if planes and not use and draw(st.booleans()):
            nics = draw(st.lists(st.integers(0, planes - 1), min_size=14, max_size=14))
            graph = replace(graph, nic=np.array(nics[: len(graph)]))
        write_workload(path, graph, About(ranks=TREE.hosts))
        placement = draw(st.sampled_from(("packed", "random")))
        traffic = {"collective": Collective(matrix="workload", file=str(path), placement=placement)}
    broken = draw(failures(FatTree(4, planes=planes or 1)))
    policy = draw(st.sampled_from(tuple(POLICIES)))
    transport = allowed(policy, draw(transports(can_trim=True)))
    return Scenario(
        policy=policy,
        seed=draw(st.integers(0, 2**63 - 1)),
        fabric=Fabric(
            k=4,
            planes=planes,
            plane_use=use,
            queue_bytes=draw(st.sampled_from((800_000, 12 * (PAYLOAD + 62)))),
            latency_ns=draw(st.sampled_from((500, 83.56, 10_000))),
        ),
        load_balancer=draw(options(transport)) if is_any else LoadBalancer(),
        transport=transport,
        failures=broken,
        **traffic,
    )


def can_be_built(scenario: Scenario) -> bool:
    """Return whether the traffic exists: not every collective does on these hosts."""
    try:
        check_collective(scenario)
    except FabricError:
        return False
    return True
