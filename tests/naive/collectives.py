"""Collectives, jobs and workload files as plain lists of steps, each with its conditions.

A step is (source, destination, bytes, compute time, steps that it waits for). Ranks count from 0.
"""

import json
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import ceil
from typing import Any

import polars as pl

from fattree.experiment.model import Scenario
from tests.naive.draws import Purpose, number
from tests.naive.tree import Tree

PS_PER_NS = 1_000
# The matrix stream of random placements.
PLACEMENT = 2**21


@dataclass(frozen=True)
class Step:
    source: int
    destination: int
    size: int
    compute_ps: int = 0
    waits: frozenset[int] = frozenset()


@dataclass
class Job:
    """The steps of a job between hosts, numbered from 0, and when it begins."""

    steps: list[Step]
    start_ps: int = 0
    first: int = 0
    shares: list[int] = field(default_factory=list)
    in_turn: bool = False


Send = tuple[int, int, int]


def jobs(scenario: Scenario) -> list[Job]:
    """Return all jobs of a scenario; the steps of all jobs are numbered together."""
    if not scenario.jobs:
        return [made(scenario, scenario.collective)]

    machines = Tree.of(scenario).hosts // (scenario.fabric.planes or 1)
    by_name: dict[str, Job] = {}
    for entry in scenario.jobs:
        job = made(scenario, entry.collective)
        job.first = sum(len(earlier.steps) for earlier in by_name.values())
        job.start_ps = round(entry.start_ns * PS_PER_NS)
        roots = [not step.waits for step in job.steps]
        job.steps = [
            replace(step, waits=frozenset(job.first + earlier for earlier in step.waits))
            for step in job.steps
        ]
        if entry.after is not None:
            before = by_name[entry.after]
            job.start_ps = before.start_ps
            job.steps = [
                replace(step, waits=last_steps(before, step.source, machines)) if is_root else step
                for step, is_root in zip(job.steps, roots, strict=True)
            ]
        by_name[entry.name] = job
    return list(by_name.values())


def last_steps(job: Job, host: int, machines: int) -> frozenset[int]:
    """Return a job's last steps at a host's machine: no other step of the job waits for them."""
    here = host % machines
    mine = {
        job.first + number
        for number, step in enumerate(job.steps)
        if here in (step.source % machines, step.destination % machines)
    }
    awaited = {w for step in job.steps if step.source % machines == here for w in step.waits}
    return frozenset(mine - awaited)


def made(scenario: Scenario, spec: Any) -> Job:
    planes = scenario.fabric.planes
    fabric = scenario.fabric.model_copy(update={"planes": None})
    tree = Tree.of(scenario.model_copy(update={"fabric": fabric}))
    hosts = named(tree, spec.hosts)
    if spec.placement == "rail":
        # Of as many GPUs a server as there are planes, each has a NIC of its own.
        assert planes
        hosts = [plane * tree.hosts + host for host in hosts for plane in range(planes)]
    if spec.placement == "random":
        hosts = [hosts[index] for index in shuffled(scenario.seed, len(hosts))]
    if spec.matrix == "workload":
        steps = of_file(spec.file)
    elif spec.matrix == "pairs":
        steps = [Step(a, b, spec.message_bytes) for a, b in spec.pairs]
    else:
        servers = defaultdict(list)
        for rank, host in enumerate(hosts):
            servers[tree.edge_of(host)].append(rank)
        rows = [servers[edge] for edge in sorted(servers)]
        steps = chunked(of_collective(spec, rows), spec.chunks)

    steps = [replace(s, source=hosts[s.source], destination=hosts[s.destination]) for s in steps]
    if spec.matrix == "workload" and (nics := named_nics(spec.file)):
        # A NIC is in the plane of its number.
        steps = [
            replace(
                s, source=s.source + nic * tree.hosts, destination=s.destination + nic * tree.hosts
            )
            for s, nic in zip(steps, nics, strict=True)
        ]
    elif planes and spec.placement != "rail":
        steps = over_planes(scenario, steps, planes, tree.hosts)
    job = Job(steps)
    job.shares = shares(job.steps)
    # A rank has one partner at a time.
    job.in_turn = spec.algorithm == "recursive"
    if spec.matrix == "workload" and spec.file:
        job.in_turn = json.loads(pl.read_parquet_metadata(spec.file)["ofan"])["in_turn"]
    return job


def part_sizes(size: int, parts: int) -> list[int]:
    """Share out bytes: the first parts get one more where they do not come out even."""
    shared = [size // parts + (part < size % parts) for part in range(parts)]
    return [max(part_bytes, 1) for part_bytes in shared] if size else shared


def over_planes(scenario: Scenario, steps: list[Step], planes: int, machines: int) -> list[Step]:
    """Return the steps between NICs: whole in turn, or in equal parts; computations in plane 0."""
    if scenario.fabric.plane_use == "keep":
        sent: Counter[int] = Counter()
        kept = []
        for step in steps:
            base = (step.source + sent[step.source]) % planes * machines if step.size else 0
            sent[step.source] += step.size > 0
            kept.append(
                replace(step, source=base + step.source, destination=base + step.destination)
            )
        return kept

    parts = [
        (index, plane)
        for index, step in enumerate(steps)
        for plane in range(planes if step.size else 1)
    ]
    indices = {part: index for index, part in enumerate(parts)}
    return [
        Step(
            plane * machines + step.source,
            plane * machines + step.destination,
            part_sizes(step.size, planes)[plane],
            step.compute_ps,
            frozenset(
                indices[awaited, awaited_plane]
                for awaited in step.waits
                for awaited_plane in range(planes)
                if (awaited, awaited_plane) in indices
                and (awaited_plane == plane or not step.size or not steps[awaited].size)
            ),
        )
        for index, plane in parts
        for step in (steps[index],)
    ]


def shares(steps: list[Step]) -> list[int]:
    """Return how many steps of one depth leave a step's source, or reach its destination."""
    depth = depths(steps)
    counts: defaultdict[tuple[str, int, int], int] = defaultdict(int)
    for step, deep in zip(steps, depth, strict=True):
        if step.size:
            counts["from", deep, step.source] += 1
            counts["to", deep, step.destination] += 1
    return [
        max(counts["from", deep, step.source], counts["to", deep, step.destination])
        if step.size
        else 1
        for step, deep in zip(steps, depth, strict=True)
    ]


def depths(steps: list[Step]) -> list[int]:
    depth_of: dict[int, int] = {}
    while len(depth_of) < len(steps):
        for number_, step in enumerate(steps):
            if number_ not in depth_of and all(awaited in depth_of for awaited in step.waits):
                depth_of[number_] = max(
                    (depth_of[awaited] + 1 for awaited in step.waits), default=0
                )
    return [depth_of[number_] for number_ in range(len(steps))]


def of_file(path: str) -> list[Step]:
    rows = pl.read_parquet(path).rows(named=True)
    return [
        Step(
            row["source"],
            row["destination"],
            row["bytes"],
            row["compute_ps"],
            frozenset(row["after"]),
        )
        for row in rows
    ]


def named_nics(path: str) -> list[int]:
    """Return the NIC of each step, 0 for a computation; empty where the file names none."""
    table = pl.read_parquet(path)
    return table["nic"].to_list() if "nic" in table.columns else []


def named(tree: Tree, text: str) -> list[int]:
    """Return the hosts of names and ranges."""
    every = [
        (host, (tree.pod_of(host), tree.position(tree.edge_of(host)), host % tree.hosts_at_edge))
        for host in range(tree.hosts)
    ]
    if not text:
        return [host for host, _ in every]
    return [
        host
        for name in text.replace(" ", "").split(",")
        for host, coordinates in every
        if all(
            part == "*" or int(part.split("-")[0]) <= coordinate <= int(part.split("-")[-1])
            for part, coordinate in zip(
                re.sub("^[a-z]+", "", name).split("_"), coordinates, strict=False
            )
        )
    ]


def shuffled(seed: int, count: int) -> list[int]:
    def key(item: int) -> int:
        first, second = (
            number(seed, Purpose.MATRIX, PLACEMENT, 2 * item + part) for part in range(2)
        )
        return first * 2**31 + second // 2

    return sorted(range(count), key=key)


def of_collective(collective: Any, servers: list[list[int]]) -> list[Step]:
    matrix: str = collective.matrix
    size: int = collective.message_bytes
    usual = "direct" if matrix in ("all_to_all", "incast") else "ring"
    algorithm: str = collective.algorithm or usual
    ranks = list(range(sum(map(len, servers))))
    n = len(ranks)
    # The k-th hosts of all servers.
    rails = [list(rail) for rail in zip(*servers, strict=False)]

    match matrix, algorithm:
        case "all_reduce", "ring":
            return rounds(rings([ranks], ceil(size / n)) * 2 * (n - 1))
        case (("reduce_scatter" | "all_gather"), "ring"):
            return rounds(rings([ranks], ceil(size / n)) * (n - 1))
        case "all_reduce", "recursive":
            return rounds(halves(n, size) + halves(n, size)[::-1])
        case "reduce_scatter", "recursive":
            return rounds(halves(n, size))
        case "all_gather", "recursive":
            return rounds(halves(n, size)[::-1])
        case "broadcast", "recursive":
            return rounds(scattering(n, size) + halves(n, size)[::-1])
        case "all_to_all", "recursive":
            return rounds([[(a, b, size * n // 2) for a, b, _ in sent] for sent in halves(n, n)])
        case _, "hierarchical":
            return rounds(hierarchical(matrix, size, servers, rails))
        case "broadcast", "ring":
            return rounds([[(rank, rank + 1, size)] for rank in ranks[:-1]])
        case "all_to_all", "ring":
            return rounds(shifts([ranks], size))
        case "all_reduce", "direct":
            return rounds([to_all_others(n, ceil(size / n)) for _ in range(2)])
        case (("reduce_scatter" | "all_gather"), "direct"):
            return rounds([to_all_others(n, ceil(size / n))])
        case "all_to_all", "direct":
            return [Step(a, (a + by) % n, size) for a in ranks for by in range(1, n)]
        case "incast", "direct":
            return [Step(rank, 0, size) for rank in ranks[1:]]
        case "broadcast", "double_tree":
            return double_tree_broadcast(n, size)
        case _:
            assert (matrix, algorithm) == ("all_reduce", "double_tree")
            return double_tree_all_reduce(n, size)


def hierarchical(
    matrix: str, size: int, servers: list[list[int]], rails: list[list[int]]
) -> list[list[Send]]:
    s, g = len(servers), len(rails)
    inside, between = rings(servers, ceil(size / g)), rings(rails, ceil(size / (s * g)))
    match matrix:
        case "all_reduce":
            return inside * (g - 1) + between * 2 * (s - 1) + inside * (g - 1)
        case "reduce_scatter":
            return inside * (g - 1) + between * (s - 1)
        case "all_gather":
            return between * (s - 1) + inside * (g - 1)
        case "broadcast":
            heads = [[(a[0], b[0], size)] for a, b in pairwise(servers)]
            return heads + [
                [(row[index], row[index + 1], size) for row in servers] for index in range(g - 1)
            ]
        case _:
            return shifts(servers, size * s) + shifts(rails, size * g)


def rings(rows: list[list[int]], size: int) -> list[list[Send]]:
    """Return one round: every rank sends to the next rank of its row."""
    return [[(row[i], row[(i + 1) % len(row)], size) for row in rows for i in range(len(row))]]


def shifts(rows: list[list[int]], size: int) -> list[list[Send]]:
    return [
        [(row[i], row[(i + by) % len(row)], size) for row in rows for i in range(len(row))]
        for by in range(1, len(rows[0]))
    ]


def to_all_others(n: int, size: int) -> list[Send]:
    return [(rank, (rank + by) % n, size) for rank in range(n) for by in range(1, n)]


def halves(n: int, size: int) -> list[list[Send]]:
    """Return the rounds of halving: half of the data, to a peer at half of the distance."""
    all_rounds, distance = [], n // 2
    while distance:
        all_rounds.append([(a, a ^ distance, ceil(size * distance / n)) for a in range(n)])
        distance //= 2
    return all_rounds


def scattering(n: int, size: int) -> list[list[Send]]:
    all_rounds, distance = [], n // 2
    while distance:
        part = ceil(size * distance / n)
        all_rounds.append([(a, a + distance, part) for a in range(0, n, 2 * distance)])
        distance //= 2
    return all_rounds


def rounds(sent: list[list[Send]]) -> list[Step]:
    """Return the steps of rounds: a step waits for its source's steps of the round before."""
    steps: list[Step] = []
    last: dict[int, list[int]] = {}
    for sends in sent:
        now: defaultdict[int, list[int]] = defaultdict(list)
        for source, destination, size in sends:
            for rank in (source, destination):
                now[rank].append(len(steps))
            steps.append(Step(source, destination, size, 0, frozenset(last.get(source, ()))))
        last |= now
    return steps


def chunked(steps: list[Step], chunks: int) -> list[Step]:
    """Return steps in chunks; chunks from one rank to another are sent one after the other."""
    depth = depths(steps)
    before: dict[int, int] = {}
    last: dict[tuple[int, int], int] = {}
    for number_ in sorted(range(len(steps)), key=lambda index: (depth[index], index)):
        pair = steps[number_].source, steps[number_].destination
        if pair in last:
            before[number_ * chunks] = last[pair]
        for chunk in range(1, chunks):
            before[number_ * chunks + chunk] = number_ * chunks + chunk - 1
        last[pair] = number_ * chunks + chunks - 1
    return [
        Step(
            step.source,
            step.destination,
            ceil(step.size / chunks),
            0,
            frozenset(awaited * chunks + chunk for awaited in step.waits)
            | (
                {before[chunk_number]}
                if (chunk_number := number_ * chunks + chunk) in before
                else frozenset()
            ),
        )
        for number_, step in enumerate(steps)
        for chunk in range(chunks)
    ]


def parent(place: int, n: int) -> int | None:
    """Return a place's parent: odd places are leaves; more factors of two mean a higher level."""
    if place == 0:
        return None
    low = 1
    while place % (2 * low) == 0:
        low *= 2
    up = place - low if (place // low) % 4 == 3 else place + low
    return up if up < n else place - low


def trees(n: int) -> list[dict[int, int | None]]:
    """Return the parents in two trees; the second is reversed, or shifted by 1."""
    first = {rank: parent(rank, n) for rank in range(n)}
    moved = {rank: n - 1 - rank if n % 2 == 0 else (rank + 1) % n for rank in range(n)}
    second = {moved[a]: None if b is None else moved[b] for a, b in first.items()}
    return [first, dict(sorted(second.items()))]


def double_tree_broadcast(n: int, size: int) -> list[Step]:
    steps: list[Step] = []
    for above in trees(n - 1):
        base = len(steps)
        for rank, up in above.items():
            # Rank 0 stands outside of both.
            waits = frozenset() if up is None else frozenset({base + up})
            steps.append(Step(0 if up is None else up + 1, rank + 1, ceil(size / 2), 0, waits))
    return steps


def double_tree_all_reduce(n: int, size: int) -> list[Step]:
    steps: list[Step] = []
    for above in trees(n):
        base = len(steps)
        children = [rank for rank, up in above.items() if up is not None]
        step_of = {rank: base + index for index, rank in enumerate(children)}
        for rank in children:
            waits = {step_of[child] for child in children if above[child] == rank}
            steps.append(Step(rank, above[rank] or 0, ceil(size / 2), 0, frozenset(waits)))
        for rank in children:
            up = above[rank] or 0
            tops = {step_of[child] for child in children if above[child] == up}
            waits = {step_of[up] + len(children)} if up in step_of else tops
            steps.append(Step(up, rank, ceil(size / 2), 0, frozenset(waits)))
    return steps
