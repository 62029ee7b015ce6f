"""Run a scenario: build its arrays, drive the kernels past route changes, hand back the results."""

import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cache
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fattree.counters import PORT_COUNTERS, SENDER_COUNTERS
from fattree.experiment.model import Collective, Fabric, Scenario
from fattree.routes.standstill import Watch, patience, why_still
from fattree.shape.addressing import host_name
from fattree.shape.topology import SWITCH_LAYERS, Level
from fattree.units import PS_PER_NS
from hostagent.transports.state import NEVER
from sim.arrays.network import Network, build
from sim.arrays.wiring import grown
from sim.errors import UnfinishedError
from sim.kernels.desk import LOG_FRAME, Desk
from sim.kernels.events.windows import advance_pausing
from sim.kernels.jit import CACHE
from sim.kernels.plain import Form, form_needed
from sim.kernels.state import CLOCK, LAST_DONE, UNROUTABLE, Buffers, Routes, World
from sim.kernels.switches import BUCKETS_A_KEY
from sim.kernels.windows import (
    FINISHED,
    STARVED,
    STUCK,
    advance,
    next_event,
    settle_all,
    start_flows,
    truncate,
)
from sim.runs.deadlock import deadlock, storm
from sim.runs.layers import by_layer
from sim.runs.results import Ports, Result, Series
from sim.runs.standing import acked, counted, progress, standing
from sim.runs.threads import Crew, advance_side_by_side, kernels, pausing_kernels

Int64 = NDArray[np.int64]
# Advances a world with fixed routes up to a time; returns how that ended.
Leg: TypeAlias = Callable[[World, Routes, int], int]
# Called with the share of a run that is done, from 0 to 1.
OnProgress: TypeAlias = Callable[[float], None]
# The device that runs the kernels.
Device: TypeAlias = Literal["cpu", "gpu"]
RTTS_A_LEG = 4
TELL_SECONDS = 0.1
# The most of a run's time that progress may cost.
TELL_SHARE = 0.05


def run(
    scenario: Scenario,
    *,
    sample_ps: int | None = None,
    horizon_ps: int | None = None,
    threads: int = 1,
    device: Device = "cpu",
    on_progress: OnProgress | None = None,
) -> Result:
    """Simulate a scenario; `sample_ps` asks for every layer's queues at that interval.

    `on_progress` gets the share of acknowledged packets now and then, not with `device` "gpu"
    (`sim.gpu`). More `threads` make large fabrics faster; neither changes results. Raises
    FabricError where the scenario cannot be built, UnfinishedError where flows do not finish: by
    `horizon_ps`, by default the scenario's, or ever (`routes.standstill`), and SimulationError
    without a GPU, or for a feature that it lacks.
    """
    began_s = time.process_time()
    network = build(scenario)
    built_s = time.process_time() - began_s
    prepare(form_needed(network.world.constants, network.world.rules))
    return simulate(
        network,
        sample_ps,
        horizon_ps,
        # Compiling is no part of this run's time.
        began_s=time.process_time() - built_s,
        threads=threads,
        device=device,
        on_progress=on_progress,
    )


@cache
def prepare(form: Form = Form.PLAIN) -> None:
    """Compile the kernels of a form (`sim.kernels.plain`), or load them from the cache.

    Compiling takes long; a line on stderr announces it.
    """
    if CACHE.note:
        sys.stderr.write(f"{CACHE.note}\n")

    # A small run: types do not depend on anything else, so it compiles for all.
    fabric = Fabric(k=2, flow_control="pfc" if form is Form.PAUSING else "none")
    pair = build(Scenario(fabric=fabric, collective=Collective(message_bytes=1 << 20)))
    if form is not Form.PLAIN:
        pair = replace(pair, world=pair.world._replace(features=1))

    simulate(pair, None, None, 0)


def simulate(
    network: Network,
    sample_ps: int | None,
    horizon_ps: int | None,
    began_s: float,
    threads: int = 1,
    device: Device = "cpu",
    on_progress: OnProgress | None = None,
) -> Result:
    """Run a network that has just been built to its end.

    `began_s` is the process time at which the building began.
    """
    samples: list[tuple[int, Int64]] = []
    # Between two legs the world is here, and its way to a GPU and back is long: nothing looks at it
    # that need not.
    is_near = device == "cpu"
    start_flows(network.world, network.flows.start_ps)
    with _advancing(network, threads, device) as leg:
        world = _drive(
            network,
            leg,
            sample_ps,
            horizon_ps=network.scenario.horizon_ps if horizon_ps is None else horizon_ps,
            samples=samples,
            on_progress=on_progress if is_near else None,
        )

    end_ps = int(world.counters[LAST_DONE])
    truncate(world, end_ps)
    cpu_s = time.process_time() - began_s

    return result_of(
        network,
        world,
        end_ps,
        series=_series(network, samples) if sample_ps else None,
        cpu_s=cpu_s,
    )


def advanced(network: Network, until_ps: int) -> World:
    """Run a network that has just been built up to a time, with the routes of time 0.

    Return its world as it is then, for those who look at packets on links or at senders in the
    middle of a run; flows may or may not be done.
    """
    prepare(form_needed(network.world.constants, network.world.rules))
    start_flows(network.world, network.flows.start_ps)
    with _advancing(network, 1) as leg:
        world, _ = _advance(network.world, leg, network.routes[0].routes, until_ps)

    return world


def _drive(
    network: Network,
    leg: Leg,
    sample_ps: int | None,
    horizon_ps: int | None,
    samples: list[tuple[int, Int64]],
    on_progress: OnProgress | None,
) -> World:
    """Advance to the end, in legs that end at route changes, samples and refreshes of queues.

    Where a caller wants to know the progress, a leg ends also after some round trips.
    """
    world = network.world
    watch = Watch.of(patience(network.scenario, network.events))
    end_ps = NEVER if horizon_ps is None else horizon_ps
    leg_ps = RTTS_A_LEG * network.scenario.zero_load_rtt_ps if on_progress else 0
    tell_s = time.monotonic() + TELL_SECONDS
    stale_ps = round(network.scenario.load_balancer.queue_staleness_ns * PS_PER_NS)
    changes = [epoch.time_ps for epoch in network.routes]

    while True:
        # Routes hold from their time on, so a change that happens now has happened: at equal times
        # it comes before arrivals (decision 8).
        now_ps = int(world.counters[CLOCK])
        change = bisect_right(changes, now_ps)
        stops = [
            end_ps,
            watch.next_ps,
            *changes[change : change + 1],
            *(_next_multiple(now_ps, step) for step in (sample_ps,) if step),
            *(_next_stop(world, now_ps, step) for step in (stale_ps, leg_ps) if step),
        ]

        world, status = _advance(world, leg, network.routes[change - 1].routes, min(stops))
        if status == FINISHED:
            return world

        # Not after every leg: to add up a million flows takes a while.
        if on_progress and time.monotonic() >= tell_s:
            begun_s = time.monotonic()
            on_progress(progress(network.flows, world))
            tell_s = next_progress_s(begun_s, time.monotonic())

        now_ps = int(world.counters[CLOCK])
        if status == STUCK or now_ps >= end_ps:
            raise UnfinishedError(_unfinished(network, world))

        if now_ps >= watch.next_ps and watch.is_over(now_ps, standing(world)):
            still = why_still(network.scenario, network.events, watch.heard_ps)
            raise UnfinishedError(f"{_unfinished(network, world)}: {still}")

        # Ports look at their queues late (`sim.kernels.switches.enqueue`), which a reader must not.
        if sample_ps or stale_ps:
            settle_all(world, now_ps, bool(stale_ps) and now_ps % stale_ps == 0)

        if sample_ps and now_ps % sample_ps == 0:
            samples.append((now_ps, _queues(world, now_ps)))


def next_progress_s(begun_s: float, ended_s: float) -> float:
    """Return when progress is added up next, after an addition from `begun_s` to `ended_s`."""
    return ended_s + max(TELL_SECONDS, (ended_s - begun_s) / TELL_SHARE)


def _queues(world: World, now_ps: int) -> Int64:
    """Return the bytes that wait on each link now, without packets that leave now."""
    queues: Int64 = world.links.occupancy.copy()
    # Ports that pause let packets leave at their time, and that is still to be served.
    gates = world.gates
    queues[: len(gates)] -= np.where(gates.leaves_ps == now_ps, gates.bytes, 0)
    return queues


def _next_multiple(now_ps: int, step_ps: int) -> int:
    """Return the first multiple of `step_ps` after now."""
    return (now_ps // step_ps + 1) * step_ps


def _next_stop(world: World, now_ps: int, step_ps: int) -> int:
    """Return the first multiple of `step_ps` after now, or the last before anything happens."""
    # Until then a stop would see the same as the stop before: idle time costs no leg.
    return max(_next_multiple(now_ps, step_ps), int(next_event(world)) // step_ps * step_ps)


@contextmanager
def _advancing(network: Network, threads: int, device: Device = "cpu") -> Iterator[Leg]:
    """Yield the leg of a world: the kernel, a crew of threads that share it out, or a GPU."""
    world = network.world
    most_ports = network.scenario.tree.most_ports
    if device == "gpu":
        # numba's half for GPUs, which hardly any run needs.
        from sim.gpu.engine import Card, refuse_unable

        refuse_unable(world)
        yield Card(buffers_of(world, most_ports)).advance
        return

    is_pausing = bool(world.constants.is_pausing)
    rooms = [
        desk_of(world, most_ports) if is_pausing else buffers_of(world, most_ports)
        for _ in range(threads)
    ]
    if threads == 1:
        kernel = advance_pausing if is_pausing else advance
        yield lambda world, routes, until_ps: int(kernel(world, routes, until_ps, rooms[0]))
        return

    nodes = pausing_kernels if is_pausing else kernels
    with closing(Crew(rooms)) as crew:
        yield lambda world, routes, until_ps: advance_side_by_side(
            world, nodes(routes), until_ps, crew
        )


def _advance(world: World, leg: Leg, routes: Routes, until_ps: int) -> tuple[World, int]:
    """Advance to `until_ps`, with a bigger pool whenever the old one runs low."""
    # A leg that starves has only served whole windows, so it goes on where it stopped. Twice as
    # many chunks each time: the cost of copying stays in proportion to the pool's last size.
    while (status := leg(world, routes, until_ps)) == STARVED:
        world = world._replace(pool=grown(world.pool, len(world.pool.headers), world.counters))

    return world, status


def buffers_of(world: World, most_ports: int) -> Buffers:
    """Return room for the keys of a node's packets in one window, with so many ports at most."""
    # Arrivals on a link are a slot apart: as many as the window has slots, and two at its ends.
    constants = world.constants
    shortest_ps = int(world.passages.slot_ps.min())
    most_keys = most_ports * (constants.window_ps // shortest_ps + 2)
    lists = most_ports * (2 if constants.lanes else 1)

    return Buffers(
        keys=np.empty(most_keys, dtype=np.int64),
        sorted_keys=np.empty(most_keys, dtype=np.int64),
        buckets=np.empty(BUCKETS_A_KEY * most_keys + 2, dtype=np.int32),
        ends=np.empty(lists, dtype=np.int64),
    )


def desk_of(world: World, most_ports: int) -> Desk:
    """Return a thread's room for a switch with events, with so many ports at most.

    It has none for a program, samples or a log.
    """
    packets = buffers_of(world, most_ports)
    # Of control frames as of packets.
    shortest_ps = int(world.rooms.slot_ps.min(initial=world.passages.slot_ps.min()))
    most_frames = most_ports * (world.constants.window_ps // shortest_ps + 2)
    nothing = np.zeros(0, dtype=np.int64)

    return Desk(
        keys=packets.keys,
        sorted_keys=packets.sorted_keys,
        buckets=np.empty(BUCKETS_A_KEY * max(most_frames, len(packets.keys)) + 2, dtype=np.int32),
        ends=packets.ends,
        control=np.empty(most_frames, dtype=np.int64),
        sorted_control=np.empty(most_frames, dtype=np.int64),
        soonest=np.zeros(2 * _leaves(most_ports), dtype=np.int64),
        state=nothing,
        state_address=0,
        out=nothing,
        out_octets=nothing.view(np.uint8),
        out_address=0,
        free=np.zeros(1, dtype=np.int64),
        longest=np.zeros((0, len(SWITCH_LAYERS)), dtype=np.int64),
        receipts=nothing,
        log=np.zeros((0, LOG_FRAME), dtype=np.int64),
        marks=np.array([0, 0, 0, -1, -1], dtype=np.int64),
    )


def _leaves(ports: int) -> int:
    """Return the number of leaves of a tree with a leaf per port: a power of two."""
    return 1 << max(0, ports - 1).bit_length()


def _series(network: Network, samples: list[tuple[int, Int64]]) -> Series:
    tree = network.scenario.tree
    layers = [by_layer(tree, queues[: tree.first_port(tree.switches)]) for _, queues in samples]
    shape = (len(samples), len(SWITCH_LAYERS))

    return Series(
        times_ps=np.array([time_ps for time_ps, _ in samples], dtype=np.int64),
        longest=np.array(
            [[layer.max(initial=0) for layer in row] for row in layers], dtype=np.int64
        ).reshape(shape),
        total=np.array([[layer.sum() for layer in row] for row in layers], dtype=np.int64).reshape(
            shape
        ),
    )


def taken_in(scenario: Scenario, world: World) -> tuple[Int64, Int64]:
    """Return the packets and the bytes that each link has taken in, as of now."""
    links = world.links
    # Links count in 32 bits, which bytes would not fit.
    data = links["data_packets"].astype(np.int64)
    acks = links["ack_packets"].astype(np.int64)
    load = data * scenario.data_bytes + acks * scenario.ack_bytes
    tree = scenario.tree
    # A program's header between edges, which links between switches carry (`passages_of`).
    more = int(world.passages.bytes[Level.EDGE_AGG] - world.passages.bytes[Level.HOST])
    number = np.arange(tree.first_port(tree.switches))
    is_down = number % len(tree.ports(0)) < tree.hosts_per_edge
    is_hosts = (number < tree.first_port(tree.edges)) & is_down
    load[: len(number)] += np.where(is_hosts, 0, more) * (data + acks)[: len(number)]
    # Links behind these are lanes, of which nothing is counted.
    load[: len(world.ledgers)] -= world.ledgers["short_bytes"]
    return data + acks, load


def result_of(
    network: Network,
    world: World,
    end_ps: int,
    series: Series | None,
    cpu_s: float,
) -> Result:
    """Return the results of a finished run, from its world at the end."""
    # Links are numbered ports first, hosts' links behind them (`sim.kernels.state`).
    tree = network.scenario.tree
    links = world.links
    ledgers = world.ledgers
    ended = counted(world.flows)
    ports = tree.first_port(tree.switches)
    links_end = ports + tree.hosts
    packets, load = taken_in(network.scenario, world)

    return Result(
        scenario=network.scenario,
        flows=network.flows,
        gaps=world.flows.table.gap_ps.copy(),
        end_ps=end_ps,
        start_ps=world.flows.started_ps,
        first_ps=ended.first_ps.copy(),
        done_ps=ended.done_ps.copy(),
        **{name: ended[name].copy() for name in SENDER_COUNTERS},
        ports=Ports(
            bytes=load[:ports],
            packets=packets[:ports],
            max_queue_bytes=links["max_bytes"][:ports].copy(),
            queue_byte_ps=links["byte_ps"][:ports].copy(),
            **{name: ledgers[name][:ports].copy() for name in PORT_COUNTERS},
        ),
        host_bytes=load[ports:links_end],
        host_packets=packets[ports:links_end],
        host_lost=int(ledgers["lost_to_failure"][ports:links_end].sum()),
        host_paused_ps=int(ledgers["paused_ps"][ports:links_end].sum()),
        unroutable=int(world.counters[UNROUTABLE]),
        redraws=network.events.redraws,
        series=series,
        cpu_s=cpu_s,
    )


def _unfinished(network: Network, world: World) -> str:
    """Say which flows are not done, and how far they are."""
    tree = network.scenario.tree
    flows = network.flows
    packets = acked(world.flows)
    late = np.flatnonzero(world.flows.ended.done_ps == NEVER)
    named = [
        f"{flow} from {host_name(tree, int(flows.source[flow]))} "
        f"to {host_name(tree, int(flows.destination[flow]))} "
        f"({packets[flow]} of {flows.packets[flow]} packets)"
        for flow in late[:3].tolist()
    ]

    more = f" and {len(late) - 3} more" if len(late) > 3 else ""
    now_us = int(world.counters[CLOCK]) / PS_PER_NS / 1000
    why = deadlock(tree, world) + storm(tree, world)
    return (
        f"{len(late)} flow(s) not finished after {now_us:g} µs: flow {', '.join(named)}{more}{why}"
    )
