"""The printed numbers of appendix B and section 8.2, and the packet size of theorem "pkt"."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fattree.demand.bounds import Timing, data_only_packets, plain_sum_ps
from fattree.experiment.model import Collective, Fabric, Packets, Scenario
from reproduction import theory
from sim import run
from sim.arrays.network import build
from sim.runs.engine import advanced
from sim.runs.standing import counted

DEFAULT = Scenario()
ALL_TO_ALL = Scenario(collective=Collective(matrix="all_to_all"))
BUFFER_PACKETS = 200


class TestLowerBounds:
    """Appendix B: "we get a lower bound of 17.05694 us"; "i_1 = 78".

    "it happens at the ACK for packet 179".
    """

    def test_permutation(self) -> None:
        timing = Timing.of(DEFAULT)
        assert (
            theory.permutation_bound_ps(DEFAULT, 256)
            == theory.permutation_bound_ps(DEFAULT)
            == 17_056_940
        )
        assert (data_only_packets(timing), theory.last_interleaved_ack(timing, 256)) == (
            78,
            179,
        )

    @pytest.mark.parametrize(
        ("packets", "slots", "acks"),
        [(1, 0, 0), (77, 76, 0), (78, 77, 0), (79, 78, 1), (256, 255, 178)],
    )
    def test_an_ack_goes_between_packets_from_the_79th_on(
        self, packets: int, slots: int, acks: int
    ) -> None:
        # 41,780 ps a packet with its gap, 840 an ACK; the last bit is out a gap earlier.
        assert theory.sent_ps(Timing.of(DEFAULT), packets) == 41_580 + slots * 41_780 + acks * 840

    def test_all_to_all_recursion_and_plain_sum(self) -> None:
        """One message to everybody: a host sends m' = (n - 1) m packets."""
        packets = (ALL_TO_ALL.tree.hosts - 1) * theory.packets_of(ALL_TO_ALL)
        recursion = theory.permutation_bound_ps(ALL_TO_ALL, packets)
        assert round(recursion / 1e5) == 13_918
        assert round(plain_sum_ps(Timing.of(ALL_TO_ALL), packets) / 1e5) == 13_646

    def test_hosts_send_when_the_formula_says(self) -> None:
        """Two opposite flows alone send their last packet then: no earlier, and hardly later."""
        for packets in (40, 78, 79, 200):
            pairs = Collective(
                matrix="pairs", pairs=((0, 15), (15, 0)), message_bytes=4096 * packets
            )
            case = Scenario(fabric=Fabric(k=4), collective=pairs, seed=3)
            begun_ps = theory.sent_ps(Timing.of(case), packets) - case.tx_ps(case.data_bytes)
            sent = [
                counted(advanced(build(case), begun_ps + late).flows).transmissions[0]
                for late in (-1, case.slot_ps + 17_000)
            ]
            assert sent[0] < packets == sent[1]


def cube_root_payload(message: float) -> float:
    """Return the best payload where queues are sqrt(m) packets: (2 H sqrt(D))^(2/3).

    To first order: for P >> H the bytes are D H / p + sqrt(D p), p = P - H; the derivative is 0
    where p^(3/2) = 2 H sqrt(D).
    """
    return float((2 * theory.HEADER_BYTES * np.sqrt(message)) ** (2 / 3))


class TestPacketSize:
    """Appendix G: minimise P (D/(P - H) + alpha).

    "zeroing the derivative yields" P - H = sqrt(D H / alpha).
    """

    @given(st.floats(1e4, 1e9), st.floats(20, 200), st.floats(1, 100))
    def test_nothing_near_is_better(self, message: float, header: float, queueing: float) -> None:
        best = theory.optimal_payload_bytes(message, header, queueing)
        least = theory.modelled_send_bytes(best, message, header, queueing)
        for factor in (0.5, 0.9, 1.1, 2):
            assert theory.modelled_send_bytes(best * factor, message, header, queueing) > least

    def test_bytes_in_numbers_by_hand(self) -> None:
        # Ten packets of 1,100 bytes, and five that wait.
        assert theory.modelled_send_bytes(1_000, 10_000, header=100, queueing=5) == 16_500

    def test_it_grows_with_the_root_and_with_random_spraying_with_the_cube_root(self) -> None:
        """Section 8.1: "optimal packet size only grows as D^(1/3) rather than sqrt(D)"."""
        assert theory.optimal_payload_bytes(64e6) / theory.optimal_payload_bytes(
            1e6
        ) == pytest.approx(8)
        assert cube_root_payload(64e6) / cube_root_payload(1e6) == pytest.approx(4)

    @pytest.mark.parametrize("message", [1e5, 1e6, 1e8])
    def test_the_cube_root_law_is_the_minimum_of_its_model(self, message: float) -> None:
        payloads = np.geomspace(100, 1e5, 20_001)
        model = message * theory.HEADER_BYTES / payloads + np.sqrt(message * payloads)
        best = payloads[model.argmin()]
        assert cube_root_payload(message) == pytest.approx(best, rel=1e-3)

    def test_the_modelled_time_has_its_minimum_at_the_optimum(self) -> None:
        times = {
            payload: theory.modelled_cct_ps(DEFAULT, payload) for payload in range(512, 9_000, 16)
        }
        fastest = min(times, key=times.__getitem__)
        assert fastest == pytest.approx(theory.optimal_payload_bytes(1 << 20), abs=16)

    def test_the_modelled_time_is_near_the_simulated_one(self) -> None:
        """Ofan, 1 MB: ten queued packets and the RTT explain the completion time to 15 %."""
        case = Scenario(packets=Packets(payload_bytes=2048))
        assert theory.modelled_cct_ps(case, 2048) == pytest.approx(run(case).cct_ps, rel=0.15)


class TestReordering:
    """Section 8.2: "5 q r / b".

    "ranges from 8 packets for ATA to 1,000 for the permutation matrix".
    """

    def test_printed_thresholds(self) -> None:
        assert theory.reordering_bound(BUFFER_PACKETS, 1) == 1_000
        assert round(theory.reordering_bound(BUFFER_PACKETS, 1 / 127)) == 8
