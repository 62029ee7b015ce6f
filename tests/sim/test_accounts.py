"""A run that does not add up is reported as a fault, wherever packets came from or went."""

from dataclasses import replace

import numpy as np
import pytest

from fattree.errors import PhysicsError
from fattree.experiment.model import Scenario
from sim import run
from sim.sweeps.accounts import arrived, handled, refuse_impossible

RESULT = run(Scenario.model_validate({"policy": "ofan", "fabric": {"k": 4}}))


def test_switches_handle_what_comes_but_for_what_is_under_way() -> None:
    under_way = arrived(RESULT) - handled(RESULT)
    # The run ends with an ACK: whatever else is left are ACKs of other hosts.
    assert under_way.min() >= 0 and under_way.sum() < handled(RESULT).sum() / 100


def test_a_packet_from_nowhere_is_a_fault() -> None:
    more = RESULT.ports.packets.copy()
    more[0] += (arrived(RESULT) - handled(RESULT))[0] + 1
    with pytest.raises(PhysicsError, match="edge0_0 has sent on and dropped more packets than"):
        refuse_impossible(replace(RESULT, ports=replace(RESULT.ports, packets=more)))


def test_a_packet_that_a_failure_took_does_not_arrive() -> None:
    lost = RESULT.ports.lost_to_failure + RESULT.ports.packets
    with pytest.raises(PhysicsError, match="more packets than have come"):
        refuse_impossible(replace(RESULT, ports=replace(RESULT.ports, lost_to_failure=lost)))


def test_a_host_above_its_rate_is_a_fault() -> None:
    busy = RESULT.host_bytes.max() * 8 * 1_000 // RESULT.scenario.fabric.rate_gbps
    with pytest.raises(PhysicsError, match="keeps its link busy"):
        refuse_impossible(replace(RESULT, end_ps=int(np.int64(busy) // 2)))


def test_acks_may_be_as_long_as_data() -> None:
    packets = {"payload_bytes": 938, "ack_bytes": 1_000}
    run(Scenario.model_validate({"policy": "ofan", "fabric": {"k": 2}, "packets": packets}))
