"""The counts of the virtual network's ports."""

from fattree.experiment.model import Fabric, Scenario, Transport
from tests.python_network.ports import Port
from tests.python_network.wires import Wire


def test_a_port_cuts_data_that_find_no_room_and_drops_acks() -> None:
    scenario = Scenario(fabric=Fabric(queue_bytes=5_000), transport=Transport(trimming=True))
    port = Port(scenario, "E>A", far=1, far_port=1, wire=Wire())
    whole = port.offer(0, 4_158)
    cut = port.offer(0, 4_158)
    assert whole is not None and not whole.is_urgent
    assert cut is not None and cut.is_urgent and cut.size == scenario.ack_bytes
    while port.offer(0, scenario.ack_bytes):
        pass
    assert (port.counts["trimmed"], port.counts["dropped"]) == (1, 1)
    nack = port.offer(0, scenario.ack_bytes, is_urgent=True)
    assert nack is not None and nack.start_ps == cut.start_ps + 840
    assert (port.counts["trimmed"], port.counts["dropped"]) == (1, 1)
    # 13 ACKs fit behind the whole packet, and the lane has two.
    assert (port.packets, port.bytes) == (16, 4_158 + 15 * 64)
