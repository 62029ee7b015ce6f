"""Ports that share their switch's memory, on the virtual network, in the simulator, and plainly."""

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import ValidationError

from emulation.virtual import simulated
from fattree.errors import ExperimentError
from fattree.experiment.model import Scenario
from fattree.policies import POLICIES
from fattree.routes.buffers import refuse_unable_sharing
from sim import run
from tests import naive
from tests.parity import pausing, test_naive_against_sim, test_pauses, test_virtual_equals_simulator
from tests.parity.drawing import one_in, pairs
from tests.parity.engines import outcome_of
from tests.parity.pausing import LENIENT
from tests.parity.scenarios import HORIZON_PS, scenarios


@st.composite
def sharing(draw: Any, policy: str) -> Scenario:
    """Draw any scenario of switches with memory for few packets."""
    drawn = draw(scenarios(policy)).model_dump(exclude_unset=True)
    whole = drawn.get("packets", {}).get("payload_bytes", 4096) + 112
    drawn["fabric"] |= {
        "queue_bytes": draw(st.integers(1, 6)) * whole,
        "buffer": "shared",
        "buffer_alpha": draw(st.sampled_from((None, 1, 0.5, 1.777, 8))),
    }
    try:
        scenario = Scenario.model_validate(drawn)
        # A memory without room for a packet is refused, which the plain model does not ask.
        refuse_unable_sharing(scenario)
    except (ValidationError, ExperimentError):
        assume(False)
        raise

    return scenario


@pytest.mark.parametrize("policy", one_in(9, POLICIES))
@given(st.data())
@LENIENT
def test_drawn_memories_are_shared_alike_in_kernels_and_plainly(
    policy: str, data: st.DataObject
) -> None:
    test_naive_against_sim.assert_same(data.draw(sharing(policy)))


def incast(policy: str, **fabric: Any) -> Scenario:
    """Return senders to three receivers, two of them at one edge."""
    return Scenario.model_validate(
        {
            "policy": policy,
            "fabric": {"k": 4, "queue_bytes": 20_000, "buffer": "shared"} | fabric,
            "collective": {
                "matrix": "pairs",
                "message_bytes": 40 * 4096,
                "pairs": [(host, host % 3) for host in range(3, 16)],
            },
            "transport": {"recovery": "sack", "timer_floor_rtt": 30},
        }
    )


@pytest.mark.parametrize(
    ("alpha", "policy"), pairs([0.5, 1, 4], ["flow", "ofan", "jsq", "host_dr", "host_pkt_ar"])
)
def test_what_overflows_a_shared_memory_is_dropped_alike(policy: str, alpha: float) -> None:
    chosen = incast(policy, buffer_alpha=alpha)
    result = run(chosen)
    test_virtual_equals_simulator.assert_same(outcome_of(chosen), result)
    assert result.ports.dropped.sum() > 100
    network = naive.run(chosen, HORIZON_PS)
    assert test_naive_against_sim.of_sim(result) == test_naive_against_sim.of_naive(network)


@pytest.mark.parametrize(
    ("alpha", "headroom", "policy"),
    [
        (0.05, 113_000, "flow"),
        (4, 60_000, "rsq"),
        pytest.param(0.05, 113_000, "rsq", marks=pytest.mark.slow),
        pytest.param(0.5, 113_000, "flow", marks=pytest.mark.slow),
        pytest.param(0.5, 113_000, "rsq", marks=pytest.mark.slow),
        pytest.param(4, 60_000, "flow", marks=pytest.mark.slow),
    ],
)
def test_links_share_a_memory_and_are_paused_alike(
    policy: str, alpha: float, headroom: int
) -> None:
    # With little headroom packets are dropped; with a small alpha a link goes on when it has none.
    fabric = {
        "k": 4,
        "queue_bytes": headroom + 25_000,
        "headroom_bytes": headroom,
        "flow_control": "pfc",
        "buffer": "shared",
        "buffer_alpha": alpha,
    }
    outcome = test_pauses.assert_same(pausing.incast(policy, fabric=fabric))
    assert sum(port.pauses for port in outcome.ports) > 10
    assert (outcome.accounts.dropped > 0) == (headroom < 113_000)


@pytest.mark.parametrize("policy", ["host_pkt", "ofan", "jsq"])
def test_a_shared_memory_trims_alike_in_all_bodies(policy: str) -> None:
    """Data share the switch's memory; each port's lane for cut packets has its own."""
    tables = incast(policy).model_dump(exclude_unset=True)
    trimming = Scenario.model_validate(tables | {"transport": {"trimming": True}})
    result = run(trimming)
    assert result.ports.trimmed.sum() > 0
    # The limits of both differ: the longest queue is longer than its port's own part.
    assert result.ports.max_queue_bytes.max() > trimming.fabric.queue_bytes
    network = naive.run(trimming, HORIZON_PS)
    assert test_naive_against_sim.of_sim(result) == test_naive_against_sim.of_naive(network)
    test_virtual_equals_simulator.assert_same(outcome_of(trimming), result)
    programs = simulated.run(trimming)
    assert programs.done_ps.tolist() == result.done_ps.tolist()
    assert programs.ports.trimmed.tolist() == result.ports.trimmed.tolist()


@pytest.mark.parametrize(("queue_bytes", "fits"), [(1_139, 1), (1_140, 2), (1_141, 2)])
def test_a_lane_beside_shared_memory_is_as_long_as_a_ports_own_part(
    queue_bytes: int, fits: int
) -> None:
    """Room for two cut packets of 570 bytes, and a byte less."""
    tables = incast("host_pkt").model_dump(exclude_unset=True)
    tables["transport"] = {"trimming": True}
    tables["packets"] = {"payload_bytes": 512, "header_bytes": 62, "ack_bytes": 570}
    tables["fabric"] |= {"queue_bytes": queue_bytes, "buffer_alpha": 8}
    tables["collective"] |= {"message_bytes": 64 * 512}
    scenario = Scenario.model_validate(tables)
    network = naive.run(scenario, HORIZON_PS)
    assert test_naive_against_sim.of_sim(run(scenario)) == test_naive_against_sim.of_naive(network)
    longest = max(
        sum(before.departure_ps > cut.enqueued_ps for before in port.hurried[: number + 1])
        for port in network.ports.values()
        for number, cut in enumerate(port.hurried)
    )
    assert longest == fits
