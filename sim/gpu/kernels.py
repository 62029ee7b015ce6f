"""A GPU's threads: each serves a node, by the functions that processors run.

Nothing of a rule is here. A thread has counters of its own while it serves its node, and adds them
to the run's behind it; otherwise threads share only the ring of spare chunks. Entries that
are handed back within a round lie behind all that the round may take (`sim.gpu.engine`), so takers
and givers do not meet.
"""

from typing import Any, NamedTuple

from numba import cuda, types
from numba.core import config
from numba.extending import intrinsic, overload

from hostagent.transports.state import NEVER
from sim.kernels.hosts import next_arrival, serve_machine
from sim.kernels.jit import INLINED, inlined
from sim.kernels.plain import known
from sim.kernels.records import CHUNK
from sim.kernels.state import COUNTERS, LAST_DONE, LIVE, UNFINISHED, UNROUTABLE, Buffers, World
from sim.kernels.switches import serve_switch
from sim.kernels.windows import next_act

# A round's results, behind the run's counters: the number of packets that it has handled, both ends
# of the ring, and the time of the next event, where it is asked for.
SERVED = COUNTERS
RING = SERVED + 1
NEXT = RING + 2
TOTALS = NEXT + 1
# Counters that each thread has for itself; the other sums are those of programs.
ADDED = (LIVE, UNFINISHED, UNROUTABLE)


class Span(NamedTuple):
    """Which switches a round serves: `nodes` from `first` on, leaving out `hole` at `behind`."""

    first: int
    nodes: int
    behind: int
    hole: int


class _Nothing:
    """Lets arguments be None, which numba's launches of kernels do not know."""

    def prepare_args(self, kind: Any, value: Any, **_: Any) -> tuple[Any, Any]:
        return (types.int64, 0) if isinstance(kind, types.NoneType) else (kind, value)


# numba's simulator of a GPU takes them as they are.
OPTIONS = {} if config.ENABLE_CUDASIM else {"extensions": [_Nothing()]}
launched: Any = cuda.jit(**OPTIONS)


def with_counters(world: World, counters: Any) -> World:
    """Return a world with a thread's own counters."""
    return world._replace(counters=counters)


@intrinsic
def _with_counters(_typing, world, counters):
    def generate(_context, builder, _signature, arguments):
        return builder.insert_value(*arguments, world.fields.index("counters"))

    return world(world, counters), generate


@overload(with_counters, jit_options=INLINED)
def _compiled_with_counters(world, counters):
    return lambda world, counters: _with_counters(world, counters)


@launched
def hosts(world, routes, totals, start_ps, end_ps):
    """Serve all machines from `start_ps` until before `end_ps`."""
    machine = cuda.grid(1)
    if machine < world.constants.machines:
        counters = cuda.local.array(COUNTERS, types.int64)
        clear(counters)
        served = serve_machine(
            known(with_counters(world, counters)),
            routes,
            None,
            None,
            number=machine,
            start_ps=start_ps,
            end_ps=end_ps,
        )
        add_up(totals, counters, served)


@launched
def switches(world, routes, buffers, totals, span, start_ps, end_ps):
    """Serve the switches of a span, no two of them neighbours; `buffers` have a row a thread."""
    number = cuda.grid(1)
    if number < span.nodes:
        counters = cuda.local.array(COUNTERS, types.int64)
        clear(counters)
        served = serve_switch(
            known(with_counters(world, counters)),
            routes,
            switch_of(span, number),
            start_ps=start_ps,
            end_ps=end_ps,
            buffers=Buffers(
                buffers.keys[number],
                buffers.sorted_keys[number],
                buffers.buckets[number],
                buffers.ends[number],
            ),
        )
        add_up(totals, counters, served)


@launched
def next_event(world, totals):
    """Find when the next packet arrives, a computation ends or a host may send."""
    number = cuda.grid(1)
    next_ps = NEVER
    if number < len(world.links):
        next_ps = next_arrival(world.pool, world.links[number])

    if number < len(world.hosts):
        next_ps = min(next_ps, next_act(world.hosts[number]))

    if next_ps < NEVER:
        cuda.atomic.min(totals, NEXT, next_ps)


@launched
def pack(packets, chunks, packed):
    """Copy chunks to where they lie one behind the other."""
    row = cuda.grid(1)
    if row < len(chunks):
        for slot in range(CHUNK):
            packed[row * CHUNK + slot] = packets[chunks[row] * CHUNK + slot]


@launched
def unpack(packets, chunks, packed):
    """Copy chunks from where they lie one behind the other."""
    row = cuda.grid(1)
    if row < len(chunks):
        for slot in range(CHUNK):
            packets[chunks[row] * CHUNK + slot] = packed[row * CHUNK + slot]


@inlined
def switch_of(span, number):
    """Return the switch that a round's thread serves."""
    switch = span.first + number
    return switch + span.hole if switch >= span.behind else switch


@inlined
def clear(counters):
    """Begin to count."""
    for name in range(COUNTERS):
        counters[name] = 0


@inlined
def add_up(totals, counters, served):
    """Add a thread's counts to the run's."""
    # All threads add at one address, so threads without a count do not.
    if served > 0:
        cuda.atomic.add(totals, SERVED, served)

    for name in ADDED:
        if counters[name] != 0:
            cuda.atomic.add(totals, name, counters[name])

    if counters[LAST_DONE] > 0:
        cuda.atomic.max(totals, LAST_DONE, counters[LAST_DONE])
