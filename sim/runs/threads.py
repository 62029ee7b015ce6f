"""Several threads for one run: nodes that are not neighbours do not meet in a window.

Hosts and aggregation switches are not neighbours of each other, nor are edge and core
switches. So a window is served in three rounds, hosts, aggs, edges and cores, each cut in one part
a thread. Parts share all arrays but the counters and the stack of spare chunks, which have an
owner each. Which chunks hold a packet changes with the number of threads, and nothing else does.

Threads meet three times in each window, which takes as long as serving tens of thousands of
packets. Where fewer packets are under way, one thread serves the next windows alone.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from sim.kernels.events.windows import advance_pausing, next_to_serve, serve_event_switches
from sim.kernels.state import (
    CLOCK,
    COUNTERS,
    HIGHEST_PORT,
    HOPS,
    LAST_DONE,
    LIVE,
    MISDELIVERED,
    MISDIRECTED,
    PROBES_TAKEN,
    RECEIVED,
    SPARE,
    UNFINISHED,
    UNROUTABLE,
    UNSERVED,
    Routes,
    World,
)
from sim.kernels.windows import (
    REACHED,
    advance,
    chunks_needed,
    next_event,
    serve_hosts,
    serve_switches,
    through_windows,
)

# Counters in a row: eight of 64 bits are a cache line of 64 bytes. A row that is eight times as
# long keeps those of two threads apart, prefetched neighbours included.
ROW = 64
# One thread serves the next STRETCH windows if fewer than FEW_PACKETS packets are under way: in a
# window each packet is served about once.
STRETCH = 8
FEW_PACKETS = 50_000
# Counters that each part has for itself.
ADDED = (
    *(LIVE, UNFINISHED, UNROUTABLE, HOPS, RECEIVED, MISDELIVERED, UNSERVED, MISDIRECTED),
    PROBES_TAKEN,
)

Span: TypeAlias = tuple[int, int]
# A part of the world, the thread's own buffers, and which nodes.
Serve: TypeAlias = Callable[[World, Any, Span], int]


class Nodes(NamedTuple):
    """The kernels that serve hosts and switches of a part until before a time; `alone` runs all."""

    hosts: Callable[[World, Any, Span, int], int]
    switches: Callable[[World, Any, Span, int], int]
    alone: Callable[[World, Any, int], int]
    next_event: Callable[[World], int] = next_event
    # Whether there is room for all that a window needs beside chunks.
    has_room: Callable[[World], bool] = lambda _: True


def kernels(routes: Routes) -> Nodes:
    """Return the kernels of the built-in load balancers."""

    def hosts(part: World, _: Any, span: Span, end_ps: int) -> int:
        return int(serve_hosts(part, routes, first=span[0], last=span[1], end_ps=end_ps))

    def switches(part: World, buffers: Any, span: Span, end_ps: int) -> int:
        served = serve_switches(
            part, routes, first=span[0], last=span[1], end_ps=end_ps, buffers=buffers
        )
        return int(served)

    def alone(world: World, buffers: Any, until_ps: int) -> int:
        return int(advance(world, routes, until_ps, buffers))

    return Nodes(hosts, switches, alone)


def pausing_kernels(routes: Routes) -> Nodes:
    """Return those of switches that pause links."""

    def switches(part: World, desk: Any, span: Span, end_ps: int) -> int:
        served = serve_event_switches(
            part,
            routes,
            None,
            None,
            desk,
            part.gates,
            first=span[0],
            last=span[1],
            end_ps=end_ps,
        )
        return int(served)

    def alone(world: World, desk: Any, until_ps: int) -> int:
        return int(advance_pausing(world, routes, until_ps, desk))

    return Nodes(
        kernels(routes).hosts,
        switches,
        alone,
        next_event=lambda world: int(next_to_serve(world, None, world.gates)),
    )


class Crew:
    """Threads that wait for work: all but the caller's own.

    `buffers` has one set a thread, which makes it the number of threads. `is_needed`: whether they
    share the next windows.
    """

    def __init__(self, buffers: list[Any]) -> None:
        self.buffers = buffers
        self.is_needed = True
        # Kernels run without the GIL, so threads are enough and nothing has to be copied.
        self._others = ThreadPoolExecutor(max(1, len(buffers) - 1))

    def close(self) -> None:
        """Let the threads end."""
        self._others.shutdown()

    def serve(self, parts: list[World], serve: Serve, first: int, last: int) -> int:
        """Serve nodes `first` to `last` - 1, a share each; return how many packets that were."""
        cuts = [first + (last - first) * number // len(parts) for number in range(len(parts) + 1)]
        work = list(zip(parts, self.buffers, pairwise(cuts), strict=True))
        futures = [self._others.submit(serve, *shares) for shares in work[1:]]

        # Waiting for the results is the barrier: no round begins before the last one is over.
        return serve(*work[0]) + sum(share.result() for share in futures)


class _Shared(NamedTuple):
    """The arguments that `through_windows` passes on: the whole world comes first."""

    world: World
    parts: list[World]
    nodes: Nodes
    crew: Crew


def advance_side_by_side(world: World, nodes: Nodes, until_ps: int, crew: Crew) -> int:
    """Run as `sim.kernels.windows.advance`, with the threads of a crew.

    Before and after it, `world` has the counters and spare chunks of all threads.
    """
    parts = _split(world, len(crew.buffers))
    shared = _Shared(world, parts, nodes, crew)
    counters = world.counters
    try:
        while True:
            # Idle time is no window.
            begin_ps = max(int(counters[CLOCK]), nodes.next_event(world))
            end_ps = min(until_ps, begin_ps + STRETCH * world.constants.window_ps)
            status = (_together if crew.is_needed else _alone)(shared, end_ps)
            if status != REACHED:
                return status

            crew.is_needed = bool(counters[LIVE] >= FEW_PACKETS)
            if end_ps == until_ps:
                return status
    finally:
        _spread(parts, 1)


def _together(shared: _Shared, end_ps: int) -> int:
    """Run until a time with all threads; return how that ended (`through_windows`)."""
    status = through_windows(
        shared,
        end_ps,
        has_room=_has_room,
        serve_all_hosts=_serve_all_hosts,
        serve_all_switches=_serve_all_switches,
        next_of_all=lambda shared: shared.nodes.next_event(shared.world),
    )
    return int(status)


def _alone(shared: _Shared, end_ps: int) -> int:
    """Run until a time with one thread; return how that ended."""
    world, parts, nodes, crew = shared
    if any(part.counters[SPARE] for part in parts[1:]):
        _spread(parts, 1)

    return nodes.alone(world, crew.buffers[0], end_ps)


def _split(world: World, count: int) -> list[World]:
    """Return the world as the first part, and others with counters and stacks of their own."""
    # Everything else is the same memory: arrays are not copied when a tuple gets other fields.
    rows = np.zeros((count - 1, max(COUNTERS, ROW)), dtype=np.int64)
    pools = [world.pool._replace(spare=np.empty_like(world.pool.spare)) for _ in rows]
    return [
        world,
        *(world._replace(counters=row, pool=pool) for row, pool in zip(rows, pools, strict=True)),
    ]


def _has_room(shared: _Shared) -> bool:
    """Return whether every part has the chunks that the next window may take.

    Which part takes them is not known before, so each must have enough for all. Stacks are evened
    out only when one runs low: chunks wander, as they go to the thread that serves their reader.
    """
    if not shared.nodes.has_room(shared.world):
        return False

    needed = int(chunks_needed(shared.world))
    least = min(int(part.counters[SPARE]) for part in shared.parts)
    return least >= needed or _spread(shared.parts, len(shared.parts)) >= needed


def _serve_all_hosts(shared: _Shared, end_ps: int) -> int:
    """Serve all hosts until before `end_ps`; return how many packets they handled."""
    world, parts, nodes, crew = shared
    for part in parts[1:]:
        part.counters[CLOCK] = world.counters[CLOCK]

    def hosts(part: World, buffers: Any, span: Span) -> int:
        return nodes.hosts(part, buffers, span, end_ps)

    served = crew.serve(parts, hosts, 0, world.constants.machines)
    _add_up(parts)

    return served


def _serve_all_switches(shared: _Shared, end_ps: int) -> int:
    """Serve all switches until before `end_ps`; return how many packets they handled.

    A node appends to the lists that its neighbours read, and both count the readers of a chunk, so
    neighbours never work at the same time. In any order of threads, a packet's way through a switch
    depends on arrivals and on the switch's own ports alone: that makes threads deterministic.
    """
    world, parts, nodes, crew = shared
    constants = world.constants

    def switches(part: World, buffers: Any, span: Span) -> int:
        return nodes.switches(part, buffers, span, end_ps)

    edges, aggs, cores = 0, constants.first_agg, constants.first_core
    served = crew.serve(parts, switches, aggs, cores)
    served += crew.serve(parts, switches, edges, aggs)
    served += crew.serve(parts, switches, cores, constants.switches)
    _add_up(parts)

    return served


def _add_up(parts: list[World]) -> None:
    """Move the counts of all parts to the first."""
    counters = parts[0].counters
    for part in parts[1:]:
        # A part's own count may be negative (packets that arrived here were sent there): only the
        # sum means something.
        for name in ADDED:
            counters[name] += part.counters[name]
            part.counters[name] = 0

        for name in (LAST_DONE, HIGHEST_PORT):
            counters[name] = max(counters[name], part.counters[name])


def _spread(parts: list[World], owners: int) -> int:
    """Share all spare chunks out among the first `owners` parts; return how many each gets."""
    spare = np.concatenate([part.pool.spare[: part.counters[SPARE]] for part in parts])
    shares = [*np.array_split(spare, owners), *[spare[:0]] * (len(parts) - owners)]
    for part, chunks in zip(parts, shares, strict=True):
        part.pool.spare[: len(chunks)] = chunks
        part.counters[SPARE] = len(chunks)

    return len(spare) // owners
