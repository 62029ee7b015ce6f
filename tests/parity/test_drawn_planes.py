"""Ports that are down while planes are drawn: other ports of the host carry their packets.

Kernels, programs over bytes and the plain model agree to the ps; closed forms have the times.
"""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import sim
from emulation.virtual.simulated import run as run_programs
from fattree.errors import ExperimentError, FabricError, FailureError
from fattree.experiment.model import Fabric, Scenario
from fattree.shape.addressing import host_name
from sim.arrays.network import build
from sim.errors import SimulationError
from sim.gpu.engine import refuse_unable
from tests import naive
from tests.parity.scenarios import HORIZON_PS
from tests.parity.test_naive_against_sim import of_naive, of_sim
from tests.parity.test_programs_equal_kernels import assert_same

LEAVES = {"edges_per_pod": 2, "hosts_per_edge": 2, "aggs_per_pod": 2}
MRC = {"recovery": "sack", "congestion": "nscc", "trimming": True}
TRANSPORTS: tuple[dict[str, Any], ...] = (
    {"recovery": "erasure"},
    {"recovery": "sack"},
    {"recovery": "sack", "packets_per_ack": 4},
    {"recovery": "sack", "congestion": "dcqcn"},
    {"recovery": "go_back_n", "reorder_packets": 16},
    MRC,
)
POLICIES = ("mrc", "mrc_srv6", "ofan", "host_dr", "host_pkt_ar", "uet_bitmap", "flow", "themis")
# A data packet's slot on a port of 100 Gb/s, and the ports of a machine.
PORTS = 8
# Packets of each part of the one message below, and bytes of a packet's payload.
PART = 700
PAYLOAD = 4096


def drawn(*events: dict[str, Any], use: str = "draw", **tables: Any) -> Scenario:
    """Return a scenario of two planes of leaves; `tables` replace its own."""
    fabric = {**LEAVES, "planes": 2, "plane_use": use, **tables.pop("fabric", {})}
    plain = {"policy": "mrc_srv6", "transport": MRC, "collective": {"matrix": "permutation"}}
    failures = {"events": list(events), "convergence_rtt": float("inf")}
    return Scenario.model_validate({**plain, **tables, "fabric": fabric, "failures": failures})


def down(host: str, at_ns: float = 0, up_ns: float | None = None) -> dict[str, Any]:
    return {"host": host, "down_ns": at_ns, "up_ns": up_ns}


def alone(*events: dict[str, Any], use: str = "draw", **fabric: Any) -> Scenario:
    """Return a message of the first machine to one below another leaf, over eight ports."""
    return drawn(
        *events,
        use=use,
        policy="ofan",
        fabric={"planes": PORTS, "rate_gbps": 100, **fabric},
        collective={
            "matrix": "pairs",
            "pairs": [[0, 2]],
            "message_bytes": PORTS * PART * PAYLOAD,
        },
        transport={"recovery": "sack", "random_phases": False, "congestion": "fixed"},
    )


def data_of_ports(result: sim.Result, packets: int = PORTS * PART) -> list[int]:
    """Return how many data packets each port of the first machine has sent: it sends no ACKs."""
    machines = result.scenario.tree.machines
    sent: list[int] = result.host_packets[::machines].tolist()
    assert sum(sent) >= packets
    return sent


@pytest.mark.parametrize("transport", TRANSPORTS, ids=str)
def test_with_all_ports_up_drawing_is_spraying(transport: dict[str, Any]) -> None:
    for policy in POLICIES:
        results = [
            sim.run(drawn(use=use, policy=policy, transport=transport, fabric={"planes": 3}))
            for use in ("draw", "spray")
        ]
        sprayed = of_sim(results[1])
        assert of_sim(results[0]) == sprayed


def test_a_port_of_eight_costs_an_eighth() -> None:
    whole = sim.run(alone(use="spray"))
    lost = sim.run(alone(down("h0_0_0")))
    slot_ps = whole.scenario.slot_ps
    # Behind the last packet there is the same empty way. Seven ports take eight parts in turn.
    assert lost.record.cct_ps - whole.record.cct_ps == PART // 7 * slot_ps
    assert data_of_ports(lost) == [0, *[PART * 8 // 7] * 7]
    assert lost.record.lost_to_failure == 0


@pytest.mark.parametrize("slots", [70, 350])
def test_a_port_lost_in_mid_run_costs_an_eighth_of_the_rest(slots: int) -> None:
    whole = sim.run(alone(use="spray"))
    slot_ps = whole.scenario.slot_ps
    lost = sim.run(alone(down("h0_0_0", slots * slot_ps / 1000)))
    assert lost.record.cct_ps - whole.record.cct_ps == (PART - slots) // 7 * slot_ps
    sent = data_of_ports(lost)
    # A packet that starts at that instant leaves by another port. ACKs to the port are lost.
    assert sent == [slots, *[slots + (PART - slots) * 8 // 7] * 7]
    assert lost.host_lost == 0 < lost.record.lost_to_failure


@pytest.mark.parametrize(("late_ps", "sent"), [(-1, 70), (0, 70), (1, 71)])
def test_the_instant_decides(late_ps: int, sent: int) -> None:
    slot_ps = alone().slot_ps
    result = sim.run(alone(down("h0_0_0", (70 * slot_ps + late_ps) / 1000)))
    assert data_of_ports(result)[0] == sent
    assert result.host_lost == 0


def test_a_port_that_is_back_sends_its_own_packets_again() -> None:
    slot_ps = alone().slot_ps
    result = sim.run(alone(down("h0_0_0", 70 * slot_ps / 1000, 140 * slot_ps / 1000)))
    sent = data_of_ports(result)
    # In 70 slots others have sent 70 packets of its part.
    assert sent[0] == PART - 70
    assert sum(sent) == PORTS * PART
    assert max(sent) == PART + 70 // 7


def test_a_port_of_the_receiver_is_known_half_a_round_trip_later() -> None:
    scenario = alone(down("h0_1_0", 20_000))
    result = sim.run(scenario)
    # Packets are lost that start on their last link from the outage on, and left before the news.
    travelled_ps = scenario.zero_load_rtt_ps // 2
    last_ps = scenario.tx_ps(scenario.data_bytes) + scenario.fabric.latency_ns * 1000
    on_the_way = (travelled_ps + 3 * last_ps) / scenario.slot_ps
    assert abs(result.record.lost_to_failure - on_the_way) <= 2
    assert result.record.cct_ps < 1.16 * sim.run(alone(use="spray")).record.cct_ps


def test_without_a_plane_for_both_packets_wait_as_sprayed_ones() -> None:
    # Ports that are down in different planes: of two planes none is left, a third is.
    events = [down("h0_0_0", 0, 40_000), down("h1_1_0", 0, 60_000)]
    pair = {"matrix": "pairs", "pairs": [[0, 2]], "message_bytes": 100 * PAYLOAD}
    two = sim.run(drawn(*events, collective=pair))
    assert two.record.cct_ps >= 40_000_000
    three = drawn(down("h0_0_0"), down("h1_1_0"), fabric={"planes": 3}, collective=pair)
    assert sim.run(three).record.cct_ps < 40_000_000


@pytest.mark.parametrize(
    ("scenario", "error", "message"),
    [
        (drawn(down("h0_0_0"), use="spray"), FailureError, 'plane_use = "draw" has'),
        (drawn(down("h0_0_0"), use="keep"), FailureError, "never comes up again"),
        (drawn(down("h0_0_0"), down("h1_0_0")), FailureError, "have no plane in which"),
        (drawn(down("h0_0_0"), down("h1_1_0")), FailureError, "have no plane in which"),
        (
            drawn(transport={"recovery": "go_back_n"}),
            ExperimentError,
            "overtake each other in several planes",
        ),
    ],
)
def test_no_plane_and_no_order_are_refused(
    scenario: Scenario, error: type[FabricError], message: str
) -> None:
    with pytest.raises(error, match=message):
        # Each machine sends to another: some pair has the ports.
        for seed in range(5):
            sim.run(scenario.model_copy(update={"seed": seed}))


def test_a_gpu_refuses_it() -> None:
    with pytest.raises(SimulationError, match='plane_use = "draw"'):
        refuse_unable(build(drawn()).world)


@pytest.mark.parametrize("policy", POLICIES)
def test_programs_move_the_same_packets(policy: str) -> None:
    events = [down("h0_0_0", 2_000, 6_000), down("h1_1_1", 2_500), down("h2_0_1", 3_000)]
    for transport in (MRC, TRANSPORTS[0]):
        scenario = drawn(*events, policy=policy, transport=transport, fabric={"planes": 3})
        assert_same(run_programs(scenario), sim.run(scenario))


def test_ports_that_pause_drop_nothing() -> None:
    scenario = drawn(
        down("h0_0_0", 2_000),
        down("h1_1_1", 3_000, 9_000),
        policy="flow",
        fabric={"planes": 3, "flow_control": "pfc", "queue_bytes": 400_000},
        transport={"recovery": "erasure"},
        collective={
            "matrix": "pairs",
            "pairs": [[0, 3], [1, 3], [2, 3]],
            "message_bytes": 1_000_000,
        },
    )
    result = sim.run(scenario)
    assert result.record.dropped == 0 < result.host_paused_ps
    assert run_programs(scenario).done_ps.tolist() == result.done_ps.tolist()


def test_threads_do_the_same() -> None:
    scenario = drawn(down("h0_0_0", 2_000), fabric={"planes": 3, "k": 4, **dict.fromkeys(LEAVES)})
    runs = [sim.run(scenario, threads=threads) for threads in (1, 3)]
    assert runs[0].done_ps.tolist() == runs[1].done_ps.tolist()


@st.composite
def outages(draw: Any, fabric: Fabric) -> Sequence[dict[str, Any]]:
    """Draw outages of ports: short and long ones, some that flap, some for good."""
    events = []
    for _ in range(draw(st.integers(1, 3))):
        at_ns = draw(st.sampled_from((0, 500, 1_000, 2_000, 3_000, 7_321)))
        event = down(host_name(fabric.tree, draw(st.integers(0, fabric.tree.hosts - 1))), at_ns)
        lasts_ns = draw(st.sampled_from((None, 100, 500, 2_000, 9_000)))
        if lasts_ns:
            event["up_ns"] = at_ns + lasts_ns
            if draw(st.booleans()):
                event |= {"times": 3, "every_ns": lasts_ns + draw(st.sampled_from((1, 700)))}
        events.append(event)
    return events


@st.composite
def drawn_scenarios(draw: Any) -> Scenario:
    counts = draw(st.sampled_from(({"k": 4, **dict.fromkeys(LEAVES)}, LEAVES)))
    fabric = {**counts, "planes": draw(st.sampled_from((2, 3, 4))), "plane_use": "draw"}
    transport = draw(st.sampled_from(TRANSPORTS))
    collective = draw(
        st.sampled_from(
            (
                {"matrix": "permutation", "message_bytes": 90_000},
                {"matrix": "all_reduce", "algorithm": "ring", "message_bytes": 200_000},
                {"matrix": "all_to_all", "message_bytes": 20_000},
                {"matrix": "pairs", "pairs": [[0, 1], [1, 0], [2, 0]], "message_bytes": 333_333},
            )
        )
    )
    return drawn(
        *draw(outages(Fabric.model_validate(fabric))),
        policy=draw(st.sampled_from((*POLICIES, "subflow"))),
        seed=draw(st.integers(0, 99)),
        fabric=fabric,
        transport=transport,
        collective=collective,
    )


def assert_all_same(scenario: Scenario) -> None:
    try:
        result = sim.run(scenario)
    except (FailureError, ExperimentError):
        assume(False)
    assert of_sim(result) == of_naive(naive.run(scenario, HORIZON_PS))
    assert run_programs(scenario).done_ps.tolist() == result.done_ps.tolist()


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(drawn_scenarios())
def test_random_outages_move_the_same_packets(scenario: Scenario) -> None:
    assert_all_same(scenario)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(drawn_scenarios())
def test_many_random_outages_move_the_same_packets(scenario: Scenario) -> None:
    assert_all_same(scenario)


def test_no_value_is_retired_for_a_port() -> None:
    # Without it all sixteen values of the part would rest, and probes alone leave.
    scenario = alone(down("h0_1_0", 20_000)).model_copy(update={"policy": "mrc_srv6"})
    result = sim.run(scenario)
    again = int(result.transmissions.sum()) - PORTS * PART
    assert again <= result.record.lost_to_failure + 5


@pytest.mark.parametrize(("planes", "payload", "senders"), [(2, 256, 40), (3, 256, 100)])
def test_the_bound_lets_a_busier_plane_shed_packets(
    planes: int, payload: int, senders: int
) -> None:
    # The first plane's part of each message has a packet more.
    chosen = drawn(
        down("h0_1_0"),
        policy="mrc",
        fabric={"hosts_per_edge": 8, "aggs_per_pod": 8, "planes": planes, "latency_ns": 1},
        packets={"payload_bytes": payload},
        collective={
            "matrix": "pairs",
            "message_bytes": planes * payload + 1,
            "pairs": [(0, host) for host in range(8, 16)] * senders,
        },
        transport={"recovery": "sack"},
    )
    result = sim.run(chosen)
    assert result.cct_ps >= result.bound_ps > result.cct_ps // 2


def test_a_leaf_lost_for_good_leaves_its_machines_the_other_planes() -> None:
    ports = drawn(*(down(f"h1_0_{host}", at_ns=3_000) for host in range(2)))
    leaf = drawn({"switch": "edge1_0", "down_ns": 3_000})
    ends = [sim.run(chosen).done_ps.tolist() for chosen in (ports, leaf)]
    assert all(done_ps for done_ps in ends[1])
    assert run_programs(leaf).done_ps.tolist() == ends[1]
    both = drawn(*({"switch": f"edge{plane}_0", "down_ns": 3_000} for plane in range(2)))
    with pytest.raises(FailureError, match="have no plane"):
        sim.run(both)


@pytest.mark.parametrize(
    ("events", "is_hinted"),
    [([down("h0_0_0")], True), ([down("h0_0_0"), down("h1_0_0")], False)],
)
def test_drawing_is_proposed_where_it_helps(events: list[dict[str, Any]], is_hinted: bool) -> None:
    with pytest.raises(FailureError) as refused:
        sim.run(drawn(*events, use="spray"))

    assert ('fabric.plane_use = "draw" has' in str(refused.value)) is is_hinted
