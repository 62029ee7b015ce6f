"""A held network's state for viewers, over its control socket."""

import os

from emulation.held.messages import HeldState
from emulation.mininet.counters import PortCounters
from emulation.mininet.fabric import MininetFabric
from emulation.outcomes.changes import changes_of
from fattree.experiment.model import Scenario


def held_state(fabric: MininetFabric, scenario: Scenario, is_running: bool, last: str) -> HeldState:
    """Return everything that is known of a held network.

    `scenario` is that of its present or next traffic.
    """
    nothing = PortCounters()
    columns = range(fabric.tree.most_ports + 1)
    return HeldState(
        scenario=scenario.model_dump(mode="json"),
        process=os.getpid(),
        switch=fabric.switches.target.name,
        now_ps=fabric.now_ps(),
        is_running=is_running,
        last=last,
        converges=fabric.controller.convergence_ps is not None,
        failed=sorted(fabric.failed),
        slow=sorted((link.link, link.share) for link in fabric.slow),
        # Port 0 does not exist, but a column of its own keeps numbers and positions the same.
        ports=[
            [_counts(counters.ports.get(port, nothing)) for port in columns]
            for counters in fabric.switches.counters()
        ],
        flows=fabric.agents.progress(),
        changes=changes_of(fabric.tree, fabric.installations),
    )


def _counts(port: PortCounters) -> list[int]:
    longest = port.max_queue_bytes or 0
    return [port.bytes, port.queue_bytes, longest, port.drops + port.missed, port.lost]
