"""Several threads for one run: in a window, nodes that are not neighbours are independent of each
other (simulator model).

Hosts and aggregation switches are nobody's neighbours among themselves, nor are edge and core
switches. So a window is served in three rounds, hosts, aggs, edges and cores, each cut in one part
a thread. Parts share all arrays but the counters and the stack of spare chunks, which have one
owner each. Which chunks hold a packet changes with the number of threads, and nothing else does.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from hostagent.state import NEVER
from sim.state import (
    CLOCK,
    COUNTERS,
    LAST_DONE,
    LIVE,
    SPARE,
    UNFINISHED,
    UNROUTABLE,
    Buffers,
    Routes,
    World,
)
from sim.windows import (
    FINISHED,
    REACHED,
    STARVED,
    STUCK,
    chunks_needed,
    next_event,
    serve_hosts,
    serve_switches,
)

LINE = 64

Span: TypeAlias = tuple[int, int]
Serve: TypeAlias = Callable[[World, Buffers, Span], int]


class Crew:
    """Threads that wait for work: all but the caller's own."""

    def __init__(self, buffers: list[Buffers]) -> None:
        self.buffers = buffers
        self._others = ThreadPoolExecutor(max(1, len(buffers) - 1))

    def close(self) -> None:
        """Let the threads end."""
        self._others.shutdown()

    def serve(self, parts: list[World], serve: Serve, first: int, last: int) -> int:
        """Serve nodes `first` to `last` - 1, a share each, and return how many packets that were."""
        cuts = [first + (last - first) * number // len(parts) for number in range(len(parts) + 1)]
        work = list(zip(parts, self.buffers, pairwise(cuts), strict=True))
        others = [self._others.submit(serve, *shares) for shares in work[1:]]

        return serve(*work[0]) + sum(other.result() for other in others)


def advance_side_by_side(world: World, routes: Routes, until_ps: int, crew: Crew) -> int:
    """Do what `sim.windows.advance` does, with the threads of a crew.

    In between, `world` is whole.
    """
    parts = _split(world, len(crew.buffers))
    try:
        return _advance(parts, routes, until_ps, crew)
    finally:
        _spread(parts, 1)


def _split(world: World, count: int) -> list[World]:
    """Return the world as the first part and others that have counters and a stack of their own,
    both empty.
    """
    rows = np.zeros((count - 1, max(COUNTERS, LINE)), dtype=np.int64)
    pools = [world.pool._replace(spare=np.empty_like(world.pool.spare)) for _ in rows]
    return [
        world,
        *(world._replace(counters=row, pool=pool) for row, pool in zip(rows, pools, strict=True)),
    ]


def _advance(parts: list[World], routes: Routes, until_ps: int, crew: Crew) -> int:
    world = parts[0]
    counters = parts[0].counters
    while counters[CLOCK] < until_ps:
        needed = int(chunks_needed(world))
        if (
            min(int(part.counters[SPARE]) for part in parts) < needed
            and _spread(parts, len(parts)) < needed
        ):
            return STARVED

        served = _serve_window(
            parts, routes, min(int(counters[CLOCK]) + world.constants.window_ps, until_ps), crew
        )
        if counters[UNFINISHED] == 0:
            return FINISHED

        if served == 0:
            next_ps = int(next_event(world))
            if next_ps == NEVER:
                return STUCK

            counters[CLOCK] = max(int(counters[CLOCK]), min(next_ps, until_ps))

    return REACHED


def _serve_window(parts: list[World], routes: Routes, end_ps: int, crew: Crew) -> int:
    """Do what `sim.windows.serve_window` does, in three rounds."""
    constants = parts[0].constants
    counters = parts[0].counters
    for part in parts[1:]:
        part.counters[CLOCK] = counters[CLOCK]

    def hosts(part: World, _: Buffers, span: Span) -> int:
        return int(serve_hosts(part, routes, *span, end_ps))

    def switches(part: World, buffers: Buffers, span: Span) -> int:
        return int(serve_switches(part, routes, *span, end_ps, buffers))

    served = crew.serve(parts, hosts, 0, constants.hosts)
    _add_up(parts)
    if counters[UNFINISHED] == 0:
        end_ps = int(counters[LAST_DONE]) + 1

    served += crew.serve(parts, switches, constants.edges, 2 * constants.edges)
    served += crew.serve(parts, switches, 0, constants.edges)
    served += crew.serve(parts, switches, 2 * constants.edges, constants.switches)
    _add_up(parts)
    counters[CLOCK] = end_ps

    return served


def _add_up(parts: list[World]) -> None:
    """Move the counts of all parts to the first."""
    counters = parts[0].counters
    for part in parts[1:]:
        for name in (LIVE, UNFINISHED, UNROUTABLE):
            counters[name] += part.counters[name]
            part.counters[name] = 0

        counters[LAST_DONE] = max(counters[LAST_DONE], part.counters[LAST_DONE])


def _spread(parts: list[World], owners: int) -> int:
    """Share all spare chunks out among the first `owners` parts.

    Return how many each has at least.
    """
    spare = np.concatenate([part.pool.spare[: part.counters[SPARE]] for part in parts])
    for part, chunks in zip(
        parts, [*np.array_split(spare, owners), *[spare[:0]] * (len(parts) - owners)], strict=True
    ):
        part.pool.spare[: len(chunks)] = chunks
        part.counters[SPARE] = len(chunks)

    return len(spare) // owners
