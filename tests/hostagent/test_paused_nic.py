"""A host's link that a switch pauses: frames as bytes over a pair of sockets, time in our hands."""

import socket
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from fattree.experiment.model import Scenario
from fattree.routes.demand import Demand
from hostagent.agents.nic import Nic, link_times
from hostagent.build import endpoints
from hostagent.transports.roce import parse
from ofan_p4.softswitch.ports.pause_frames import MOST_QUANTA, pause_frame

# At 1 Mbit/s a quantum is 512 us.
QUANTUM_PS = 512 * 10**6
SCENARIO = Scenario.model_validate(
    {
        "fabric": {"k": 2, "rate_gbps": 0.001, "latency_ns": 1e6},
        "collective": {"matrix": "pairs", "pairs": ((0, 1),), "message_bytes": 20 * 4096},
        "transport": {"random_phases": False},
    }
)


@dataclass
class Sender:
    """A host that sends, and the switch's end of its link."""

    nic: Nic
    far: socket.socket
    now_ps: int = 0

    def run(self, until_ps: int) -> list[int]:
        """Let time pass; return when packets came to the far end."""
        came = []
        while (due_ps := self.nic.due_ps()) <= until_ps:
            self.now_ps = max(self.now_ps, due_ps)
            self.nic.act()
            came += [self.now_ps for _ in self._frames()]

        self.now_ps = until_ps
        return came

    def hear(self, frame: bytes) -> None:
        self.far.send(frame)
        self.nic.receive()

    def _frames(self) -> Iterator[bytes]:
        while True:
            try:
                frame = self.far.recv(1 << 16)
            except BlockingIOError:
                return

            assert parse(frame) is not None
            yield frame


@pytest.fixture
def sender() -> Iterator[Sender]:
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in (near, far):
        end.setblocking(False)

    endpoint = endpoints(Demand.of(SCENARIO), [0], 0)[0]
    senders: list[Sender] = []
    nic = Nic(near, endpoint, link_times(SCENARIO), lambda: senders[0].now_ps)
    senders.append(Sender(nic, far))
    yield senders[0]
    near.close()
    far.close()


def test_a_paused_host_sends_nothing_until_its_quanta_are_over(sender: Sender) -> None:
    slot_ps = sender.nic.times.slot_ps(is_ack=False)
    assert len(sender.run(5 * slot_ps)) == 5 - 1
    sender.hear(pause_frame(bytes(6), {0: 1000}))
    paused_ps = sender.now_ps

    # A packet that had begun before the pause arrives.
    behind = sender.run(paused_ps + 1000 * QUANTUM_PS)
    assert len(behind) == 2 and max(behind) <= paused_ps + slot_ps + SCENARIO.latency_ps
    after = sender.run(paused_ps + 1000 * QUANTUM_PS + 2 * slot_ps)
    first_ps = paused_ps + 1000 * QUANTUM_PS + sender.nic.times.on_wire_ps(is_ack=False)
    assert after[0] == first_ps + SCENARIO.latency_ps
    counts = sender.nic.counts
    sender.nic._settle()
    assert (counts.control, counts.paused_ps) == (1, 1000 * QUANTUM_PS)
    assert (counts.received, counts.foreign, counts.stale) == (0, 0, 0)


def test_a_host_goes_on_when_it_may_and_pauses_are_counted_once(sender: Sender) -> None:
    slot_ps = sender.nic.times.slot_ps(is_ack=False)
    sender.hear(pause_frame(bytes(6), {0: MOST_QUANTA}))
    assert sender.run(slot_ps) == []
    sender.hear(pause_frame(bytes(6), {0: MOST_QUANTA}))
    assert sender.run(7 * slot_ps) == []
    sender.hear(pause_frame(bytes(6), {0: 0}))

    first_ps = 7 * slot_ps + sender.nic.times.on_wire_ps(is_ack=False) + SCENARIO.latency_ps
    assert sender.run(9 * slot_ps)[0] == first_ps
    sender.nic._settle()
    assert sender.nic.counts.paused_ps == 7 * slot_ps


@pytest.mark.parametrize(
    "frame",
    [
        pause_frame(bytes(6), {3: MOST_QUANTA}),
        pause_frame(bytes(6), {0: MOST_QUANTA})[:33],
        bytes.fromhex("0180c2000001 020000000001 8808 0001 ffff").ljust(60, b"\0"),
        bytes.fromhex("020000000001 020000000001 8808 0101 0001 ffff").ljust(60, b"\0"),
    ],
)
def test_what_is_no_pause_of_its_priority_holds_nothing(sender: Sender, frame: bytes) -> None:
    sender.hear(frame)

    assert len(sender.run(5 * sender.nic.times.slot_ps(is_ack=False))) == 4
    assert (sender.nic.counts.control, sender.nic.counts.foreign) == (1, 0)
