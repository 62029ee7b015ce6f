"""Flows of the matrices, with their gaps and phases."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil

from fattree.experiment.model import Scenario
from tests.naive.collectives import jobs, part_sizes
from tests.naive.draws import Purpose, number, scaled
from tests.naive.schemes import SCHEMES
from tests.naive.tree import Links, Tree
from tests.naive.wire import Wire

# The matrix stream of the numbers for an inter-pod permutation's swaps.
SWAPS = 2**20


@dataclass(frozen=True)
class Message:
    """A message between two hosts, sent when all messages that it waits for are complete.

    `payloads` has the bytes of each packet: all as many, and the last packet the rest. Without
    packets it is a computation. `share` 0: shares of the host's rate are counted.
    """

    source: int
    destination: int
    payloads: tuple[int, ...]
    waits_for: frozenset[int] = frozenset()
    compute_ps: int = 0
    start_ps: int = 0
    share: int = 0
    is_whole: bool = False


@dataclass
class Pace:
    """When a flow may send: packets a gap apart, the first of them a phase after the flow began."""

    gap_ps: int
    phase_ps: int = field(default=0)


def payloads(scenario: Scenario, size: int) -> tuple[int, ...]:
    """Return the bytes of each packet of a message of `size` bytes."""
    payload_bytes = scenario.packets.payload_bytes
    return tuple(min(payload_bytes, size - first) for first in range(0, size, payload_bytes))


def messages(scenario: Scenario) -> list[Message]:
    """Return the flows of a scenario, subflows one after the other."""
    whole = whole_messages(scenario)
    parts = SCHEMES[scenario.policy].subflows
    return [
        Message(
            source=message.source,
            destination=message.destination,
            payloads=payloads(scenario, size),
            waits_for=frozenset(
                awaited * parts + part for awaited in message.waits_for for part in range(parts)
            ),
            compute_ps=message.compute_ps,
            start_ps=message.start_ps,
            share=message.share * parts,
            is_whole=message.is_whole and parts == 1,
        )
        for message in whole
        for size in part_sizes(sum(message.payloads), parts)
    ]


def over_planes(scenario: Scenario, planes: int) -> list[Message]:
    """Return every machine's messages as those of its NICs, a NIC in each plane."""
    fabric = scenario.fabric.model_copy(update={"planes": None})
    machines = scenario.model_copy(update={"fabric": fabric})
    whole, hosts = whole_messages(machines), Tree.of(machines).hosts
    if scenario.fabric.plane_use != "keep":
        return [
            Message(
                source=plane * hosts + message.source,
                destination=plane * hosts + message.destination,
                payloads=payloads(scenario, size),
                waits_for=frozenset(awaited * planes + plane for awaited in message.waits_for),
            )
            for message in whole
            for plane, size in enumerate(part_sizes(sum(message.payloads), planes))
        ]

    of_nics = []
    sent: Counter[int] = Counter()
    for message in whole:
        first = (message.source + sent[message.source]) % planes * hosts
        sent[message.source] += 1
        of_nics.append(
            replace(message, source=first + message.source, destination=first + message.destination)
        )
    return of_nics


def whole_messages(scenario: Scenario) -> list[Message]:
    if scenario.jobs or scenario.collective.is_graph:
        return of_jobs(scenario)
    if scenario.fabric.planes:
        return over_planes(scenario, scenario.fabric.planes)

    tree, collective = Tree.of(scenario), scenario.collective
    carried = payloads(scenario, collective.message_bytes)
    hosts = range(tree.hosts)

    match collective.matrix:
        case "permutation":
            pairs: Iterable[tuple[int, int]] = enumerate(derangement(scenario.seed, tree.hosts))
        case "inter_pod_permutation":
            pairs = enumerate(inter_pod_permutation(scenario.seed, tree))
        case "all_to_all":
            pairs = [
                (host, (host + step) % tree.hosts)
                for host in hosts
                for step in range(1, tree.hosts)
            ]
        case "pairs":
            pairs = collective.pairs
        case "ring":
            successor = [(host + 1) % tree.hosts for host in hosts]
            return chained(successor, collective.steps or tree.hosts - 1, carried)
        case "hierarchical_ring" if collective.servers_per_ring is None:
            successor = [(host + tree.hosts_at_edge) % tree.hosts for host in hosts]
            return chained(successor, collective.steps or tree.edges - 1, carried)
        case _:
            raise NotImplementedError(f"the plain model knows no {collective.matrix} like this")

    return [Message(source, destination, carried) for source, destination in pairs]


def of_jobs(scenario: Scenario) -> list[Message]:
    return [
        Message(
            source=step.source,
            destination=step.destination,
            payloads=payloads(scenario, step.size),
            waits_for=step.waits,
            compute_ps=step.compute_ps,
            start_ps=job.start_ps,
            share=share,
            is_whole=job.in_turn,
        )
        for job in jobs(scenario)
        for step, share in zip(job.steps, job.shares, strict=True)
    ]


def chained(successor: list[int], steps: int, carried: tuple[int, ...]) -> list[Message]:
    """Repeat every host's message to its successor.

    A step begins when the host's own last step, and the last step that arrives at it, are complete.
    """
    hosts = len(successor)
    return [
        Message(
            source=host,
            destination=successor[host],
            payloads=carried,
            waits_for=frozenset(
                (step - 1) * hosts + before for before in (host, successor.index(host))
            )
            if step
            else frozenset(),
        )
        for step in range(steps)
        for host in range(hosts)
    ]


def shuffled(seed: int, stream: int, count: int) -> list[int]:
    """Return a random order of 0 .. count - 1: sorted by 63-bit draws."""

    def key(item: int) -> int:
        first, second = (number(seed, Purpose.MATRIX, stream, 2 * item + part) for part in range(2))
        return first * 2**31 + second // 2

    return sorted(range(count), key=key)


def derangement(seed: int, count: int) -> list[int]:
    """Return the first random order that leaves no host where it is."""
    attempt = 0
    while any(
        host == destination for host, destination in enumerate(shuffled(seed, attempt, count))
    ):
        attempt += 1
    return shuffled(seed, attempt, count)


def inter_pod_permutation(seed: int, tree: Tree) -> list[int]:
    """Return a random order in which no host's destination is in its own pod."""
    order = shuffled(seed, 0, tree.hosts)
    draws = 0
    for host in range(tree.hosts):
        while tree.pod_of(order[host]) == tree.pod_of(host):
            partner = scaled(number(seed, Purpose.MATRIX, SWAPS, draws), tree.hosts)
            draws += 1

            # Swap where both then leave their pods; the other one may have been fine before.
            leaves = tree.pod_of(order[partner]) != tree.pod_of(host)
            if leaves and tree.pod_of(order[host]) != tree.pod_of(partner):
                order[host], order[partner] = order[partner], order[host]
    return order


def paces(scenario: Scenario, flows: list[Message], links: Links) -> list[Pace]:
    """Return every flow's pace, with the links that are up at the start."""
    wire = Wire(scenario)
    if is_active(scenario):
        return active_paces(scenario, flows, links)

    generation = generations(flows)
    shares = shares_of(flows, generation)

    # The bottleneck also carries ACKs; a host's link at line rate has room for them (choice).
    rate = rho_max(flows, generation, shares, links, speeds(scenario))
    slot = Fraction(wire.data_slot_ps + (wire.ack_slot_ps if rate < 1 else 0))
    slot /= rate * limit(scenario)

    ranks: Counter[tuple[int, int]] = Counter()
    flow_paces = []
    for flow, message in enumerate(flows):
        pace = Pace(ceil(slot * shares[flow]))
        if scenario.transport.random_phases:
            draw = number(scenario.seed, Purpose.PHASE, flow, 0)
            pace.phase_ps = scaled(draw, pace.gap_ps)
        else:
            pace.phase_ps = ranks[generation[flow], message.source] * wire.data_slot_ps
            ranks[generation[flow], message.source] += 1
        flow_paces.append(pace)
    return flow_paces


def is_active(scenario: Scenario) -> bool:
    """Whether flows share a host's rate while they are ready, instead of fixed shares."""
    if scenario.transport.sharing:
        return scenario.transport.sharing == "active"
    is_listed = scenario.matrix in ("pairs", "file")
    return bool(scenario.jobs) or scenario.collective.is_graph or is_listed


def tells_shares(scenario: Scenario) -> bool:
    """Whether receivers tell senders how many flows share the receiver's link."""
    told = scenario.transport.receiver_share
    is_fixed = scenario.transport.congestion == "fixed" and scenario.fabric.flow_control != "pfc"
    is_wanted = is_fixed if told is None else told
    return is_active(scenario) and is_wanted


def limit(scenario: Scenario) -> Fraction:
    """Return the share of its link's rate that a NIC has."""
    return Fraction(str(scenario.transport.rate_limit or 1))


def kept_ps(scenario: Scenario, size: int) -> int:
    """Return the time from a packet of so many bytes to the NIC's next packet."""
    wire = Wire(scenario)
    return ceil(wire.sending_ps(size + wire.gap_bytes) / limit(scenario))


def active_paces(scenario: Scenario, flows: list[Message], links: Links) -> list[Pace]:
    """Return the paces of flows that may each use their host's whole rate.

    A flow that waits for others begins with the last of these, every other flow at a random phase.
    """
    gap_ps = between_ps(scenario, flows, links, Wire(scenario).data_bytes)
    flow_paces = []
    for flow, message in enumerate(flows):
        draw = number(scenario.seed, Purpose.PHASE, flow, 0)
        is_free = not message.waits_for and not message.is_whole
        has_phase = scenario.transport.random_phases and is_free
        flow_paces.append(Pace(gap_ps, scaled(draw, gap_ps) if has_phase else 0))
    return flow_paces


def between_ps(scenario: Scenario, flows: list[Message], links: Links, size: int) -> int:
    """Return the least time from a data packet of so many bytes to a NIC's next data packet."""
    wire = Wire(scenario)
    if not is_active(scenario):
        return kept_ps(scenario, size)
    generation = generations(flows)
    rate = rho_max(flows, generation, shares_of(flows, generation), links, speeds(scenario))
    slot = wire.sending_ps(size + wire.gap_bytes) + (wire.ack_slot_ps if rate < 1 else 0)
    return ceil(slot / (rate * limit(scenario)))


def shares_of(flows: list[Message], generation: list[int]) -> list[int]:
    """Return how many flows share a host's rate: as given, or the most at a time."""
    together = Counter((generation[flow], message.source) for flow, message in enumerate(flows))
    of_host = {
        host: max(count for (_, source), count in together.items() if source == host)
        for host in {message.source for message in flows}
    }
    return [message.share or of_host[message.source] for message in flows]


def generations(flows: list[Message]) -> list[int]:
    """Return how many flows must be complete, one after the other, before each begins."""
    generation_of: dict[int, int] = {}
    while len(generation_of) < len(flows):
        for flow, message in enumerate(flows):
            if all(awaited in generation_of for awaited in message.waits_for):
                generation_of[flow] = max(
                    (generation_of[awaited] + 1 for awaited in message.waits_for), default=0
                )
    return [generation_of[flow] for flow in range(len(flows))]


def speeds(scenario: Scenario) -> list[Fraction]:
    """Return the speeds of links of each level, relative to hosts' links."""
    host = Wire(scenario).rate_bps
    return [Fraction(Wire(scenario, level).rate_bps, host) for level in range(3)]


def rho_max(
    flows: list[Message],
    generation: list[int],
    shares: list[int],
    links: Links,
    speeds: list[Fraction],
) -> Fraction:
    """Return the rate at which no link between switches is overloaded (appendix A), at most 1.

    Every flow is split evenly over its paths. Flows of different generations are not sent at the
    same time. Without failures a fat-tree carries all that its hosts' links carry.
    """
    tree = links.tree
    if not links.down and not is_oversubscribed(tree, speeds):
        return Fraction(1)

    loads: defaultdict[tuple[object, ...], Fraction] = defaultdict(Fraction)
    for flow, message in enumerate(flows):
        source, destination = tree.edge_of(message.source), tree.edge_of(message.destination)
        pods = tree.pod(source), tree.pod(destination)
        paths = links.paths(source, destination)
        for uplink, last in paths:
            part = Fraction(1, shares[flow] * len(paths))
            aggs = tree.above(source, uplink), tree.above(destination, uplink)
            loads[generation[flow], "up", source, uplink] += part / speeds[1]
            # Parallel links down share alike.
            below = sum(links.alive(destination, aggs[1]))
            loads[generation[flow], "down", destination, aggs[1]] += part / below / speeds[1]
            if pods[0] != pods[1]:
                core = tree.above(aggs[0], last)
                loads[generation[flow], "to core", aggs[0], last] += part / speeds[2]
                below = sum(links.alive(aggs[1], core))
                loads[generation[flow], "from core", aggs[1], core] += part / below / speeds[2]

    return 1 / max([Fraction(1), *loads.values()])


def is_oversubscribed(tree: Tree, speeds: list[Fraction]) -> bool:
    """Whether a switch or pod has hosts below that send faster than the links above it."""
    has_cores = tree.pods_in_plane > 1
    edges = (tree.edges_in_pod > 1 or has_cores) and tree.hosts_at_edge > tree.uplinks(0) * speeds[
        1
    ]
    to_cores = tree.aggs_in_pod * tree.uplinks(tree.edges) * speeds[2]
    return edges or (has_cores and tree.hosts_in_pod > to_cores)
