"""A leg of a run on a GPU: the world goes there, window after window is served, and comes back.

A window has three rounds, of nodes that are not neighbours, as with threads (`sim.runs.threads`):
hosts, aggs, edges with cores. A round is one launch, and is complete before the next.
In between, the processor looks at the run's counters alone.

Spare chunks are a ring there, taken at its front and handed back at its end. A window begins only
if the ring has all chunks that it may take (`chunks_needed`), so no thread takes a chunk that
another thread hands back in the same window.
"""

from collections.abc import Iterator
from threading import Thread
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numba import cuda
from numpy.typing import NDArray

from fattree.policies import LabelRule
from hostagent.transports.state import NEVER
from sim.errors import SimulationError
from sim.gpu.kernels import (
    NEXT,
    RING,
    SERVED,
    TOTALS,
    Span,
    hosts,
    next_event,
    pack,
    switches,
    unpack,
)
from sim.kernels.records import CHUNK
from sim.kernels.state import BEHIND, CLOCK, COUNTERS, FIRST, SPARE, Buffers, Pool, Routes, World
from sim.kernels.windows import chunks_needed, through_windows

# Arrays that no kernel changes stay as they are on the processor's side.
STILL = {
    "constants",
    "rules",
    "own",
    "passages",
    "nics",
    "inputs",
    "outages",
    "outages_of",
    "paces",
    "table",
    "follower_offset",
    "followers",
    "hash_low",
    "hash_high",
}
# These are looked after apart.
APART = {"packets", "headers", "spare", "ring", "counters"}

# Threads of a block. Threads of a warp wait for each other wherever they part, so switches, which
# are few and do much, have a warp each as long as there are warps enough.
HOSTS_A_BLOCK = 32
SWITCHES_A_BLOCK = 1
LINKS_A_BLOCK = CHUNKS_A_BLOCK = 128
# There are twice as many places in a ring as chunks (`sim.kernels.lists.take_spare`).
ROOM = 2
# Bytes of a page of memory, or less.
PAGE = 4096

Arrays = TypeVar("Arrays", bound=tuple[Any, ...])


def refuse_unable(world: World) -> None:
    """Raise SimulationError without a GPU, or for a feature that it lacks."""
    if world.rules.label_rule == LabelRule.OWN:
        raise SimulationError("host rule: a GPU runs none of your own (a processor does)")

    if world.constants.is_pausing:
        raise SimulationError(
            'fabric.flow_control = "pfc": a GPU pauses no links (a processor does)'
        )

    if world.constants.alpha:
        raise SimulationError(
            'fabric.buffer = "shared": on a GPU each port has a buffer (on a processor they share)'
        )

    if world.constants.is_drawing:
        raise SimulationError(
            'fabric.plane_use = "draw": on a GPU each plane keeps its packets (on a processor they'
            " leave by other planes while a port is down)"
        )

    if not cuda.is_available():
        raise SimulationError(
            "no GPU: NVIDIA's driver or the package numba-cuda is missing (pip install 'ofan[gpu]')"
        )


class _Work(NamedTuple):
    """The arguments that `through_windows` passes on: the processor's world comes first."""

    world: World
    on_device: Any
    routes: Routes
    buffers: Buffers
    totals: Any
    on_host: NDArray[np.int64]


class Card:
    """A GPU that advances worlds; it keeps room for keys, and the routes that it has seen last."""

    def __init__(self, buffers: Buffers) -> None:
        """Take `buffers` for the size of a node's room."""
        self._one = buffers
        self._buffers: Buffers | None = None
        self._routes: tuple[Routes, Routes] | None = None

    def advance(self, world: World, routes: Routes, until_ps: int) -> int:
        """Run as `sim.kernels.windows.advance`; `world` is complete when it returns."""
        on_host = np.zeros(TOTALS, dtype=np.int64)
        on_host[:COUNTERS] = world.counters
        on_host[RING + BEHIND] = world.counters[SPARE]
        totals = cuda.to_device(on_host)
        on_device = send(world, totals)
        work = _Work(world, on_device, self._routed(routes), self._room(world), totals, on_host)
        ahead = Thread(target=take_pages, args=(world, on_device))
        ahead.start()
        status = through_windows(
            work,
            until_ps,
            has_room=_has_room,
            serve_all_hosts=_serve_all_hosts,
            serve_all_switches=_serve_all_switches,
            next_of_all=_next_of_all,
        )
        ahead.join()
        bring_back(work)
        return int(status)

    def _routed(self, routes: Routes) -> Routes:
        if self._routes is None or self._routes[0] is not routes:
            self._routes = (routes, _each(routes, cuda.to_device))

        return self._routes[1]

    def _room(self, world: World) -> Buffers:
        if self._buffers is None:
            most_nodes = max(span.nodes for span in rounds(world))
            self._buffers = _each(
                self._one, lambda array: cuda.device_array((most_nodes, len(array)), array.dtype)
            )

        return self._buffers


def _each(arrays: Arrays, change: Any) -> Arrays:
    """Return a tuple of arrays and numbers, and of such tuples, with each array changed."""
    made = [
        _each(value, change)
        if isinstance(value, tuple)
        else change(value)
        if isinstance(value, np.ndarray)
        else value
        for value in arrays
    ]
    return type(arrays)(*made)


def send(world: World, totals: Any) -> Any:
    """Return the world as it is on the GPU."""
    pool = world.pool
    held = int(world.counters[SPARE])
    # The top of the stack first.
    ring = np.zeros(ROOM * len(pool.spare), dtype=np.int32)
    ring[:held] = pool.spare[:held][::-1]

    # Of packets only those of chunks that somebody uses: a twelfth of a new pool.
    packets = cuda.device_array(len(pool.packets), pool.packets.dtype)
    chunks = _in_use(pool, held)
    packed = pool.packets.reshape(-1, CHUNK)[chunks].ravel()
    unpack[_blocks(len(chunks), CHUNKS_A_BLOCK)](
        packets, cuda.to_device(chunks), cuda.to_device(packed)
    )

    here: Any = world
    return _each(here._replace(pool=None, counters=None), cuda.to_device)._replace(
        pool=Pool(
            packets=packets,
            headers=packets.view(pool.headers.dtype),
            spare=cuda.to_device(ring),
            starts=cuda.to_device(pool.starts),
            ring=totals[RING:NEXT],
        ),
        counters=totals,
    )


def _in_use(pool: Pool, held: int) -> NDArray[np.int64]:
    """Return the chunks that are not among the first `held` of the stack: every list has one."""
    is_used = np.ones(len(pool.headers), dtype=bool)
    is_used[pool.spare[:held]] = False
    return np.flatnonzero(is_used)


def take_pages(world: World, on_device: Any) -> None:
    """Write a byte of each page that `bring_back` will write, and change none.

    New arrays have no pages of memory before they are written. The system takes a second for some
    gigabytes of them, in which the GPU can work.
    """
    for here, _ in _moving(world, on_device):
        here.reshape(-1).view(np.uint8)[::PAGE] |= 0


def bring_back(work: _Work) -> None:
    """Copy the GPU's world to the processor's."""
    world, on_device = work.world, work.on_device
    for host_array, device_array in _moving(world, on_device):
        device_array.copy_to_host(host_array)

    first, behind = work.on_host[[RING + FIRST, RING + BEHIND]].tolist()
    ring = on_device.pool.spare.copy_to_host()
    # The last that was handed back on top.
    places = np.arange(first, behind) % len(ring)
    world.pool.spare[: len(places)] = ring[places]

    chunks = _in_use(world.pool, len(places))
    packed = cuda.device_array(len(chunks) * CHUNK, world.pool.packets.dtype)
    pack[_blocks(len(chunks), CHUNKS_A_BLOCK)](
        on_device.pool.packets, cuda.to_device(chunks), packed
    )
    unpacked = packed.copy_to_host().reshape(-1, CHUNK)
    world.pool.packets.reshape(-1, CHUNK)[chunks] = unpacked


def _moving(here: Any, on_device: Any) -> Iterator[tuple[NDArray[Any], Any]]:
    """Yield the arrays that kernels change, here and on the GPU."""
    for name, array, twin in zip(here._fields, here, on_device, strict=True):
        if name in STILL or name in APART:
            continue
        if isinstance(array, tuple):
            yield from _moving(array, twin)
        elif isinstance(array, np.ndarray) and array.size:
            yield array, twin


def rounds(world: World) -> tuple[Span, Span]:
    """Return aggs, and edges with cores: switches that are not each other's neighbours."""
    constants = world.constants
    edges, before_cores = constants.first_agg, constants.first_core
    aggs = before_cores - edges
    return (
        Span(first=edges, nodes=aggs, behind=before_cores, hole=0),
        Span(first=0, nodes=constants.switches - aggs, behind=edges, hole=aggs),
    )


def _has_room(work: _Work) -> bool:
    """Return whether the ring has the chunks that the next window may take."""
    return bool(work.world.counters[SPARE] >= chunks_needed(work.world))


def _serve_all_hosts(work: _Work, end_ps: int) -> int:
    """Serve all hosts until before `end_ps`; return how many packets they handled."""
    start_ps = int(work.world.counters[CLOCK])
    machines = work.world.constants.machines
    hosts[_blocks(machines, HOSTS_A_BLOCK)](
        work.on_device, work.routes, work.totals, start_ps, int(end_ps)
    )
    return _look(work)


def _serve_all_switches(work: _Work, end_ps: int) -> int:
    """Serve all switches until before `end_ps`; return how many packets they handled."""
    start_ps = int(work.world.counters[CLOCK])
    for span in rounds(work.world):
        if span.nodes > 0:
            switches[_blocks(span.nodes, SWITCHES_A_BLOCK)](
                work.on_device, work.routes, work.buffers, work.totals, span, start_ps, int(end_ps)
            )

    return _look(work)


def _next_of_all(work: _Work) -> int:
    """Return when the next thing happens anywhere, or NEVER."""
    nodes = max(len(work.world.links), len(work.world.hosts))
    work.totals[NEXT:TOTALS].copy_to_device(np.array([NEVER]))
    next_event[_blocks(nodes, LINKS_A_BLOCK)](work.on_device, work.totals)
    _look(work)
    return int(work.on_host[NEXT])


def _blocks(count: int, size: int) -> tuple[int, int]:
    """Return how many blocks of threads there are for so many nodes, and how large they are."""
    return -(-count // size), size


def _look(work: _Work) -> int:
    """Read the run's counters, behind all of the GPU's work; return how many packets it served."""
    on_host, counters = work.on_host, work.world.counters
    before = int(on_host[SERVED])
    work.totals.copy_to_host(on_host)

    clock_ps = int(counters[CLOCK])
    counters[:] = on_host[:COUNTERS]
    counters[CLOCK] = clock_ps
    counters[SPARE] = on_host[RING + BEHIND] - on_host[RING + FIRST]
    return int(on_host[SERVED]) - before
