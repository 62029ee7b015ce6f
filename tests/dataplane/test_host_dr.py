"""Host DR: hosts wrap packets to a waypoint.

Switches lead there, unwrap, and lead on (load balancers, "Host DR").
"""

import pytest

from controller.entries import Change, Entry, Kind
from fattree.shape.addressing import host_ip, switch_ip
from fattree.shape.topology import FatTree, Tier
from hostagent.packets import wrap
from tests.dataplane.rig import FabricRig, Rig, ack, changed, data, internet_sum, rig, scenario

TREE = FatTree(4)
OUTER_ECN, INNER_ECN, OUTER_TTL, INNER_TTL = 15, 35, 22, 42


@pytest.fixture(scope="module")
def fabric() -> FabricRig:
    """Return a whole fabric."""
    return FabricRig(scenario("host_dr"))


def tunnelled(frame: bytes, source: int, waypoint: int) -> bytes:
    """Return a frame wrapped to a switch."""
    return wrap(frame, host_ip(TREE, source), switch_ip(TREE, waypoint))


def core0(chosen: str = "host_dr") -> Rig:
    """Return the first core."""
    return rig(scenario(chosen), TREE.core(0, 0))


@pytest.mark.parametrize("make", [data, ack])
@pytest.mark.parametrize("core", range(2 * TREE.edges, TREE.switches))
def test_a_packet_goes_through_the_core_that_its_host_has_chosen(
    fabric: FabricRig, core: int, make: object
) -> None:
    frame = make(TREE, 1, 14)  # type: ignore[operator]
    hops, arrived = fabric.carry(1, tunnelled(frame, 1, core))
    assert [switch for switch, _ in hops if TREE.tier(switch) is Tier.CORE] == [core]
    assert len(hops) == 5
    assert arrived == changed(frame, 22, bytes([frame[22] - 3]))


@pytest.mark.parametrize("agg", [0, 1])
def test_inside_a_pod_the_waypoint_is_an_agg(fabric: FabricRig, agg: int) -> None:
    frame = data(TREE, 0, 3)
    hops, arrived = fabric.carry(0, tunnelled(frame, 0, TREE.agg(0, agg)))
    assert [switch for switch, _ in hops] == [0, TREE.agg(0, agg), 1]
    assert arrived == changed(frame, 22, bytes([frame[22] - 2]))


def test_under_one_edge_no_tunnel_is_needed(fabric: FabricRig) -> None:
    assert fabric.carry(0, data(TREE, 0, 1))[0] == [(0, 2)]


def test_without_a_waypoint_nothing_goes_up(fabric: FabricRig) -> None:
    assert fabric.carry(0, data(TREE, 0, 15)) == ([], None)


def test_a_group_leads_nowhere() -> None:
    bench = rig(scenario("host_dr"), 0)
    bench.session.write(
        (Change(Kind.INSERT, Entry("routes", ((10 << 24, 8),), "to_group", (0, 0, 1, 0, 0))),)
    )
    assert bench.port_of(data(TREE, 0, 15)) is None


def test_a_switch_leaves_tunnels_to_others_alone() -> None:
    frame = tunnelled(data(TREE, 0, 15), 0, TREE.core(0, 1))
    sent = rig(scenario("host_dr"), TREE.agg(0, 0)).through(frame)
    assert sent is not None
    assert (sent[0], sent[1][34:]) == (4, frame[34:])
    assert sent[1][OUTER_TTL] == frame[OUTER_TTL] - 1


@pytest.mark.parametrize(
    ("outer", "inner", "delivered"),
    [(3, 2, 3), (3, 1, 3), (2, 2, 2), (2, 3, 3), (0, 2, 2), (3, 0, None)],
)
def test_marks_survive_the_end_of_the_tunnel(outer: int, inner: int, delivered: int | None) -> None:
    plain = changed(data(TREE, 0, 15), OUTER_ECN, bytes([inner]))
    sent = core0().through(changed(tunnelled(plain, 0, TREE.core(0, 0)), OUTER_ECN, bytes([outer])))
    assert (None if sent is None else sent[1][OUTER_ECN]) == delivered
    assert sent is None or internet_sum(sent[1][14:34]) == 0xFFFF


@pytest.mark.parametrize(
    ("outer", "inner", "passes"), [(1, 64, True), (64, 2, True), (64, 1, False)]
)
def test_the_inner_ttl_counts_where_the_tunnel_ends(outer: int, inner: int, passes: bool) -> None:
    plain = changed(data(TREE, 0, 15), 22, bytes([inner]))
    sent = core0().through(changed(tunnelled(plain, 0, TREE.core(0, 0)), OUTER_TTL, bytes([outer])))
    assert (sent is not None) == passes


def test_a_broken_inner_checksum_is_not_repaired_by_unwrapping() -> None:
    frame = bytearray(tunnelled(data(TREE, 0, 15), 0, TREE.core(0, 0)))
    frame[INNER_TTL] ^= 1
    assert core0().through(bytes(frame)) is None


@pytest.mark.parametrize("length", range(14, 54))
def test_truncated_tunnels_are_dropped(length: int) -> None:
    assert _core().through(tunnelled(data(TREE, 0, 15), 0, TREE.core(0, 0))[:length]) is None


def test_a_tunnel_in_a_tunnel_is_opened_once() -> None:
    inner = tunnelled(data(TREE, 0, 15), 0, TREE.core(0, 1))
    sent = core0().through(tunnelled(inner, 0, TREE.core(0, 0)))
    assert sent is None


def test_other_programs_have_no_waypoints() -> None:
    assert core0("ofan").through(tunnelled(data(TREE, 0, 15), 0, TREE.core(0, 0))) is None


def test_the_byte_count_survives_unwrapping() -> None:
    bench = core0()
    for _ in range(2):
        bench.offer(tunnelled(data(TREE, 0, 15), 0, TREE.core(0, 0)), length=4158)
    bench.leave()
    assert sum(bench.session.read_register("queue_bytes")) == 4158


_CORES: list[Rig] = []


def _core() -> Rig:
    if not _CORES:
        _CORES.append(core0())
    return _CORES[0]
