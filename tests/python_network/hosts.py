"""The hosts of a virtual network: their agents, and the links that lead from them into the fabric.

A host's link has no queue: its flows pull, so that a packet is made when the link is free for it
(design, decision 3).
"""

from functools import cache, partial

import numpy as np

from emulation.outcomes.complaint import complaint
from emulation.outcomes.outcome import FlowResult
from emulation.virtual.events import ARRIVE, SEND, Push
from fattree.counters import SENDER_COUNTERS, kept
from fattree.experiment.model import Scenario
from fattree.experiment.pauses import lasting
from fattree.routes.demand import Demand
from fattree.routes.failures import Links
from fattree.routes.slow_links import FULL, Slow
from fattree.routes.standstill import Senders, Standing, standing
from fattree.shape.topology import FatTree, Level
from hostagent.build import endpoints, plans
from hostagent.endpoint import Departure
from hostagent.flow_plan import FlowPlan
from hostagent.transports.state import NEVER
from tests.python_network.wires import Wire, Wires


class Hosts:
    """All hosts of a scenario; their packets and wake-ups go to `push` as events.

    `done_ps` is the time at which each flow's sender knew that it was complete; `sent`, `received`
    and, on hosts' own links, `lost` count packets.
    """

    def __init__(self, demand: Demand, push: Push, wires: Wires) -> None:
        scenario = demand.scenario
        self.done_ps = [NEVER] * len(demand.flows)
        self.unfinished = len(demand.flows)
        self.sent = 0
        self.received = 0
        self.lost = 0
        self._tree: FatTree = scenario.tree
        self._push = push
        self._plans = plans(demand)
        self._machines = [
            range(machine, self._tree.hosts, self._tree.machines)
            for machine in range(self._tree.machines)
        ]
        self._endpoints = endpoints(demand, range(self._tree.hosts))

        # By class: data, ACK.
        self._sizes = (scenario.data_bytes, scenario.ack_bytes)
        self._latency_ps = scenario.latency_ps
        self._wires = [wires.of_host(host) for host in range(self._tree.hosts)]
        self._held_ps = [cache(partial(_held_ps, scenario, wire)) for wire in self._wires]

        self._free_ps = [0] * self._tree.hosts
        self._wake_ps = [NEVER] * self._tree.hosts
        # The pauses of hosts: how long those lasted that are over; since and until when the others
        # hold.
        self._pause_ps = lasting(scenario, Level.HOST).lasts_ps
        self._paused_ps = 0
        self._paused: dict[int, tuple[int, int]] = {}

        for host in range(self._tree.hosts):
            self._wake(host, 0)

    def receive(self, host: int, time_ps: int, frame: bytes) -> None:
        """Give a frame to a host."""
        self.received += 1
        flow = self._endpoints[host].receive(time_ps, frame)

        # Both ends report that a flow is complete; its sender's report counts.
        if flow is not None and self._plans[flow].source == host:
            self._note_done(flow, time_ps)

        self._wake_machine(host, time_ps)

    def _note_done(self, flow: int, time_ps: int) -> None:
        self.done_ps[flow] = time_ps
        self.unfinished -= 1

    def _wake_machine(self, host: int, now_ps: int) -> None:
        # A flow's end at one NIC of a machine lets flows of others begin.
        for nic in self._machines[self._tree.machine(host)]:
            self._wake(nic, now_ps)

    def _wake(self, host: int, now_ps: int) -> None:
        """Schedule the host's next wake-up: when its link is free and a packet may go.

        Or when a computation ends, even if the link is busy.
        """
        endpoint = self._endpoints[host]
        wake_ps = max(now_ps, min(endpoint.timer_ps(), self._sendable_ps(host)))

        # Only ever earlier: a later reason is found again when the earlier event has come.
        if wake_ps < self._wake_ps[host]:
            self._wake_ps[host] = wake_ps
            self._push(wake_ps, kind=SEND, node=host, port=0, payload=None)

    def _sendable_ps(self, host: int) -> int:
        _, until_ps = self._paused.get(host, (0, 0))
        return max(self._free_ps[host], self._endpoints[host].wake_ps(), until_ps)

    def heed(self, host: int, now_ps: int, is_pause: bool) -> None:
        """Pause a host, or let it continue."""
        since_ps, until_ps = self._paused.get(host, (now_ps, now_ps))
        if not is_pause or until_ps <= now_ps:
            self._paused_ps += min(now_ps, until_ps) - since_ps
            self._paused.pop(host, None)
            since_ps = now_ps

        if is_pause:
            self._paused[host] = since_ps, now_ps + self._pause_ps

        self._wake(host, now_ps)

    def paused_ps(self, now_ps: int) -> int:
        """Return the sum of the hosts' pauses until now."""
        return self._paused_ps + sum(
            min(now_ps, until_ps) - since_ps for since_ps, until_ps in self._paused.values()
        )

    def _held_ps_of(self, host: int, now_ps: int) -> int:
        """Return since when a pause holds a host, NEVER where none does."""
        since_ps, until_ps = self._paused.get(host, (NEVER, NEVER))
        return since_ps if until_ps > now_ps else NEVER

    def send(self, time_ps: int, host: int, _port: int, _payload: None) -> None:
        """End a host's due computations, send its due packets, and schedule its next wake-up."""
        # An event that an earlier event has overtaken: a heap's middle cannot be removed.
        if self._wake_ps[host] != time_ps:
            return

        self._wake_ps[host] = NEVER
        nics = self._machines[self._tree.machine(host)]
        while ended := [flow for nic in nics for flow in self._endpoints[nic].elapse(time_ps)]:
            for flow in ended:
                self._note_done(flow, time_ps)

        departure = (
            self._endpoints[host].send(time_ps) if self._sendable_ps(host) <= time_ps else None
        )
        if departure is not None:
            self.sent += 1
            wire = self._wires[host]
            # Both are asked: chance counts every packet, whatever else becomes of it.
            is_lost = wire.loses_next() | wire.is_down(time_ps)
            self.lost += is_lost
            if not is_lost:
                self._arrive(host, time_ps, departure)

            held_ps = self._held_ps[host](self._size(departure))[1]
            kept_ps = self._endpoints[host].kept_ps(departure.is_ack, departure.less)
            self._free_ps[host] = time_ps + max(held_ps, kept_ps)

        self._wake_machine(host, time_ps)

    def _size(self, departure: Departure) -> int:
        return self._sizes[departure.is_ack] - departure.less

    def _arrive(self, host: int, time_ps: int, departure: Departure) -> None:
        edge, port = self._tree.access(host)
        size = self._size(departure)
        self._push(
            time_ps + self._held_ps[host](size)[0] + self._latency_ps,
            kind=ARRIVE,
            node=edge,
            port=port,
            payload=(departure.frame, size, departure.is_urgent),
        )

    def converge(self, failed: Links, slow: Slow) -> None:
        """Tell hosts that choose routes which links to avoid or to use less from now on."""
        for endpoint in self._endpoints.values():
            if endpoint.routes:
                endpoint.routes.converge(failed, slow)

    def acknowledged(self, flow: int) -> int:
        """Return how many packets of a flow its sender knows to have arrived."""
        # With erasure coding more packets may be under way, and be acknowledged, than are needed.
        plan = self._plans[flow]
        acked: int = min(self._endpoints[plan.source].sender(flow).acked, plan.packets)
        return acked

    @property
    def progress(self) -> float:
        """Return the fraction of all packets that are acknowledged."""
        acked = sum(map(self.acknowledged, range(len(self._plans))))
        return acked / sum(plan.packets for plan in self._plans)

    def standing(self, now_ps: int, is_changing: bool) -> Standing:
        """Return how far the run is; `is_changing` where routes or links are about to change."""
        senders = [self._endpoints[plan.source].sender(plan.flow) for plan in self._plans]
        started_ps = np.array([self.started_ps(plan.flow) for plan in self._plans])
        done_ps = np.array(self.done_ps)
        return standing(
            now_ps,
            Senders(
                started_ps=started_ps,
                done_ps=done_ps,
                heard_ps=np.array([sender.heard_ps for sender in senders]),
                acked=np.array([sender.acked for sender in senders]),
                tries=np.array(
                    [self._endpoints[plan.source].tries(plan.flow) for plan in self._plans]
                ),
                computes=np.array([plan.packets == 0 for plan in self._plans]),
                held_ps=np.array([self._held_ps_of(plan.source, now_ps) for plan in self._plans]),
            ),
            is_changing,
        )

    def started_ps(self, flow: int) -> int:
        """Return when a flow could start."""
        return self._endpoints[self._plans[flow].source].started_ps(flow)

    @property
    def flow_results(self) -> tuple[FlowResult, ...]:
        """Return the results of every flow."""
        return tuple(map(self._flow_result, self._plans))

    def _flow_result(self, plan: FlowPlan) -> FlowResult:
        sender = self._endpoints[plan.source].sender(plan.flow)
        return FlowResult(
            flow=plan.flow,
            source=plan.source,
            destination=plan.destination,
            packets=plan.packets,
            planned_ps=plan.start_ps,
            start_ps=self.started_ps(plan.flow),
            first_ps=sender.first_ps,
            done_ps=self.done_ps[plan.flow],
            **kept(SENDER_COUNTERS, sender),
        )

    def complaint(self, unroutable: int, misdirected: int, highest_port: int) -> str:
        """Return a line about incomplete flows and packets without a port (`complaint`)."""
        waiting = [
            (plan.source, plan.destination)
            for plan, done_ps in zip(self._plans, self.done_ps, strict=True)
            if done_ps == NEVER
        ]
        return complaint(
            self._tree,
            waiting,
            unroutable=unroutable,
            misdirected=misdirected,
            highest_port=highest_port,
        )


def _held_ps(scenario: Scenario, wire: Wire, size: int) -> tuple[int, int]:
    """Return how long so many bytes hold a host's link: alone, and with the gap."""
    # It is slow all the time or never.
    share = wire.paces[0].share if wire.paces else FULL
    gap = scenario.packets.gap_bytes
    return scenario.tx_ps(size, share=share), scenario.tx_ps(size + gap, share=share)
