"""Results as records, and by layer."""

import numpy as np
import pytest

from fattree.experiment.model import Collective, Fabric, Scenario
from fattree.shape.topology import SWITCH_LAYERS, FatTree
from sim import Result, run
from sim.runs.layers import by_layer


@pytest.fixture(scope="module")
def result() -> Result:
    return run(Scenario(policy="ofan", fabric=Fabric(k=4)), sample_ps=1_000_000)


def test_record_sums_up_the_ports(result: Result) -> None:
    record = result.record
    assert record.increase == record.cct_ps / record.bound_ps - 1
    assert record.max_queue_packets == record.max_queue_bytes / 4158 == max(record.max_queue_layers)
    assert record.packet_hops == result.host_packets.sum() + result.ports.packets.sum()
    assert record.transmissions >= record.packets == 16 * 256
    assert all(0 < use < 1 for use in record.utilisation_layers)


def test_arrays_have_a_row_per_flow_port_and_sample(result: Result) -> None:
    assert len(result.done_ps) == len(result.transmissions) == 16
    assert len(result.ports.packets) == 20 * 4
    assert result.series is not None
    assert result.series.longest.shape == (result.end_ps // 1_000_000, len(SWITCH_LAYERS))


@pytest.mark.parametrize("k", [2, 4, 8])
def test_ports_are_in_the_layer_that_they_lead_to(k: int) -> None:
    tree = FatTree(k)
    numbers = np.arange(tree.switches * k)
    names = {0: "E", 1: "A", 2: "C"}
    for layer, ports in zip(SWITCH_LAYERS, by_layer(tree, numbers), strict=True):
        for number in ports.ravel().tolist():
            switch, port = divmod(number, k)
            far = tree.neighbour(switch, port + 1)
            near_tier, far_tier = (
                min(node // tree.edges, 2) for node in (switch, far.switch if far else 0)
            )
            assert layer == f"{names[near_tier]}>{names[far_tier] if far else 'H'}"
    assert sum(ports.size for ports in by_layer(tree, numbers)) == len(numbers)


def test_host_links_carry_data_and_acks(result: Result) -> None:
    assert result.host_packets.min() >= 512
    assert result.host_bytes.min() >= 256 * (4158 + 64)


def test_without_samples_there_is_no_series() -> None:
    plain = run(Scenario(fabric=Fabric(k=2), collective=Collective(message_bytes=1)))
    assert plain.series is None
