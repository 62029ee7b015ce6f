"""Byte counts of output ports, and the marks that follow, at every port under every program."""

import pytest

import p4src
from fattree.experiment.model import Scenario
from fattree.policies import POLICIES
from tests.dataplane.rig import Rig, ack, changed, data, internet_sum, rig, scenario

MARKING = {"ecn_percent": 10}
THRESHOLD = 80_000
ECN = 15


def queues(bench: Rig) -> dict[int, int]:
    """Return the bytes that the program counts at each port that is not empty."""
    return {
        port: count
        for port, count in enumerate(bench.session.read_register("queue_bytes"))
        if count
    }


def sent_after(bench: Rig, waiting: int, frame: bytes) -> bytes:
    """Return a southbound frame that finds so many bytes at port 1."""
    assert bench.offer(data(bench.tree, 15, 0), port=3, length=waiting) == 1
    assert bench.offer(frame, port=3) == 1
    sent = bench.leave(1)[1]
    bench.leave()
    return sent


@pytest.fixture(params=p4src.programs(), scope="module")
def edge(request: pytest.FixtureRequest) -> Rig:
    """Return edge0_0 under every program, marking above 80,000 bytes."""
    slug = next(policy.slug for policy in POLICIES.values() if policy.program == request.param)
    return rig(scenario(slug, load_balancer=MARKING), 0)


def test_a_port_counts_the_bytes_that_wait_there(edge: Rig) -> None:
    for length in (4158, 64, 1000):
        edge.offer(data(edge.tree, 15, 1), port=3, length=length)
    assert queues(edge) == {2: 5222}
    edge.leave(1)
    assert queues(edge) == {2: 5158}
    edge.leave()
    edge.leave()
    assert queues(edge) == {}


def test_dropped_packets_count_nowhere(edge: Rig) -> None:
    edge.offer(changed(data(edge.tree, 15, 1), 22, b"\1"), port=3)
    edge.offer(changed(data(edge.tree, 15, 1), 30, b"\xc0"), port=3)
    assert queues(edge) == {}


def test_an_empty_queue_heals_what_tail_drops_have_left(edge: Rig) -> None:
    edge.offer(data(edge.tree, 15, 1), port=3, length=9000)
    edge.waiting.clear()
    edge.through(data(edge.tree, 15, 1), port=3)
    assert queues(edge) == {}


@pytest.mark.parametrize(
    ("waiting", "is_marked"), [(0, False), (THRESHOLD, False), (THRESHOLD + 1, True)]
)
def test_data_that_finds_more_than_the_threshold_is_marked(
    edge: Rig, waiting: int, is_marked: bool
) -> None:
    sent = sent_after(edge, waiting, data(edge.tree, 15, 0))
    assert sent[ECN] & 3 == (3 if is_marked else 2)
    assert internet_sum(sent[14:34]) == 0xFFFF


def test_acks_are_never_marked(edge: Rig) -> None:
    assert sent_after(edge, 500_000, changed(ack(edge.tree, 15, 0), ECN, b"\2"))[ECN] == 2


@pytest.mark.parametrize("before", range(4))
def test_only_packets_that_can_be_marked_are(edge: Rig, before: int) -> None:
    sent = sent_after(edge, 500_000, changed(data(edge.tree, 15, 0), ECN, bytes([0xB8 | before])))
    assert sent[ECN] == 0xB8 | (3 if before else 0)


def test_marks_are_made_at_uplinks_too() -> None:
    bench = rig(scenario("host_pkt_ar"), 0)
    frame = data(bench.tree, 0, 15)
    port = bench.offer(frame, length=80_001)
    assert bench.offer(frame) == port
    assert bench.leave(1)[1][ECN] == 3
    assert bench.leave()[1][ECN] == 2


def test_without_a_threshold_nothing_is_marked() -> None:
    bench = rig(scenario("simple_rr"), 0)
    assert sent_after(bench, 799_999, data(bench.tree, 15, 0))[ECN] == 2


@pytest.mark.parametrize(
    ("chosen", "threshold"),
    [
        (scenario("host_flowlet_ar"), 400_000),
        (scenario("host_pkt_ar"), 80_000),
        (scenario("ofan"), 0),
        (scenario("ofan", load_balancer={"ecn_percent": 0.1}), 800),
        (scenario("host_pkt_ar", fabric={"queue_bytes": 0}), 80_000),
        (scenario("host_pkt_ar", fabric={"queue_bytes": 83_169}), 8_316),
    ],
    ids=["PLB", "REPS", "none", "option", "unlimited", "rounded down"],
)
def test_thresholds_follow_scheme_option_and_buffer(chosen: Scenario, threshold: int) -> None:
    (entry,) = rig(chosen, 0).entries("ecn")
    assert entry.arguments == (threshold,)
