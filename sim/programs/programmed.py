"""A run in which a P4 program forwards, window by window, and its results.

The caller compiles the program, fills the switches' tables, and stops the run to change them:
`advance` to the time of an event, `leave_now`, then make the change.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fattree.demand.flows import Flows
from fattree.routes.demand import Demand
from fattree.routes.standstill import Standing
from fattree.routes.wecmp import LinkState
from fattree.shape.topology import SWITCH_LAYERS
from hostagent.forms import Beginnings
from hostagent.transports.state import NEVER
from sim.arrays.network import build_for_program
from sim.arrays.routing import waypoint_routes
from sim.arrays.wiring import grown
from sim.kernels.blocks import MOST_FREE
from sim.kernels.desk import EVENTS, LOG_FRAME, RECEIPTS, WINDOW, Desk, Program
from sim.kernels.events.probes import Probes, send_probes
from sim.kernels.events.windows import (
    advance_program,
    depart_now,
    drain,
    has_samples,
    in_flight,
    next_programmed_event,
    next_to_serve,
    serve_event_switches,
    serve_programmed_hosts,
)
from sim.kernels.state import (
    CLOCK,
    HOPS,
    LAST_DONE,
    LIVE,
    PROBES_SENT,
    PROBES_TAKEN,
    RECEIVED,
    SPARE,
    UNFINISHED,
    UNROUTABLE,
    Int64,
    World,
)
from sim.kernels.windows import FINISHED, STARVED, settle_all, start_flows, truncate
from sim.programs.layout import Layout, frames_of, with_blocks
from sim.runs.engine import desk_of, result_of, taken_in
from sim.runs.results import Result
from sim.runs.standing import acked, progress, standing
from sim.runs.threads import Crew, Nodes, Span, advance_side_by_side

Events = NDArray[np.int64]
# More flows than there are, in the count of unfinished ones.
OUTLASTING = 1 << 40


class Counts(NamedTuple):
    """Where a run's packets are at its end, `probes` of edges included.

    `hops` have arrived at switches.
    """

    sent: int
    received: int
    dropped: int
    unrouted: int
    lost: int
    in_flight: int
    probes: int
    hops: int


def is_loaded() -> bool:
    """Return whether the kernels are in this process already."""
    # As in `sim.runs.engine`: a kernel that has a signature is compiled.
    return bool(getattr(advance_program, "signatures", True))


class Programmed:
    """One run of a scenario with `program` on its switches.

    `templates` makes the templates of its flows, `kept_bytes` long. `sample_ps` asks for the
    longest queues at that interval, `on_events` for all events, window by window, in order (rows of
    `sim.kernels.desk`), which one thread writes. Raises FabricError where the scenario cannot be
    built.
    """

    def __init__(
        self,
        demand: Demand,
        program: Program,
        layout: Layout,
        templates: Callable[[Flows], Beginnings],
        *,
        sample_ps: int = 0,
        on_events: "Observe | None" = None,
        threads: int = 1,
    ) -> None:
        self._began_s = time.process_time()
        threads = 1 if on_events else threads
        self.scenario = demand.scenario
        self.network = build_for_program(demand, layout.edge_header_bytes)
        self.world = self.network.world
        self.routes = self.network.routes[0].routes
        # A lane cuts frames that wait, and lets them go in another order.
        self.program = program if self.world.constants.lanes == 0 else program.by_parts()
        # None where departures are foreseen.
        self.gates = self.world.gates if self.world.constants.is_pausing else None
        self.frames = frames_of(
            self.world,
            demand.scenario,
            layout,
            templates(self.network.flows),
            sample_ps,
            program=self.program,
            threads=threads,
        )
        self.desks = [self._desk(layout, on_events is not None) for _ in range(threads)]
        self._on_events = on_events
        self.probes: Probes | None = None
        self._crew = Crew(self.desks) if threads > 1 else None
        self.is_finished = False
        start_flows(self.world, self.network.flows.start_ps)

    @property
    def now_ps(self) -> int:
        """Return the time up to which everything has happened."""
        return int(self.world.counters[CLOCK])

    @property
    def end_ps(self) -> int:
        """Return when the last flow was done."""
        return int(self.world.counters[LAST_DONE])

    @property
    def progress(self) -> float:
        """Return the fraction of all packets that are acknowledged."""
        return progress(self.network.flows, self.world)

    def set_links(self, links: LinkState) -> None:
        """Tell hosts that choose routes which links are up from now on."""
        self.routes = waypoint_routes(self.scenario, self.network.flows, links)

    def advance(self, until_ps: int) -> int:
        """Run until before a time; return how that ended (`sim.kernels.windows`)."""
        status = self._advance(until_ps)
        self.is_finished = status == FINISHED
        return status

    def standing(self, is_changing: bool) -> Standing:
        """Return how far the run is; `is_changing` where routes or links are about to change."""
        return standing(self.world, is_changing)

    @property
    def unfinished(self) -> Int64:
        """Return the flows that are not done."""
        flows = self.world.flows
        return np.flatnonzero(flows.ended.done_ps == NEVER)

    def depth(self, switch: int, port: int) -> int:
        """Return how many packets wait at a switch's port, as its program sees them."""
        first = int(self.world.switches[switch].first_port)
        return int(self.world.links[first + port - 1].depth)

    def make_probes(self, frame: bytes, port: int) -> None:
        """Let edges have probes, `frame` with their addresses, which come by a port of switches."""
        tree = self.scenario.tree
        beginning = np.zeros(self.frames.kept // 8, dtype=np.int64)
        octets = np.frombuffer(frame[: self.frames.kept], dtype=np.uint8)
        beginning.view(np.uint8)[: len(octets)] = octets
        self._make_room_for_probes()
        self.world.counters[SPARE] -= 1
        self.probes = Probes(
            frame=beginning,
            length=len(frame),
            peers=tree.edges // tree.planes - 1,
            came_by=port - 1,
            chunk=int(self.world.pool.spare[self.world.counters[SPARE]]),
        )

    def send_probes(self, turn: int) -> None:
        """Let each edge send the probe of a turn now."""
        assert self.probes is not None
        self._make_room_for_probes()
        if self._on_events is not None:
            self._make_room_for_events()

        send_probes(
            self.world, self.frames, self.program, self.desks[0], self.probes, turn, self.now_ps
        )

    def _make_room_for_probes(self) -> None:
        """Let the pool have the chunks that a probe of each edge may take."""
        # A packet more in each of so many lists.
        while self.world.counters[SPARE] < len(self.world.links) + 1:
            self._grow()

    def skip_to(self, time_ps: int) -> None:
        """Advance the clock over a time without events."""
        self.world.counters[CLOCK] = time_ps

    def outlast(self) -> None:
        """Let `advance` go on after the last flow, as long as packets are under way."""
        counters = self.world.counters
        if counters[UNFINISHED] < OUTLASTING:
            counters[UNFINISHED] += OUTLASTING

    def ports_now(self) -> tuple[Int64, Int64, Int64, Int64, Int64]:
        """Return the ports' bytes that have left, wait, and ever waited at most; packets that were
        dropped and lost.
        """
        world = self.world
        ports = world.constants.ports
        settle_all(world, self.now_ps, False)
        links = world.links[:ports]
        ledgers = world.ledgers[:ports]
        _, load = taken_in(self.scenario, world)
        queued = links["occupancy"].copy()
        return (
            load[:ports] - queued,
            queued,
            links["max_bytes"].copy(),
            ledgers["dropped"].copy(),
            ledgers["lost_to_failure"].copy(),
        )

    def flows_now(self) -> tuple[Int64, Int64, Int64]:
        """Return the flows' acknowledged packets, and when each began and was done, or NEVER."""
        flows = self.world.flows
        return acked(flows), flows.started_ps.copy(), flows.ended.done_ps.copy()

    def leave_now(self) -> None:
        """Let packets leave that are due at this instant: departures come first at equal times."""
        depart_now(self.world, self.frames, self.program, self.desks[0], self.gates, self.now_ps)

    def close(self) -> None:
        """Let the threads end."""
        if self._crew is not None:
            self._crew.close()

    def result(self) -> tuple[Result, Counts]:
        """Return the results of a finished run, which cannot continue afterwards."""
        end_ps = self.end_ps
        world = self.world
        truncate(world, end_ps)
        late = sum(
            int((desk.receipts[: desk.marks[RECEIPTS]] + desk.marks[WINDOW] > end_ps).sum())
            for desk in self.desks
        )
        moving = int(in_flight(world, end_ps)) + late
        counters = world.counters.copy()
        self._drain()

        result = result_of(
            self.network, world, end_ps, series=None, cpu_s=time.process_time() - self._began_s
        )
        probes = int(counters[PROBES_SENT])
        result = replace(result, probes=probes // self.scenario.tree.edges)
        counts = Counts(
            sent=int(result.host_packets.sum()) + probes,
            received=int(counters[RECEIVED] + counters[PROBES_TAKEN]) - late,
            dropped=int(result.ports.dropped.sum()),
            unrouted=int(counters[UNROUTABLE]),
            lost=int(result.ports.lost_to_failure.sum()) + result.host_lost,
            in_flight=moving,
            probes=probes,
            hops=int(counters[HOPS]),
        )
        return result, counts

    def longest(self) -> Int64:
        """Return the longest queue of each layer at every sample until the end."""
        merged: Int64 = np.max([desk.longest for desk in self.desks], axis=0)
        return merged[: self.end_ps // self.frames.sample_ps + 1]

    def _drain(self) -> None:
        """Run egress for packets that still wait, as programs mark there."""
        counters = self.world.counters
        before = counters.copy()
        quiet = self.desks[0]._replace(log=self.desks[0].log[:0])
        drain(self.world, self.frames, self.program, quiet, self.gates, self.end_ps)
        counters[:] = before

    def _advance(self, until_ps: int) -> int:
        if self._on_events is None:
            return self._leg(until_ps)

        # A window at a time: so many events have a place, and they are put in order singly.
        status = 0
        while status == 0 and self.now_ps < until_ps:
            self._make_room_for_events()
            # Up to the next event there is none to put in order, however many windows that takes.
            next_ps = int(next_programmed_event(self.world, self.gates))
            window_end_ps = self.now_ps + self.world.constants.window_ps
            status = self._leg(min(max(next_ps, window_end_ps), until_ps))
            self._tell_events(self.end_ps if status == FINISHED else self.now_ps)

        return status

    def _leg(self, until_ps: int) -> int:
        while (status := self._once(until_ps)) == STARVED:
            if has_samples(self.world, self.frames, self.desks[0]):
                self._grow()
            else:
                self._extend_samples()

        return status

    def _once(self, until_ps: int) -> int:
        if self._crew is None:
            return self._alone(self.world, self.desks[0], until_ps)

        return advance_side_by_side(self.world, self._nodes(), until_ps, self._crew)

    def _alone(self, world: World, desk: Desk, until_ps: int) -> int:
        status = advance_program(
            world, self.routes, until_ps, self.frames, self.program, desk, self.gates
        )
        return int(status)

    def _nodes(self) -> Nodes:
        def hosts(part: World, desk: Desk, span: Span, end_ps: int) -> int:
            return int(serve_programmed_hosts(part, self.routes, self.frames, desk, *span, end_ps))

        def switches(part: World, desk: Desk, span: Span, end_ps: int) -> int:
            served = serve_event_switches(
                part, self.routes, self.frames, self.program, desk, self.gates, *span, end_ps
            )
            return int(served)

        return Nodes(
            hosts,
            switches,
            self._alone,
            next_event=lambda world: int(next_to_serve(world, self.frames, self.gates)),
            has_room=lambda world: bool(has_samples(world, self.frames, self.desks[0])),
        )

    def _grow(self) -> None:
        """Make the pool and its blocks twice as large."""
        pool = self.world.pool
        self.world = self.world._replace(pool=grown(pool, len(pool.headers), self.world.counters))
        self.frames = with_blocks(self.frames, self.world.pool.packets)

    def _extend_samples(self) -> None:
        for desk in self.desks:
            # In place, as the crew holds the desks: a named tuple's fields cannot be replaced.
            desk.longest.resize((2 * len(desk.longest), len(SWITCH_LAYERS)), refcheck=False)

    def _make_room_for_events(self) -> None:
        desk = self.desks[0]
        constants = self.world.constants
        slot_ps = constants.least_slot_ps
        new = constants.hosts * (constants.window_ps // slot_ps + 2)
        # Ports' own events and control frames: at most one for each live packet.
        probes = constants.first_agg if self.probes else 0
        most_rows = 4 * (int(self.world.counters[LIVE]) + new + probes) + constants.ports
        if len(desk.log) < most_rows:
            log = np.zeros((2 * most_rows, desk.log.shape[1]), dtype=np.int64)
            log[: len(desk.log)] = desk.log
            self.desks[0] = desk._replace(log=log)

    def _tell_events(self, until_ps: int) -> None:
        desk = self.desks[0]
        rows = desk.log[: desk.marks[EVENTS]]
        desk.marks[EVENTS] = 0
        # Hosts are served for whole windows, also beyond the end.
        rows = rows[rows[:, 0] <= until_ps]
        assert self._on_events is not None
        self._on_events(self, rows[np.lexsort((rows[:, 1], rows[:, 0]))])

    def _desk(self, layout: Layout, is_logging: bool) -> Desk:
        constants = self.world.constants
        kept = self.frames.kept
        # Egress writes at most the kept bytes, and those by which the frame grows.
        out = np.zeros((kept + layout.growth + 15) // 8, dtype=np.int64)
        state_words = max(-(-layout.state_bytes // 8), self.program.late_words)
        state = np.zeros(state_words, dtype=np.int64)
        # All that hosts may receive in a window; unused memory costs nothing.
        slot_ps = int(self.world.passages.slot_ps.min())
        receipts = constants.hosts * (constants.window_ps // slot_ps + 2)
        rows = int(is_logging)
        samples = 1024 if self.frames.sample_ps else 0

        return desk_of(self.world, self.scenario.tree.most_ports)._replace(
            state=state,
            state_address=state.ctypes.data,
            out=out,
            out_octets=out.view(np.uint8),
            out_address=out.ctypes.data,
            free=np.zeros(1 + MOST_FREE, dtype=np.int64),
            longest=np.zeros((samples, len(SWITCH_LAYERS)), dtype=np.int64),
            receipts=np.empty(receipts, dtype=np.int64),
            log=np.zeros((rows, LOG_FRAME + kept // 8), dtype=np.int64),
        )


# Takes in the events of a window.
Observe: TypeAlias = Callable[[Programmed, Events], None]
