"""ECMP: crc32 of the five-tuple times the switch's odd number picks the slot (decision 12)."""

from collections import Counter
from zlib import crc32

import pytest

from controller.fabric_controller import LinkChange
from fattree.routes.forwarding import hash_multiplier
from fattree.shape.addressing import host_ip
from tests.dataplane.rig import FabricRig, Rig, ack, changed, controller_of, data, rig, scenario


def slot(switch: int, five_tuple: bytes, length: int) -> int:
    """Return the slot of a five-tuple (seed 1)."""
    return ((crc32(five_tuple) * hash_multiplier(1, switch) % 2**32 >> 16) * length) >> 16


def five_tuple(
    bench: Rig, source: int, destination: int, protocol: int, ports: tuple[int, int]
) -> bytes:
    """Return the bytes that the hash reads."""
    ips = [host_ip(bench.tree, host).to_bytes(4, "big") for host in (source, destination)]
    return b"".join([*ips, bytes([protocol]), *(port.to_bytes(2, "big") for port in ports)])


@pytest.mark.parametrize("switch", [0, 3, 8, 13])
def test_the_slot_is_the_scaled_hash(switch: int) -> None:
    bench = rig(scenario("flow"), switch)
    slots = controller_of(scenario("flow")).forwarding().schedule(switch, 0).tolist()
    source, destination = (0, 15) if switch < 4 or switch < 10 else (15, 0)
    for label in range(0, 2**16, 997):
        uplink = slots[
            slot(switch, five_tuple(bench, source, destination, 17, (label, 4791)), len(slots))
        ]
        assert bench.port_of(data(bench.tree, source, destination, label)) == 3 + uplink


def test_a_label_keeps_its_path_whatever_the_packet() -> None:
    bench = rig(scenario("flow", k=8), 0)
    frames = [
        data(bench.tree, 0, 127, 77, psn, payload) for psn in (0, 9) for payload in (256, 1024)
    ]
    assert len({bench.port_of(frame) for frame in frames}) == 1


def test_acks_hash_their_own_addresses() -> None:
    bench = rig(scenario("flow"), 0)
    ports = [
        (bench.port_of(ack(bench.tree, 0, 15, n)), bench.port_of(data(bench.tree, 0, 15, n)))
        for n in range(40)
    ]
    assert all(a == d for a, d in ports)
    assert len({a for a, _ in ports}) == 2


def test_without_udp_both_ports_count_as_0() -> None:
    bench = rig(scenario("flow", k=8), 0)
    slots = controller_of(scenario("flow", k=8)).forwarding().schedule(0, 0).tolist()
    for protocol in range(1, 250, 7):
        if protocol in (4, 17):
            continue
        frame = changed(data(bench.tree, 0, 127), 23, bytes([protocol]))
        expected = slots[slot(0, five_tuple(bench, 0, 127, protocol, (0, 0)), 4)]
        assert bench.port_of(frame) == 5 + expected


def test_a_later_fragment_has_no_ports() -> None:
    bench = rig(scenario("flow", k=8), 0)
    slots = controller_of(scenario("flow", k=8)).forwarding().schedule(0, 0).tolist()
    expected = slots[slot(0, five_tuple(bench, 0, 127, 17, (0, 0)), 4)]
    ports = {
        bench.port_of(changed(data(bench.tree, 0, 127, label), 20, b"\0\1")) for label in range(50)
    }
    assert ports == {5 + expected}


def test_labels_spread_over_all_paths_evenly() -> None:
    """4,000 labels over 4 paths at k = 4: a share is 5 standard deviations off with p < 10^-5."""
    fabric = FabricRig(scenario("flow"))
    paths = Counter(
        tuple(hop[0] for hop in fabric.carry(0, data(fabric.tree, 0, 15, n))[0])
        for n in range(4000)
    )
    assert len(paths) == 4
    assert all(abs(count - 1000) < 5 * (4000 * 3 / 16) ** 0.5 for count in paths.values())


def test_weights_are_shares_of_the_labels() -> None:
    """One of four cores lost above agg 0: weights 3, 4, 4, 4.

    5 standard deviations, probability below 10^-5.
    """
    chosen = scenario("flow", k=8)
    bench = rig(chosen, 0)
    controller = controller_of(chosen)
    controller.start()
    bench.apply(controller.on_event(0, LinkChange(down=frozenset({16 * 8}))))
    ports = Counter(bench.port_of(data(bench.tree, 0, 127, 16 * n)) for n in range(4096))
    assert abs(ports[5] - 4096 * 3 / 15) < 5 * (4096 * 0.2 * 0.8) ** 0.5
    assert ports[5] < min(ports[6], ports[7], ports[8])
