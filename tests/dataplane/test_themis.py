"""Themis: the flow's hash plus the packet's number is the number of the path, in two digits."""

from collections.abc import Iterable
from zlib import crc32

import pytest

from controller.fabric_controller import LinkChange
from tests.dataplane.rig import FabricRig, ack, changed, controller_of, data, rig, scenario
from tests.fattree.lookups import group_of

NUMBERS = (*range(70), 2**16 - 1, 2**16, 2**20 + 17, *range(2**24 - 40, 2**24))


def base(frame: bytes) -> int:
    """Return the upper 24 bits of the hash of a frame's five-tuple."""
    return crc32(frame[26:34] + frame[23:24] + frame[34:38]) >> 8


def slots_of(path_numbers: Iterable[int], divisor: int, slots: list[int]) -> list[int]:
    """Return the uplinks of paths by a switch that leaves out the digit below `divisor`."""
    return [slots[number % 2**24 // divisor % len(slots)] for number in path_numbers]


@pytest.mark.parametrize("k", [4, 6, 8])
@pytest.mark.parametrize("make", [data, ack])
def test_an_edge_takes_the_lower_digit(k: int, make: object) -> None:
    bench = rig(scenario("themis", k=k), 0)
    last = bench.tree.hosts - 1
    build = data if make is data else ack
    frames = [build(bench.tree, 0, last, 321, psn) for psn in NUMBERS]
    expected = slots_of((base(frames[0]) + psn for psn in NUMBERS), 1, list(range(k // 2)))
    assert [bench.port_of(frame) for frame in frames] == [k // 2 + 1 + slot for slot in expected]


@pytest.mark.parametrize("k", [4, 6, 8])
def test_an_agg_takes_the_upper_digit(k: int) -> None:
    chosen = scenario("themis", k=k)
    bench = rig(chosen, chosen.tree.agg(0, 1))
    last = bench.tree.hosts - 1
    frames = [data(bench.tree, 0, last, 321, psn) for psn in NUMBERS]
    expected = slots_of((base(frames[0]) + psn for psn in NUMBERS), k // 2, list(range(k // 2)))
    assert [bench.port_of(frame) for frame in frames] == [k // 2 + 1 + slot for slot in expected]


def test_weights_are_repetitions_in_the_schedule() -> None:
    """One of four cores lost above agg 0: weights 3, 4, 4, 4."""
    chosen = scenario("themis", k=8)
    bench = rig(chosen, 0)
    controller = controller_of(chosen)
    controller.start()
    bench.apply(controller.on_event(0, LinkChange(down=frozenset({16 * 8}))))
    state = controller.forwarding()
    slots = state.schedule(0, int(state.group_schedule[group_of(state, 0, 31)])).tolist()
    assert sorted(slots.count(uplink) for uplink in range(4)) == [3, 4, 4, 4]
    frames = [data(bench.tree, 0, 127, 9, psn) for psn in range(60)]
    expected = slots_of((base(frames[0]) + psn for psn in range(60)), 1, slots)
    assert [bench.port_of(frame) for frame in frames] == [5 + uplink for uplink in expected]


def test_as_many_packets_in_a_row_as_there_are_paths_take_each_once() -> None:
    fabric = FabricRig(scenario("themis", k=6))
    paths = [
        tuple(hop[0] for hop in fabric.carry(0, data(fabric.tree, 0, 53, 77, psn))[0])
        for psn in range(18)
    ]
    assert len(set(paths[:9])) == 9
    assert paths[9:] == paths[:9]


def test_flows_start_at_different_paths() -> None:
    bench = rig(scenario("themis", k=8), 0)
    assert len({bench.port_of(data(bench.tree, 0, 127, label)) for label in range(40)}) == 4


def test_what_is_not_rocev2_keeps_its_flows_path() -> None:
    bench = rig(scenario("themis", k=8), 0)
    frames = [changed(data(bench.tree, 0, 127, 9, psn), 36, b"\x12\xb8") for psn in range(9)]
    expected = 5 + base(frames[0]) % 4
    assert {bench.port_of(frame) for frame in frames} == {expected}
