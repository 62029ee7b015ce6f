"""Links and switches as arrays: ports, lists of packets, outages, rates."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fattree.demand.flows import offsets
from fattree.draws import Stream, component, mix
from fattree.experiment.model import Scenario
from fattree.experiment.nics import nic
from fattree.experiment.pauses import PAUSE_BYTES, is_paused, lasting, room, storms, watchdog
from fattree.files.memory import GIGABYTE, spare_bytes
from fattree.routes.buffers import longer, slow_ports
from fattree.routes.failures import Timeline, loss_thresholds
from fattree.routes.forwarding import Forwarding
from fattree.routes.groups import LEVELS
from fattree.routes.slow_links import FULL, paces
from fattree.shape.topology import FatTree, Level, Tier
from hostagent.transports.state import NEVER
from sim.errors import SimulationError
from sim.kernels.events.gates import ROOM
from sim.kernels.events.upcoming import GATE
from sim.kernels.ports import FAR
from sim.kernels.records import (
    CHUNK,
    CHUNK_BITS,
    LINK,
    NIC,
    PASSAGE,
    SWITCH,
    TRANSIT,
    Records,
    header_of,
    records,
)
from sim.kernels.state import ACK, DATA, SPARE, Int64, Pool


def links_of(tree: FatTree, lanes: int) -> Records:
    """Return all links, up and empty, and as many lanes behind them where there are any."""
    links = records(lanes + tree.first_port(tree.switches) + tree.hosts, LINK)
    links.down_ps = NEVER
    return links


def passages_of(
    scenario: Scenario, short: Sequence[int] = (), edge_header_bytes: int = 0
) -> Records:
    """Return how packets pass links: a row for each size and level.

    Sizes are those of full data packets, of ACKs and of data packets with `short` payloads. Links
    between switches carry `edge_header_bytes` more.
    """
    gap = scenario.packets.gap_bytes
    kinds = len(_sizes(scenario, short))
    rows = records(kinds * len(Level), PASSAGE)
    for level in Level:
        for kind, size in enumerate(_sizes(scenario, short, level, edge_header_bytes)):
            sending_ps, slot_ps = (scenario.tx_ps(held, level) for held in (size, size + gap))
            row = len(Level) * kind + level
            rows[row] = size, sending_ps, slot_ps, scenario.latencies_ps[level]

    return rows


def nics_of(scenario: Scenario, rate: Fraction, short: Sequence[int]) -> Records:
    """Return how long packets of each size keep a NIC with data at a share of line rate."""
    full = nic(scenario, rate)
    rows = records(2 + len(short), NIC)
    rows[DATA] = full.data_ps, full.between_ps
    rows[ACK] = full.ack_ps, 0
    for kind, payload in enumerate(short, start=ACK + 1):
        short_nic = nic(scenario, rate, payload)
        rows[kind] = short_nic.data_ps, short_nic.between_ps

    return rows


def _sizes(
    scenario: Scenario,
    short: Sequence[int],
    level: Level = Level.HOST,
    edge_header_bytes: int = 0,
) -> list[int]:
    more = 0 if level == Level.HOST else edge_header_bytes
    sizes = [scenario.data_bytes, scenario.ack_bytes, *map(scenario.packet_bytes, short)]
    return [size + more for size in sizes]


def gates_of(scenario: Scenario) -> Records:
    """Return each port's gate where switches pause, nothing elsewhere."""
    tree = scenario.tree
    gates = records(tree.first_port(tree.switches) if is_paused(scenario) else 0, GATE)
    gates.leaves_ps = gates.renew_ps = gates.storm_ps = gates.tells_ps = FAR
    gates.since_ps = NEVER
    gates.opened_ps = -1
    for storm in storms(scenario) if len(gates) else ():
        gate = gates[_number(tree, *tree.access(storm.host))]
        gate.storm_ps, gate.until_ps = storm.from_ps, storm.until_ps

    return gates


def rooms_of(scenario: Scenario, edge_header_bytes: int = 0) -> Records:
    """Return each port's buffer and control frames where switches pause, without them nothing.

    Links between switches carry `edge_header_bytes` more of each packet.
    """
    tree = scenario.tree
    rooms = records(tree.first_port(tree.switches) if is_paused(scenario) else 0, ROOM)
    if not len(rooms):
        return rooms

    gap = scenario.packets.gap_bytes
    guard = watchdog(scenario)
    levels = np.array(
        [
            tree.level_of(switch, port)
            for switch in range(tree.switches)
            for port in tree.ports(switch)
        ]
    )
    for level in Level:
        times_ps = (scenario.tx_ps(size, level) for size in (PAUSE_BYTES, PAUSE_BYTES + gap))
        carried = longer(scenario, level, edge_header_bytes)
        row = (*room(carried, level), *times_ps, *lasting(scenario, level), *guard)
        rooms[levels == level] = row

    for switch_port, shares in slow_ports(scenario).items():
        number = _number(tree, *switch_port)
        level = Level(int(levels[number]))
        slow_room = room(longer(scenario, level, edge_header_bytes), level, shares=shares)
        for name, value in slow_room._asdict().items():
            rooms[name][number] = value

    return rooms


def _number(tree: FatTree, switch: int, port: int) -> int:
    """Return the number of a port's link."""
    return tree.first_port(switch) + port - 1


def inputs_of(tree: FatTree) -> NDArray[np.int32]:
    """Return the link that arrives at each (switch, port), flat like the links."""
    # A link's two ends are each other's input; at an edge's lower ports hosts' links arrive.
    ports = tree.first_port(tree.switches)
    inputs = np.empty(ports, dtype=np.int32)
    lower, upper = _ends(tree)
    inputs[lower] = upper
    inputs[upper] = lower
    edge = np.arange(tree.edges)[:, None]
    index = np.arange(tree.hosts_per_edge)
    inputs[edge * len(tree.ports(0)) + index] = ports + edge * tree.hosts_per_edge + index

    return inputs


def _ends(tree: FatTree) -> tuple[Int64, Int64]:
    """Return the lower and the upper port, as links, of every inter-switch link."""
    # By `shape.topology`'s numbers; a test asks the tree itself.
    first_agg = tree.first_port(tree.first_agg)
    agg_ports = len(tree.ports(tree.first_agg))
    edge, uplink = np.divmod(np.arange(tree.edge_links), tree.edge_uplinks)
    pod, position = np.divmod(edge, tree.edges_per_pod)
    above, parallel = np.divmod(uplink, tree.edge_agg_links)
    agg = pod * tree.aggs_per_pod + above
    lower = [edge * len(tree.ports(0)) + tree.hosts_per_edge + uplink]
    upper = [first_agg + agg * agg_ports + position * tree.edge_agg_links + parallel]

    if tree.cores:
        agg, uplink = np.divmod(np.arange(tree.aggs * tree.agg_uplinks), tree.agg_uplinks)
        pod, position = np.divmod(agg, tree.aggs_per_pod)
        index, parallel = np.divmod(uplink, tree.agg_core_links)
        plane, below = np.divmod(pod, tree.pods_per_plane)
        core = (plane * tree.aggs_per_pod + position) * tree.cores_per_agg + index
        lower.append(first_agg + agg * agg_ports + tree.downlinks(tree.first_agg) + uplink)
        first_core, core_ports = tree.first_port(tree.first_core), tree.downlinks(tree.first_core)
        upper.append(first_core + core * core_ports + below * tree.agg_core_links + parallel)

    return np.concatenate(lower), np.concatenate(upper)


def placed_switches(tree: FatTree) -> Records:
    """Return the switches with their tier, place and ports."""
    switches = records(tree.switches, SWITCH)
    firsts = (0, tree.first_agg, tree.first_core, tree.switches)
    sizes = (tree.edges_per_pod, tree.aggs_per_pod, tree.cores_per_agg)
    for tier, size, (first, end) in zip(Tier, sizes, pairwise(firsts), strict=True):
        # Switches of a tier are alike.
        of_tier = switches[first:end].view(np.recarray)
        number = np.arange(end - first)
        of_tier.tier = tier
        of_tier.pod, of_tier.position = np.divmod(number, max(size, 1))
        if tier is Tier.CORE:
            # The first below it: its ports lead to the pods of its plane.
            of_tier.pod = of_tier.pod // tree.aggs_per_pod * tree.pods_per_plane

        of_tier.ports = len(tree.ports(first))
        of_tier.south = tree.downlinks(first)
        of_tier.first_port = tree.first_port(first) + number * len(tree.ports(first))

    return switches


def switches_of(scenario: Scenario, table: Forwarding, groups: Int64) -> Records:
    """Return the switches with the places of their groups, pointers and hash."""
    tree = scenario.tree
    switches = placed_switches(tree)
    widths = np.repeat(
        [table.edge_group.shape[1], table.agg_group.shape[1]], [tree.edges, tree.aggs]
    )
    switches.row[: tree.first_core] = offsets(widths)[:-1]
    switches.level = np.array([*map(LEVELS.index, table.columns), 0])[switches.tier]
    switches.cells[: tree.first_core] = offsets(2 * groups)[:-1]
    # Odd, so that multiplying is injective: no two hashes become equal (decision 12).
    number = np.arange(tree.switches)
    switches.multiplier = mix(scenario.seed, component(Stream.MULTIPLIER, 0), number) | 1

    return switches


def place_outages(tree: FatTree, events: Timeline, links: Records, ledgers: Records) -> Int64:
    """Return all (down, up) times, a row of them for each link, and point both directions there.

    A row ends with NEVER, where `sim.kernels.ports.is_dead` stops.
    """
    rows: dict[tuple[int, ...], list[list[int]]] = {}
    for change in events.changes:
        for link in change.up:
            rows[_of_link(tree, link)][-1][1] = change.time_ps

        for link in change.down:
            rows.setdefault(_of_link(tree, link), []).append([change.time_ps, NEVER])

    for host, down_ps, up_ps in events.hosts:
        rows.setdefault(_of_host(tree, host), []).append([down_ps, up_ps])

    # All links without an outage share row 0.
    table = [[NEVER, NEVER]]
    ledgers["up_ps"] = NEVER
    for numbers, row in rows.items():
        for number in numbers:
            ledgers["outage"][number] = len(table)
            links["down_ps"][number], ledgers["up_ps"][number] = row[0]

        table += [*row, [NEVER, NEVER]]

    return np.array(table, dtype=np.int64)


def outages_of_hosts(tree: FatTree, events: Timeline, ledgers: Records) -> Int64:
    """Return the first row of each host's outages in `place_outages`, and the row behind them."""
    first = ledgers["outage"][tree.first_port(tree.switches) :]
    hosts = [outage.link for outage in events.hosts]
    count = np.bincount(np.array(hosts, dtype=np.int64), minlength=tree.hosts)
    return np.stack([first, first + count], axis=1).astype(np.int64)


def _of_link(tree: FatTree, link: int) -> tuple[int, ...]:
    """Return the two directed links of a link between switches."""
    return tuple(tree.first_port(end.switch) + end.port - 1 for end in tree.link_ends(link))


def _of_host(tree: FatTree, host: int) -> tuple[int, ...]:
    """Return the two directed links between a host and its edge."""
    edge, port = tree.access(host)
    return tree.first_port(edge) + port - 1, tree.first_port(tree.switches) + host


def place_losses(scenario: Scenario, ledgers: Records) -> None:
    """Set the share of packets that each link loses at random."""
    tree = scenario.tree
    of_links, of_hosts = loss_thresholds(scenario)
    for link, threshold in of_links.items():
        ledgers["unlucky"][[*_of_link(tree, link)]] = threshold

    for host, threshold in of_hosts.items():
        ledgers["unlucky"][[*_of_host(tree, host)]] = threshold


def place_paces(
    scenario: Scenario, ledgers: Records, short: Sequence[int], edge_header_bytes: int = 0
) -> Int64:
    """Return how long packets hold links, a row for each of a link's rates, and point links there.

    Sizes are that of control frames, and those of `passages_of`.

    A link's rows follow each other up to the row that ends at NEVER;
    `sim.kernels.ports.pace` reads them in order of time. Without slow links they are not read.
    """
    if not scenario.failures.degraded:
        return np.zeros((0, 1), dtype=np.int64)

    # The first rows are those of links that are never slow, by level.
    tree = scenario.tree
    sizes = {level: _sizes(scenario, short, level, edge_header_bytes) for level in Level}
    table = [_pace(scenario, sizes[level], NEVER, level, FULL) for level in Level]
    for switch in range(tree.switches):
        for port in tree.ports(switch):
            ledgers["pace"][tree.first_port(switch) + port - 1] = tree.level_of(switch, port)

    of_links, of_hosts = paces(scenario)
    slow = [(_of_link(tree, link)[not up], steps) for (link, up), steps in of_links.items()]
    slow += [(_of_host(tree, host)[up], steps) for (host, up), steps in of_hosts.items()]
    for number, steps in slow:
        level = Level(int(ledgers["pace"][number]))
        ledgers["pace"][number] = len(table)
        ends = [*(step.time_ps for step in steps[1:]), NEVER]
        if steps[0].time_ps > 0:
            table.append(_pace(scenario, sizes[level], steps[0].time_ps, level, FULL))

        table += [
            _pace(scenario, sizes[level], end, level, step.share)
            for step, end in zip(steps, ends, strict=True)
        ]

    return np.array(table, dtype=np.int64)


def _pace(
    scenario: Scenario, sizes: Sequence[int], until_ps: int, level: Level, share: float
) -> list[int]:
    """Return a row of `World.paces`."""
    gap = scenario.packets.gap_bytes
    return [
        until_ps,
        *(
            scenario.tx_ps(size + more, level, share)
            for size in (PAUSE_BYTES, *sizes)
            for more in (0, gap)
        ),
    ]


def grown(
    pool: Pool | None,
    chunks: int,
    counters: Int64,
    *,
    keeps_starts: bool = False,
    record: np.dtype[np.void] = TRANSIT,
) -> Pool:
    """Return a pool with `chunks` more spare chunks; packets of the old pool stay where they are.

    A new one keeps when transmissions start if asked to, and has packets of the type `record`.
    Raises SimulationError where this machine has no memory for more.
    """
    if pool is not None:
        _refuse_growth(pool)

    # Slots are indices, so a larger array with the same beginning is all that it takes.
    old = 0 if pool is None else len(pool.headers)
    record = record if pool is None else pool.packets.dtype
    # Without a block to begin with; untouched memory is 0, and costs nothing.
    made = np.empty if record == TRANSIT else np.zeros
    packets = made((old + chunks) * CHUNK, dtype=record)
    spare = np.empty(old + chunks, dtype=np.int32)
    held = int(counters[SPARE])
    if pool is not None:
        keeps_starts = len(pool.starts) > 0

    starts = np.empty(len(packets) if keeps_starts else 0, dtype=np.int64)
    if pool is not None:
        starts[: len(pool.starts)] = pool.starts
        packets[: len(pool.packets)] = pool.packets
        spare[:held] = pool.spare[:held]

    # The lowest on top of the stack, so that used chunks lie close together.
    spare[held : held + chunks] = np.arange(old + chunks, old, -1) - 1
    counters[SPARE] += chunks
    headers = packets.view(header_of(record)).view(np.recarray)
    return Pool(packets.view(np.recarray), headers, spare, starts)


def _refuse_growth(pool: Pool) -> None:
    """Raise SimulationError where this machine has no memory to double a pool of packets."""
    held = pool.packets.nbytes + pool.spare.nbytes + pool.starts.nbytes
    spare = spare_bytes()
    if spare is not None and held > spare:
        raise SimulationError(
            f"more than {len(pool.packets):,} packets are under way, which take"
            f" {held / GIGABYTE:.1f} GB of memory; they need as much again, and"
            f" {spare / GIGABYTE:.1f} GB are free for it"
        )


def place_lists(pool: Pool, links: Records, hosts: Records, ports: int) -> None:
    """Give every list its first chunk: chunk i to link i, the next ones to the hosts' ACKs.

    They are the top of a new pool's stack. Hosts' lists have one reader (`sim.kernels.lists`).
    """
    first = (np.arange(len(links) + len(hosts)) << CHUNK_BITS) + 1
    links.cursor = links.taken = links.tail = first[: len(links)]
    hosts.taken = hosts.tail = first[len(links) :]
    number = np.arange(len(first))
    is_ports = (number < len(links)) & (number % (ports + len(hosts)) < ports)
    pool.headers["passes"][: len(first)] = ~is_ports
