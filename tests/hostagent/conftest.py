"""Senders as plain objects, with the rules of the default scenario."""

from types import SimpleNamespace

import pytest

from fattree.experiment.model import LoadBalancer, Scenario, Transport
from hostagent.rules import rules
from hostagent.transports import labels, transport
from hostagent.transports.sack import acknowledge
from hostagent.transports.state import PACKET, SENDER, Rules, blank

GAP_PS = 41_780


class Sender:
    """One flow, its ring of packets and its rules; time is the caller's."""

    def __init__(self, scenario: Scenario, packets: int = 16, gap_ps: int = GAP_PS) -> None:
        self.rules: Rules = rules(scenario)
        self.total = 0
        self.packets = [
            blank(PACKET) for _ in range(transport.ring_length(self.rules, packets, gap_ps))
        ]
        self.state: SimpleNamespace = blank(SENDER)
        transport.start(self.state, self.rules, 7, packets, gap_ps, 0, 6, 0, 1)
        labels.start(self.state, self.rules)

    def ready_ps(self) -> int:
        return int(transport.ready_ps(self.state, self.rules, self.packets))

    def send(self, now_ps: int | None = None) -> tuple[int, int]:
        """Send when ready, or at a given time; return the packet number and its label."""
        at_ps = self.ready_ps() if now_ps is None else now_ps
        label = labels.next_label(self.state, self.state, self.rules, self.packets, at_ps)
        psn = transport.next_psn(self.state, self.state, self.rules, self.packets, label, at_ps)
        return psn, label

    def ack(
        self,
        psn: int,
        now_ps: int,
        marked: bool = False,
        held: tuple[int, ...] | None = None,
        total: int | None = None,
        label: int | None = None,
    ) -> bool:
        """Let an ACK of `psn` arrive; with SACK it reports `held`, by default `psn` alone.

        `total` is the receiver's count, by default one more than the last, `label` by default that
        of the last copy.
        """
        self.total = self.total + 1 if total is None else total
        label = self.packets[psn % len(self.packets)].label if label is None else label
        labels.on_ack(self.state, self.rules, label, marked, now_ps)
        if self.rules.recovery:
            for number in (psn,) if held is None else held:
                acknowledge(self.state, self.packets, number)
        return bool(
            transport.on_ack(
                self.state,
                self.state,
                self.rules,
                self.packets,
                psn,
                self.total,
                label=label,
                marked=marked,
                now_ps=now_ps,
            )
        )

    def nack(self, psn: int, now_ps: int, held: tuple[int, ...] = ()) -> bool:
        """Let a NACK of `psn` arrive; with SACK it reports `held`, else the total of ACKs."""
        label = self.packets[psn % len(self.packets)].label
        labels.on_nack(self.state, self.rules, label, now_ps)
        for number in held:
            acknowledge(self.state, self.packets, number)
        return bool(
            transport.on_nack(
                self.state, self.state, self.rules, self.packets, psn, self.total, now_ps
            )
        )


@pytest.fixture
def erasure() -> Sender:
    return Sender(Scenario())


@pytest.fixture
def sack() -> Sender:
    return Sender(Scenario(transport=Transport(recovery="sack", sack_threshold=3)))


@pytest.fixture
def trimming() -> Sender:
    return Sender(Scenario(transport=Transport(recovery="sack", sack_threshold=3, trimming=True)))


@pytest.fixture
def mswift() -> Sender:
    return Sender(Scenario(transport=Transport(recovery="sack", congestion="mswift")), packets=400)


@pytest.fixture
def plb() -> Sender:
    return Sender(Scenario(policy="host_flowlet_ar"), packets=400)


@pytest.fixture
def reps() -> Sender:
    return Sender(
        Scenario(policy="host_pkt_ar", load_balancer=LoadBalancer(freeze_us=10)), packets=400
    )


@pytest.fixture
def bitmap() -> Sender:
    return Sender(Scenario(policy="uet_bitmap"), packets=400)
