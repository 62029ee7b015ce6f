"""Results as records and tables."""

import pytest

from fattree.experiment import Collective, Fabric, Scenario
from fattree.topology import SWITCH_LAYERS
from sim import Result, run


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


def test_tables_have_a_row_per_flow_port_layer_and_sample(result: Result) -> None:
    assert result.flow_table().height == 16
    assert result.port_table().height == 20 * 4
    assert result.layer_table().height == len(SWITCH_LAYERS)
    assert result.series_table().height == len(SWITCH_LAYERS) * (result.end_ps // 1_000_000)


def test_ports_are_in_the_layer_that_they_lead_to(result: Result) -> None:
    tree, rows = result.scenario.tree, result.port_table()
    layer = dict(zip(zip(rows["switch"], rows["port"], strict=True), rows["layer"], strict=True))
    assert layer[0, 1] == "E>H" and layer[0, 3] == "E>A"
    assert layer[tree.agg(0, 0), 1] == "A>E" and layer[tree.agg(0, 0), 4] == "A>C"
    assert layer[tree.core(0, 0), 1] == "C>A"


def test_host_links_carry_data_and_acks(result: Result) -> None:
    assert result.host_packets.min() >= 512
    assert result.host_bytes.min() >= 256 * (4158 + 64)


def test_without_samples_the_series_is_empty() -> None:
    plain = run(Scenario(fabric=Fabric(k=2), collective=Collective(message_bytes=1)))
    assert plain.series is None and plain.series_table().height == 0
