"""PRIME: each tier reads its own byte of the label (UDP source port)."""

import pytest

from controller.fabric_controller import LinkChange
from tests.dataplane.rig import FabricRig, ack, changed, controller_of, data, rig, scenario

LABELS = (0, 1, 2, 3, 7, 0x0100, 0x0201, 0x0302, 0x1234, 0xFFFF, 0xFF00, 0x00FF)


@pytest.mark.parametrize("k", [4, 6, 8])
@pytest.mark.parametrize("make", [data, ack])
def test_an_edge_reads_the_lower_byte(k: int, make: object) -> None:
    bench = rig(scenario("prime", k=k), 0)
    build = data if make is data else ack
    frames = [build(bench.tree, 0, bench.tree.hosts - 1, label) for label in LABELS]
    wanted = [k // 2 + 1 + label % 256 % (k // 2) for label in LABELS]
    assert [bench.port_of(frame) for frame in frames] == wanted


@pytest.mark.parametrize("k", [4, 6, 8])
def test_an_agg_reads_the_upper_byte(k: int) -> None:
    chosen = scenario("prime", k=k)
    bench = rig(chosen, chosen.tree.agg(0, 1))
    frames = [data(bench.tree, 0, bench.tree.hosts - 1, label) for label in LABELS]
    wanted = [k // 2 + 1 + label // 256 % (k // 2) for label in LABELS]
    assert [bench.port_of(frame) for frame in frames] == wanted


def test_the_two_bytes_name_the_path() -> None:
    fabric = FabricRig(scenario("prime", k=6))
    paths = {
        tuple(hop[0] for hop in fabric.carry(0, data(fabric.tree, 0, 53, agg << 8 | edge))[0])
        for edge in range(3)
        for agg in range(3)
    }
    assert len(paths) == 9


def test_the_parts_of_lost_uplinks_go_to_those_that_are_left() -> None:
    chosen = scenario("prime", k=8)
    bench = rig(chosen, 0)
    controller = controller_of(chosen)
    controller.start()
    bench.apply(controller.on_event(0, LinkChange(down=frozenset({1}))))
    ports = [bench.port_of(data(bench.tree, 0, 127, label)) for label in range(4)]
    assert ports == [5, 7, 8, 5]


def test_what_has_no_udp_takes_the_first_slot() -> None:
    bench = rig(scenario("prime", k=8), 0)
    frames = [changed(data(bench.tree, 0, 127, label), 23, b"\x06") for label in LABELS]
    assert {bench.port_of(frame) for frame in frames} == {5}
