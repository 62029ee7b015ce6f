"""Pauses beside faults: four bodies, alike to the ps; and no drop on links that lose nothing."""

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

import sim
from emulation.errors import EmulationError
from emulation.outcomes.outcome import Outcome
from fattree.errors import FabricError
from fattree.experiment.model import Fabric, Scenario
from fattree.policies import POLICIES
from fattree.shape.addressing import host_name
from tests.naive.lossless import LosslessNetwork
from tests.parity.drawing import one_in, pairs
from tests.parity.engines import outcome_of
from tests.parity.pausing import (
    HORIZON_PS,
    LENIENT,
    all_of_naive,
    all_of_sim,
    assert_simulator_same,
    incast,
    of_naive,
    paused,
)
from tests.parity.scenarios import failures, slow_links
from tests.parity.test_pauses import MOST_TRANSMISSIONS, of_virtual

# Queues of a megabyte hold the headroom of any link that is drawn.
ROOMY = {"queue_bytes": 1_500_000, "headroom_bytes": None}
WATCHDOGS: tuple[dict[str, Any], ...] = (
    {},
    {"pause_watchdog_us": 2},
    {"pause_watchdog_us": 7.5, "pause_watchdog": "ignore"},
)


@st.composite
def acknowledged(draw: Any, policy: str) -> dict[str, Any]:
    """Draw a small fabric with buffers that pause, and ACKs that may be longer than data."""
    drawn: dict[str, Any] = draw(paused(policy)).model_dump(exclude_unset=True)
    payload = drawn["packets"]["payload_bytes"]
    drawn["packets"]["ack_bytes"] = draw(st.sampled_from((64, payload + 62, payload + 262)))
    return drawn


@st.composite
def faulty(draw: Any, policy: str) -> Scenario:
    """Draw faults of all kinds beside pauses: dead, lossy and slow links, storms, watchdogs."""
    drawn = draw(acknowledged(policy))
    tree = Fabric.model_validate(drawn["fabric"]).tree
    drawn["failures"] = draw(failures(tree)).model_dump(exclude_unset=True)
    drawn["fabric"] |= draw(st.sampled_from((ROOMY, {}, {})))
    drawn["fabric"] |= draw(st.sampled_from(WATCHDOGS))
    if draw(st.booleans()):
        at_ns = draw(st.sampled_from((0, 3_000, 9_999)))
        host = host_name(tree, draw(st.integers(0, tree.hosts - 1)))
        storm = {"host": host, "at_ns": at_ns, "until_ns": at_ns + draw(st.integers(1, 60_000))}
        drawn["failures"]["storms"] = [storm]

    return valid(drawn)


@st.composite
def slow_only(draw: Any, policy: str) -> Scenario:
    """Draw links that are slow and lose nothing, with the headroom of the closed form."""
    drawn = draw(acknowledged(policy))
    tree = Fabric.model_validate(drawn["fabric"]).tree
    slow = draw(st.lists(slow_links(tree), max_size=3))
    drawn["failures"] = {"degraded": [entry.model_dump(exclude_unset=True) for entry in slow]}
    drawn["fabric"] |= ROOMY | {"queue_bytes": draw(st.sampled_from((320_000, 700_000, 1_500_000)))}
    return valid(drawn)


def valid(drawn: dict[str, Any]) -> Scenario:
    try:
        return Scenario.model_validate(drawn)
    except ValidationError:
        assume(False)
        raise


def assert_all_alike(chosen: Scenario) -> Outcome | None:
    """Run a scenario on four bodies; return the virtual outcome, None where it is not run."""
    try:
        result = sim.run(chosen, horizon_ps=HORIZON_PS)
    except FabricError:
        return None
    except sim.UnfinishedError:
        with pytest.raises(TimeoutError):
            LosslessNetwork(chosen).run(HORIZON_PS)
        with pytest.raises(EmulationError):
            outcome_of(chosen, HORIZON_PS)
        return None

    if result.transmissions.sum() >= MOST_TRANSMISSIONS:
        return None

    network = LosslessNetwork(chosen)
    network.run(HORIZON_PS)
    assert all_of_sim(result) == all_of_naive(network)
    outcome = outcome_of(chosen, HORIZON_PS)
    assert of_virtual(outcome) == of_naive(network)
    assert sum(port.lost_to_failure for port in outcome.ports) == sum(
        server.lost for server in network.servers.values()
    )
    assert outcome.accounts.unaccounted == 0
    return outcome


FEW_POLICIES = one_in(6, POLICIES)


@pytest.mark.parametrize("policy", FEW_POLICIES)
@given(st.data())
@LENIENT
def test_drawn_faults_beside_pauses_are_alike(policy: str, data: st.DataObject) -> None:
    assert_all_alike(data.draw(faulty(policy)))


@pytest.mark.parametrize("policy", FEW_POLICIES)
@given(st.data())
@LENIENT
def test_slow_links_lose_nothing_with_acks_of_any_size(policy: str, data: st.DataObject) -> None:
    outcome = assert_all_alike(data.draw(slow_only(policy)))
    assert outcome is None or outcome.accounts.dropped == 0


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
@given(st.data())
@settings(LENIENT, max_examples=30)
def test_many_more_faults_are_alike(policy: str, data: st.DataObject) -> None:
    assert_all_alike(data.draw(faulty(policy)))
    outcome = assert_all_alike(data.draw(slow_only(policy)))
    assert outcome is None or outcome.accounts.dropped == 0


FAULTS: dict[str, dict[str, Any]] = {
    "slow": {"degraded": [{"link": "edge0_0-agg0_0", "rate": 0.1}]},
    "slow one way": {
        "degraded": [{"link": "edge0_0-agg0_1", "rate": 0.1, "direction": "up", "until_ns": 30_000}]
    },
    "lossy": {"losses": [{"link": "edge0_0-agg0_0", "share": 0.05}]},
    "dead": {
        "events": [{"link": "edge0_0-agg0_0", "down_ns": 5_000, "up_ns": 60_000}],
        "convergence_rtt": 1,
    },
    "storm": {"storms": [{"host": "h0_0_0", "at_ns": 5_000, "until_ns": 60_000}]},
}


PORTS: dict[str, tuple[str, dict[str, Any]]] = {
    f"{buffer}, {name}": (buffer, watchdog)
    for buffer in ("static", "shared")
    for name, watchdog in (("alone", {}), ("watchdog", {"pause_watchdog_us": 20}))
}


@pytest.mark.parametrize(("name", "port"), pairs([*FAULTS], [*PORTS], quick=2))
def test_an_incast_beside_a_fault_is_alike(name: str, port: str) -> None:
    buffer, watchdog = PORTS[port]
    fabric = {"k": 4, "queue_bytes": 300_000, "flow_control": "pfc", "buffer": buffer}
    chosen = incast(
        "ofan",
        fabric=fabric | watchdog,
        failures=FAULTS[name],
        collective={
            "matrix": "pairs",
            "message_bytes": 24 * 4096,
            "pairs": [(host, 0) for host in range(1, 16)],
        },
        transport={"recovery": "sack", "sack_threshold": 1000, "timer_floor_rtt": 30},
    )
    outcome = assert_all_alike(chosen)
    assert outcome is not None
    # Shared memory has room for the packets beside a dead link.
    assert sum(port.pauses for port in outcome.ports) > 0 or name == "dead"
    is_lossless = name in ("slow", "slow one way") or (name == "storm" and not watchdog)
    if is_lossless:
        assert outcome.accounts.dropped == outcome.accounts.lost == 0


def test_what_a_watchdog_drops_has_been_marked() -> None:
    chosen = incast(
        "host_pkt_ar",
        fabric={"k": 4, "queue_bytes": 150_000, "flow_control": "pfc", "pause_watchdog_us": 5},
        failures={"storms": [{"host": "h0_0_0", "at_ns": 4_000, "until_ns": 20_000}]},
        transport={"recovery": "sack", "timer_floor_rtt": 30},
    )
    outcome = assert_all_alike(chosen)
    assert outcome is not None and outcome.accounts.dropped > 0
    assert sum(port.marked for port in outcome.ports) > 0


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_chance_counts_transmissions_not_what_a_watchdog_drops(share: float) -> None:
    chosen = incast(
        "host_pkt_ar",
        fabric={"k": 4, "queue_bytes": 150_000, "flow_control": "pfc", "pause_watchdog_us": 5},
        failures={
            "storms": [{"host": "h0_0_0", "at_ns": 4_000, "until_ns": 40_000}],
            "losses": [{"host": "h0_0_0", "share": share}],
        },
        transport={"recovery": "sack", "timer_floor_rtt": 5},
    )
    outcome = assert_all_alike(chosen)
    assert outcome is not None
    assert any(port.dropped and port.lost_to_failure for port in outcome.ports)


def test_acks_longer_than_data_have_room() -> None:
    # Six of sixty drawn runs dropped ACKs while headroom counted data alone.
    chosen = incast(
        "rsq",
        fabric={"k": 4, "queue_bytes": 150_000, "flow_control": "pfc"},
        packets={"payload_bytes": 300, "ack_bytes": 9_000},
        transport={"recovery": "sack", "sack_threshold": 1000, "timer_floor_rtt": 1000},
        collective={
            "matrix": "pairs",
            "message_bytes": 60 * 300,
            "pairs": [(host, receiver) for host in range(4) for receiver in range(4, 16)],
        },
    )
    outcome = assert_all_alike(chosen)
    assert outcome is not None and outcome.accounts.dropped == 0
    assert sum(port.pauses for port in outcome.ports) > 0


@pytest.mark.parametrize("off", [-1, 0, 1])
@pytest.mark.parametrize("sharing", [{}, {"buffer": "shared", "buffer_alpha": 8}])
def test_the_threshold_of_pauses_to_the_byte(off: int, sharing: dict[str, Any]) -> None:
    # Ten whole packets do not pause a link, and a byte less of room does.
    whole = 4096 + 62
    fabric = {
        "k": 4,
        "queue_bytes": 40_000 + 10 * whole + off,
        "headroom_bytes": 40_000,
        "flow_control": "pfc",
    }
    chosen = incast("flow", fabric=fabric | sharing)
    network = LosslessNetwork(chosen)
    network.run(10 * HORIZON_PS)
    assert_simulator_same(chosen, network)
    assert of_virtual(outcome_of(chosen, 10 * HORIZON_PS)) == of_naive(network)
