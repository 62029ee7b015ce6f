"""The result of a run on a Mininet network, from switches' counters and hosts' reports."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from emulation.mininet.agents import Report
from emulation.mininet.children import process_fields
from emulation.mininet.counters import PortCounters, SwitchCounters
from emulation.outcomes.outcome import Accounts, FlowResult, PortResult
from fattree.counters import PORT_COUNTERS
from fattree.demand.flows import Flows
from fattree.shape.addressing import host_name
from fattree.shape.topology import FatTree
from hostagent.transports.state import NEVER

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Counted:
    """The counters of switches over a run.

    `unrouted` packets had no route, `missed` ones were not taken from the kernel in time, `died`
    ones were inside a switch that ended, or an interface that was deleted; `inside` has, for each
    switch, those that are there still, as it stands still. `probes` of the controller's own are
    among all these.
    """

    ports: tuple[PortResult, ...]
    unrouted: int
    missed: int
    died: int
    inside: tuple[int, ...]
    probes: int


@dataclass(frozen=True, slots=True)
class Reading:
    """The counters of all switches at one moment, and the packets then inside silent switches.

    Packets may move while switch after switch is read; `again` is a second reading.
    """

    switches: Sequence[SwitchCounters]
    again: Sequence[SwitchCounters]
    inside: Sequence[int] = ()
    lost_probes: int = 0

    @property
    def carried(self) -> int:
        """Return how many packets the network still had."""
        return sum(self.inside)


def counted(tree: FatTree, before: Reading, after: Reading) -> Counted:
    """Return the counts between two readings of switches' counters."""
    ports: list[PortResult] = []
    inside = []
    unrouted = missed = died = probes = 0

    for switch, (was, now, held) in enumerate(
        zip(before.switches, after.switches, before.inside, strict=True)
    ):
        # One that was started again has begun to count anew; the kernel has not.
        past = was if was.life == now.life else _reborn(was)
        unrouted += now.unrouted - past.unrouted
        missed += sum(port.missed - past.ports[number].missed for number, port in now.ports.items())
        ports += _port_results(tree, switch, past, now)

        # Packets that came in and neither left nor were counted as dropped.
        remainder = held + now.arrived - was.arrived - (now.left - was.left)
        remainder -= now.gone - past.gone + now.refused - past.refused

        is_waiting = any(port.queue_bytes for port in now.ports.values())
        stays = now.is_silent or (is_waiting and was.life == now.life)
        inside.append(max(0, remainder) if stays else 0)
        if was.life != now.life and not now.is_silent:
            died += remainder
        elif not now.is_silent and not was.is_silent:
            probes += now.controlled - past.controlled

    died += _lost_on_wires(tree, before, after)
    return Counted(tuple(ports), unrouted, missed, died, tuple(inside), probes)


def _lost_on_wires(tree: FatTree, before: Reading, after: Reading) -> int:
    """Return how many packets one switch has sent and its neighbour has never got.

    There are none, unless an interface was deleted with packets in it; both switches must report
    counters of their own.
    """
    looks = (before.switches, before.again, after.switches, after.again)
    lost = 0
    for link in range(tree.links):
        lower, upper = tree.link_ends(link)
        for near, far in ((lower, upper), (upper, lower)):
            senders = [switches[near.switch] for switches in looks]
            receivers = [switches[far.switch] for switches in looks]
            if all(map(_tells_all, (senders, receivers))):
                lost += max(0, _sent(senders, near.port) - _arrived(receivers, far.port))

    return lost


def _tells_all(looks: Sequence[SwitchCounters]) -> bool:
    return len({look.life for look in looks}) == 1 and not any(look.is_silent for look in looks)


def _sent(looks: Sequence[SwitchCounters], number: int) -> int:
    """Return how many packets have left a port for certain, without those during a reading."""
    first, first_again, last, last_again = (look.ports[number] for look in looks)
    # The switch counts packets that the kernel refused as sent: they are lost already.
    return last.packets - first_again.packets - (last_again.uncarried - first.uncarried)


def _arrived(looks: Sequence[SwitchCounters], number: int) -> int:
    """Return how many packets may have come to a port, with those during a reading."""
    first, _, _, last_again = (look.ports[number] for look in looks)
    return last_again.arrived - first.arrived


def _reborn(was: SwitchCounters) -> SwitchCounters:
    """Return the earlier counts of a switch that was started again: only the kernel has them."""
    return SwitchCounters(
        {number: PortCounters(refused=port.refused) for number, port in was.ports.items()}, 0
    )


def _port_results(
    tree: FatTree, switch: int, past: SwitchCounters, now: SwitchCounters
) -> Iterator[PortResult]:
    for number, present in now.ports.items():
        before = past.ports[number]
        yield PortResult(
            switch=switch,
            port=number,
            layer=tree.layer_of(switch, number),
            packets=present.packets - before.packets,
            bytes=present.bytes - before.bytes,
            max_queue_bytes=present.max_queue_bytes,
            # Queues are not sampled in real time, and marks are not counted; no switch trims, or
            # sees at which switch before it a packet was held.
            mean_queue_bytes=None,
            **dict.fromkeys(PORT_COUNTERS, 0)
            | {
                "dropped": present.drops - before.drops,
                "lost_to_failure": present.lost - before.lost,
                "pauses": present.pauses - before.pauses,
                "paused_ps": present.paused_ps - before.paused_ps,
            },
        )


def flow_result(flows: Flows, row: Sequence[Any]) -> FlowResult:
    """Return the result of a flow that its hosts report as a row."""
    flow, start_ps, first_ps, done_ps, counts = row
    return FlowResult(
        flow=flow,
        source=int(flows.source[flow]),
        destination=int(flows.destination[flow]),
        packets=int(flows.packets[flow]),
        planned_ps=int(flows.start_ps[flow]),
        start_ps=start_ps,
        first_ps=first_ps,
        done_ps=done_ps,
        **counts,
    )


def accounts(
    report: Report,
    counted_packets: Counted,
    lost_probes: int,
    carried: int,
    has_edge_probes: bool = False,
) -> Accounts:
    """Return the whereabouts of the packets of a run's hosts.

    `lost_probes` are those of the controller's that a switch without counters of its own has lost;
    `carried` is how many packets earlier runs had left in the network. A program's probes end at
    edges as packets that switches drop.
    """
    counts = report.counts

    # BMv2's probes leave without having come in, which makes `unrouted` less (`kernel_counters`).
    places = {
        "lost": sum(port.lost_to_failure for port in counted_packets.ports)
        + counts.refused
        + counted_packets.died
        - lost_probes,
        "in_flight": sum(counted_packets.inside),
        "unrouted": counted_packets.unrouted + lost_probes,
        "dropped": sum(port.dropped for port in counted_packets.ports)
        + counted_packets.missed
        + counts.missed,
    }

    if has_edge_probes:
        # Switches that the kernel counts for have one packet less for each probe that is lost.
        fewer = min(0, places["unrouted"])
        places["unrouted"] -= fewer
        places["lost"] += fewer
        places = {"unrouted": places.pop("unrouted"), **places}

    # Not of this run: probes, and packets of earlier runs that have not arrived meanwhile. It is
    # unknown in which places they are; where a single place is not empty, they are there.
    foreign = max(0, counted_packets.probes) + max(0, carried - counts.stale)
    for account, packets in places.items():
        taken = min(max(0, packets), foreign)
        places[account] -= taken
        foreign -= taken

    return Accounts(counts.data_sent + counts.acks_sent, counts.received, **places)


def complaint(tree: FatTree, flows: Flows, report: Report) -> str:
    """Say which flows are not complete: how many, and the first few."""
    waiting = [flow for flow, _, _, done_ps, _ in report.flows if done_ps == NEVER]
    names = [
        f"{host_name(tree, int(flows.source[f]))} to {host_name(tree, int(flows.destination[f]))}"
        for f in waiting[:3]
    ]

    more = f" and {len(waiting) - 3} more" if len(waiting) > 3 else ""
    return f"{len(waiting)} flows are not complete: {', '.join(names)}{more}"


def process_seconds(pid: int) -> float:
    """Return the processor time that a process has used; 0 where it has ended."""
    # Fields 14 and 15, utime and stime (proc(5)); the first of these is the third.
    return sum(int(ticks) for ticks in process_fields(pid)[11:13]) / CLOCK_TICKS
