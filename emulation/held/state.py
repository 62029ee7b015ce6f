"""What a held network tells whoever looks on, over its control socket: written here, read by
`held_source`.
"""

import os
from dataclasses import asdict
from typing import Any, TypedDict

from emulation.live.model import changes_of
from emulation.mininet.counters import PortCounters
from emulation.mininet.fabric import MininetFabric
from fattree.experiment import Scenario


class HeldState(TypedDict):
    """The answer to the command `live`; times in ps of the run.

    `ports` has (carried, queued, longest, drops, lost) by switch and port (0 is no port), `flows`
    has (flow, acknowledged, start, done).
    """

    scenario: dict[str, Any]
    process: int
    switch: str
    now_ps: int
    is_running: bool
    last: str
    converges: bool
    failed: list[int]
    ports: list[list[list[int]]]
    flows: list[list[int]]
    changes: list[dict[str, Any]]


def held_state(fabric: MininetFabric, scenario: Scenario, is_running: bool, last: str) -> HeldState:
    """Return everything that is known of a held network.

    `scenario` is that of its present or next traffic.
    """
    nothing = PortCounters()
    columns = range(fabric.tree.k + 1)
    return HeldState(
        scenario=scenario.model_dump(mode="json"),
        process=os.getpid(),
        switch=fabric.switches.target.name,
        now_ps=fabric.now_ps(),
        is_running=is_running,
        last=last,
        converges=fabric.controller.convergence_ps is not None,
        failed=sorted(fabric.failed),
        ports=[
            [_counts(own.ports.get(port, nothing)) for port in columns]
            for own in fabric.switches.counters()
        ],
        flows=fabric.agents.progress(),
        changes=[asdict(change) for change in changes_of(fabric.tree, fabric.installations)],
    )


def _counts(port: PortCounters) -> list[int]:
    return [port.bytes, port.queue_bytes, port.max_queue_bytes, port.drops + port.missed, port.lost]
