"""NICs that put packets in order, beside the time of one flow below one edge, by hand."""

import pytest

import sim
from fattree.experiment.model import (
    Collective,
    Fabric,
    FailureEvent,
    Failures,
    Scenario,
    Transport,
)

# 4,158 bytes of data and 64 of an ACK over two links of 800 Gbit/s and 500 ns each; 20 bytes of gap
# behind each packet.
ROUND_TRIP = 2 * (41_580 + 500_000) + 2 * (640 + 500_000)
SLOT = 41_780
WINDOW = -(-ROUND_TRIP // SLOT)


def cct_ps(packets: int, reorder_packets: int, patience_rtt: float = 100, lost: bool = True) -> int:
    """Return the CCT of a flow; its first packet is lost if `lost`."""
    # The link is down for the first packet alone.
    outage = (FailureEvent(host="h0_0_0", down_ns=0, up_ns=1),)
    result = sim.run(
        Scenario(
            policy="flow",
            fabric=Fabric(k=4),
            collective=Collective(matrix="pairs", pairs=((0, 1),), message_bytes=packets * 4096),
            transport=Transport(
                recovery="go_back_n",
                reorder_packets=reorder_packets,
                reorder_timeout_rtt=patience_rtt,
                timer_floor_rtt=1000,
                random_phases=False,
            ),
            failures=Failures(events=outage if lost else ()),
        )
    )
    assert result.record.returns == lost
    return result.record.cct_ps


def test_a_flow_without_losses_takes_its_slots_and_a_round_trip() -> None:
    assert cct_ps(packets=9, reorder_packets=4, lost=False) == 8 * SLOT + ROUND_TRIP


@pytest.mark.parametrize("reorder_packets", [0, 1, 20, WINDOW - 2, WINDOW, 200])
def test_the_last_packet_is_beyond_and_has_the_first_sent_again(reorder_packets: int) -> None:
    # It leaves `room` + 1 slots after the first, and is heard of a round trip later. All is then
    # sent again, until the first packet's ACK shows that only the last is missing.
    again = min(reorder_packets + 1, WINDOW)
    asked = (reorder_packets + 1) * SLOT + ROUND_TRIP
    assert (
        cct_ps(packets=reorder_packets + 2, reorder_packets=reorder_packets)
        == asked + again * SLOT + ROUND_TRIP
    )


def test_a_gap_is_asked_for_by_the_first_packet_that_finds_it_too_old() -> None:
    # The second packet begins the gap, ten slots and a picosecond before anybody may complain.
    patience_rtt = (10 * SLOT + 1) / Scenario(fabric=Fabric(k=4)).zero_load_rtt_ps
    asked = 12 * SLOT + ROUND_TRIP
    # The kept packets are all there: the first packet alone was missing.
    assert cct_ps(packets=13, reorder_packets=64, patience_rtt=patience_rtt) == asked + ROUND_TRIP
