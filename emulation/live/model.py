"""Snapshots of a running fabric, as plain values made from readings of counters.

A load is the share of a link's rate that has left its port over a short window; queues are in data
packets, as everywhere.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emulation.outcomes.changes import Change
from emulation.outcomes.reading import FlowReading, PortReading
from fattree.demand import traffic
from fattree.demand.flows import generations
from fattree.experiment.model import Scenario
from fattree.routes.slow_links import at_rate
from fattree.shape.addressing import link_name
from fattree.shape.topology import SWITCH_LAYERS, FatTree
from fattree.units import PS_PER_SECOND
from hostagent.transports.state import NEVER

Int64 = NDArray[np.int64]
Float = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """The counters of one instant.

    `failed` are the links that are down, `slow` has the share of its rate that each slow link
    carries.
    """

    time_ps: int
    ports: PortReading
    flows: FlowReading
    failed: frozenset[int] = frozenset()
    slow: Mapping[int, float] = field(default_factory=dict)
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class LinkView:
    """A link between switches.

    Load and queue of its way up and of its way down, packets lost on both; `rate` is the share of
    its rate that it carries while it is up.
    """

    name: str
    is_up: bool
    load_up: float
    load_down: float
    queue_up: float
    queue_down: float
    lost_to_failure: int
    rate: float = 1


@dataclass(frozen=True, slots=True)
class TierView:
    """One layer of links, such as E>A: mean and highest load, queues in packets now and ever."""

    layer: str
    load: float
    highest_load: float
    queue: float
    longest_queue: float
    dropped: int


@dataclass(frozen=True, slots=True)
class PhaseView:
    """The flows that wait for equally many others: how far they are.

    `cct_ps` is None until all of them are complete.
    """

    number: int
    flows: int
    done: int
    packets: int
    acked: int
    cct_ps: int | None

    @property
    def is_complete(self) -> bool:
        """Return whether all flows of the phase are."""
        return self.done == self.flows


@dataclass(frozen=True, slots=True)
class Header:
    """The run: `state` is idle, running, paused or complete; `policy` a load balancer to start.

    `speed` are virtual seconds a second, `factor` times the first speed; None is real time.
    `reached` is the speed of a machine that cannot keep up. `converges` is True where routes follow
    changes at all.
    """

    name: str
    network: str
    policy: str
    label: str
    seed: int
    tree: FatTree
    state: str
    note: str = ""
    speed: float | None = None
    factor: float = 1
    reached: float | None = None
    paused: bool = False
    converges: bool = True


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that a view shows at one instant.

    `cct_ps` is None until all flows are complete: the longest of some flows is below the bound.
    """

    header: Header
    time_ps: int
    links: tuple[LinkView, ...]
    hosts: tuple[float, ...]
    tiers: tuple[TierView, ...]
    phases: tuple[PhaseView, ...]
    changes: tuple[Change, ...]
    lost_to_failure: int
    dropped: int
    cct_ps: int | None = None

    @property
    def failed(self) -> tuple[str, ...]:
        """Return the names of the links that are down."""
        return tuple(link.name for link in self.links if not link.is_up)

    @property
    def slow(self) -> tuple[str, ...]:
        """Return the links that are up and slow, with their rates."""
        slow = (link for link in self.links if link.is_up and link.rate < 1)
        return tuple(f"{link.name} {at_rate(link.rate)}" for link in slow)

    @property
    def progress(self) -> float:
        """Return the share of the collective's packets that have been acknowledged."""
        return sum(phase.acked for phase in self.phases) / max(
            sum(phase.packets for phase in self.phases), 1
        )

    def as_json(self) -> dict[str, Any]:
        """Return plain values, with the totals."""
        return asdict(self) | {"failed": list(self.failed), "progress": round(self.progress, 4)}


class Meter:
    """The rate at which ports have sent over the last `window_ps`, from their byte counters."""

    def __init__(self, window_ps: int) -> None:
        self.window_ps = window_ps
        self._seen: deque[tuple[int, Int64]] = deque()

    def bytes_per_ps(self, time_ps: int, carried: Int64) -> Float:
        """Take a reading and return the rates.

        Rates are zero at the first reading, and where time or counters went back.
        """
        seen = self._seen
        # A run that began anew, or a switch process that was started again.
        if seen and (time_ps < seen[-1][0] or (carried < seen[-1][1]).any()):
            seen.clear()

        seen.append((time_ps, carried))
        # The oldest reading that is kept is the last one before the window, so that rates cover all
        # of it; with two readings there is always a difference.
        while len(seen) > 2 and seen[1][0] <= time_ps - self.window_ps:
            seen.popleft()

        since_ps, before = seen[0]
        return (carried - before) / max(time_ps - since_ps, 1)


@dataclass(slots=True, eq=False)
class Observer:
    """Turns readings of one scenario's run into snapshots."""

    scenario: Scenario
    window_ps: int
    _meter: Meter = field(init=False)
    _names: list[str] = field(init=False)
    _lower: tuple[Int64, Int64] = field(init=False)
    _upper: tuple[Int64, Int64] = field(init=False)
    _layers: list[tuple[Int64, Int64]] = field(init=False)
    _phases: list[Int64] = field(init=False)
    _packets: Int64 = field(init=False)
    _own_start_ps: Int64 = field(init=False)
    _rates_bps: Int64 = field(init=False)

    def __post_init__(self) -> None:
        tree = self.scenario.tree
        flows = traffic.flows(self.scenario)
        self._meter = Meter(self.window_ps)
        self._names = [link_name(tree, link) for link in range(tree.links)]
        ends = np.array([tree.link_ends(link) for link in range(tree.links)], dtype=np.int64)
        self._lower = (ends[:, 0, 0], ends[:, 0, 1])
        self._upper = (ends[:, 1, 0], ends[:, 1, 1])
        ports = [(switch, port) for switch in range(tree.switches) for port in tree.ports(switch)]
        layers = [tree.layer_of(*end) for end in ports]
        of_layer = [
            [end for end, end_layer in zip(ports, layers, strict=True) if end_layer == layer]
            for layer in SWITCH_LAYERS
        ]

        # As (switches, ports), to index arrays of counters with.
        self._layers = [_columns(ends) for ends in of_layer]
        self._rates_bps = np.full((tree.switches, tree.most_ports + 1), self.scenario.rate_bps)
        for switch, port in ports:
            level = tree.level_of(switch, port)
            self._rates_bps[switch, port] = self.scenario.rates_bps[level]

        generation = generations(tree, flows)
        self._phases = [
            np.flatnonzero(generation == number)
            for number in range(int(generation.max(initial=0)) + 1)
        ]

        self._packets = flows.packets
        self._own_start_ps = flows.start_ps

    def snapshot(self, header: Header, reading: Reading) -> Snapshot:
        """Return the snapshot of a reading; loads are those since earlier readings."""
        rates = self._meter.bytes_per_ps(reading.time_ps, reading.ports.carried)
        # Ports are not all read at the same instant, so a short window may show more than a link's
        # rate.
        loads = np.minimum(rates * 8 * PS_PER_SECOND / self._rates_bps, 1.0)
        return Snapshot(
            header=header,
            time_ps=reading.time_ps,
            links=tuple(self._links(reading, loads)),
            # The last layer leads down to the hosts, in their order.
            hosts=tuple(loads[self._layers[-1]].round(4).tolist()),
            tiers=tuple(self._tiers(reading, loads)),
            phases=tuple(
                self._phase(number, flows, reading) for number, flows in enumerate(self._phases)
            ),
            changes=reading.changes,
            lost_to_failure=int(reading.ports.lost_to_failure.sum()),
            dropped=int(reading.ports.dropped.sum()),
            cct_ps=_completion_ps(reading.flows.done_ps, self._own_start_ps),
        )

    def _links(self, reading: Reading, loads: Float) -> Iterator[LinkView]:
        queues = reading.ports.queued / self.scenario.data_bytes
        lower = self._lower
        upper = self._upper
        columns = (
            loads[lower],
            loads[upper],
            queues[lower],
            queues[upper],
            reading.ports.lost_to_failure[lower] + reading.ports.lost_to_failure[upper],
        )

        rows = np.stack(columns, axis=1).round(4).tolist()
        for link, (name, (up, down, queue_up, queue_down, lost)) in enumerate(
            zip(self._names, rows, strict=True)
        ):
            yield LinkView(
                name,
                is_up=link not in reading.failed,
                load_up=up,
                load_down=down,
                queue_up=queue_up,
                queue_down=queue_down,
                lost_to_failure=int(lost),
                rate=reading.slow.get(link, 1),
            )

    def _tiers(self, reading: Reading, loads: Float) -> Iterator[TierView]:
        size = self.scenario.data_bytes
        for layer, ports in zip(SWITCH_LAYERS, self._layers, strict=True):
            layer_loads = loads[ports]
            # A leaf-spine has no cores.
            if not layer_loads.size:
                continue

            yield TierView(
                layer=layer,
                load=_rounded(layer_loads.mean()),
                highest_load=_rounded(layer_loads.max()),
                queue=_rounded(reading.ports.queued[ports].max() / size),
                longest_queue=_rounded(reading.ports.longest[ports].max() / size),
                dropped=int(reading.ports.dropped[ports].sum()),
            )

    def _phase(self, number: int, flows: Int64, reading: Reading) -> PhaseView:
        packets = self._packets[flows]
        acked = reading.flows.acked[flows]
        return PhaseView(
            number=number,
            flows=len(flows),
            done=int((reading.flows.done_ps[flows] != NEVER).sum()),
            packets=int(packets.sum()),
            # More may be acknowledged than is needed (erasure coding).
            acked=int(np.minimum(acked, packets).sum()),
            cct_ps=_completion_ps(reading.flows.done_ps[flows], reading.flows.start_ps[flows]),
        )


def _rounded(value: Any) -> float:
    return round(float(value), 4)


def _completion_ps(done_ps: Int64, start_ps: Int64) -> int | None:
    """Return the completion time of flows, None until all are complete."""
    is_complete = len(done_ps) and (done_ps != NEVER).all()
    return int((done_ps - start_ps).max()) if is_complete else None


def _columns(ends: Sequence[tuple[int, int]]) -> tuple[Int64, Int64]:
    switches, ports = np.array(ends, dtype=np.int64).reshape(-1, 2).T
    return switches, ports
