"""A switch in thirty lines of Python instead of P4: what the virtual network must not tell apart from the programs."""

from types import SimpleNamespace
from typing import Any
from zlib import crc32

import numpy as np

from emulation.softswitch.switch import Pending, Transmit
from fabric.addressing import host_of_ip
from fabric.experiment import Scenario
from fabric.forwarding import NONE, Forwarding, forwarding, hash_multiplier
from fabric.policies import Chooser
from fabric.topology import Tier
from fabric.wecmp import LinkState
from hostagent.packets import parse


class NaiveSwitch:
    """Forwards `flow`, `simple_rr` and `ofan` by the run model, reading `fabric.forwarding`."""

    def __init__(self, scenario: Scenario, switch: int, plan: Forwarding) -> None:
        self.tree, self.switch, self.plan = scenario.tree, switch, plan
        self.is_hash = scenario.scheme.chooser is Chooser.HASH
        self.multiplier = hash_multiplier(scenario.seed, switch)
        self.cells: dict[tuple[int, bool], int] = {}

    def ingress(self, port: int, frame: bytes, length: int | None = None) -> list[Any]:
        packet = parse(frame)
        assert packet is not None
        host = host_of_ip(self.tree, packet.destination_ip)
        assert host is not None
        out = self.southbound(host) or self.northbound(host, packet)
        return [SimpleNamespace(egress_port=out, frame=frame)] if out else []

    def egress(self, pending: Pending, deq_qdepth: int = 0, deq_timedelta_us: int = 0) -> list[Transmit]:
        return [Transmit(pending.egress_port, pending.frame)]  # type: ignore[attr-defined]

    def southbound(self, host: int) -> int | None:
        tree, (major, minor) = self.tree, self.tree.position(self.switch)
        edge, pod = host // tree.half, host // tree.half**2
        match tree.tier(self.switch):
            case Tier.CORE:
                return pod + 1
            case Tier.AGG:
                return edge % tree.half + 1 if pod == major else None
            case Tier.EDGE:
                return host % tree.half + 1 if edge == tree.edge(major, minor) else None

    def northbound(self, host: int, packet: Any) -> int | None:
        is_edge = self.tree.tier(self.switch) is Tier.EDGE
        group = self.plan.group_of(self.switch, host // self.tree.half if is_edge else self.tree.pod_of_host(host))
        if group == NONE:
            return None
        index = self.plan.groups(self.switch)[group]
        slots = self.plan.schedule(self.switch, int(self.plan.group_schedule[index]))
        slot = (
            self.hashed(packet, len(slots)) if self.is_hash else self.next_slot(group, index, packet.is_ack, len(slots))
        )
        return self.tree.uplink_port(int(slots[slot]))

    def hashed(self, packet: Any, length: int) -> int:
        ips = packet.source_ip.to_bytes(4, "big") + packet.destination_ip.to_bytes(4, "big")
        digest = crc32(ips + bytes([17]) + packet.label.to_bytes(2, "big") + (4791).to_bytes(2, "big"))
        return (((digest * self.multiplier) & 0xFFFFFFFF) >> 16) * length >> 16

    def next_slot(self, group: int, index: int, is_ack: bool, length: int) -> int:
        cell = self.cells.get((group, is_ack), 0)
        slot = int(self.plan.group_start[index, int(is_ack)]) if cell == 0 else cell - 1
        slot = 0 if slot >= length else slot
        self.cells[group, is_ack] = (slot + 1) % length + 1
        return slot


def naive_switches(scenario: Scenario, failed: frozenset[int] = frozenset()) -> list[NaiveSwitch]:
    tree = scenario.tree
    plan = forwarding(tree, LinkState.without(tree, failed), scenario.scheme, scenario.seed)
    assert np.all(plan.first_group >= 0)
    return [NaiveSwitch(scenario, switch, plan) for switch in range(tree.switches)]
