"""What a run on a Mininet network amounts to: its switches' counters and its hosts' reports."""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from emulation.mininet.agents import Report
from emulation.mininet.counters import PortCounters, SwitchCounters
from emulation.outcomes.outcome import Accounts, FlowResult, PortResult
from fattree.addressing import host_name
from fattree.flows import Flows
from fattree.topology import FatTree
from hostagent.state import NEVER

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Counted:
    """What switches have counted over a run.

    `unrouted` packets had no route, `missed` ones were not taken from the kernel in time.
    """

    ports: tuple[PortResult, ...]
    unrouted: int
    missed: int


def counted(
    tree: FatTree, before: Sequence[SwitchCounters], after: Sequence[SwitchCounters]
) -> Counted:
    """Return what switches have counted between two readings of their counters."""
    ports = []
    unrouted = 0
    missed = 0

    for switch, (was, now) in enumerate(zip(before, after, strict=True)):
        unrouted += now.unrouted - was.unrouted
        for number, present in now.ports.items():
            past = _comparable(was.ports[number], present)
            missed += present.missed - past.missed
            ports.append(
                PortResult(
                    switch=switch,
                    port=number,
                    layer=tree.layer_of(switch, number),
                    packets=present.packets - past.packets,
                    bytes=present.bytes - past.bytes,
                    drops=present.drops - past.drops,
                    # Nobody counts marks in real time, and nobody samples queues.
                    marks=0,
                    lost=present.lost - past.lost,
                    max_queue_bytes=present.max_queue_bytes,
                    mean_queue_bytes=0.0,
                )
            )

    return Counted(tuple(ports), unrouted, missed)


def _comparable(past: PortCounters, present: PortCounters) -> PortCounters:
    """Return the past of a port: none where its switch has been started again meanwhile.

    Counters only grow, so that one which has shrunk began anew at 0.
    """
    return past if present.packets >= past.packets else PortCounters()


def flow_result(flows: Flows, row: Sequence[int]) -> FlowResult:
    """Return the result of a flow that its hosts report as a row."""
    flow, start_ps, first_ps, done_ps, transmissions = row
    return FlowResult(
        flow=flow,
        source=int(flows.source[flow]),
        destination=int(flows.destination[flow]),
        packets=int(flows.packets[flow]),
        planned_ps=int(flows.start_ps[flow]),
        start_ps=start_ps,
        first_ps=first_ps,
        done_ps=done_ps,
        transmissions=transmissions,
    )


def accounts(report: Report, found: Counted, lost_probes: int) -> Accounts:
    """Return where the packets of the hosts are."""
    # The switches count the controller's probes too.
    counts = report.counts
    return Accounts(
        sent=counts.data_sent + counts.acks_sent,
        received=counts.received,
        dropped=sum(port.drops for port in found.ports) + found.missed + counts.missed,
        unrouted=found.unrouted,
        lost=sum(port.lost for port in found.ports) + counts.refused - lost_probes,
    )


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
    with suppress(OSError):
        # Fields 14 and 15, utime and stime (proc(5)). The second, the command's name in
        # parentheses, may hold blanks, so counting begins behind it, at the third.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS

    return 0.0
