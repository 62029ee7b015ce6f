"""A scenario's flows, pacing gaps and first due times."""

from fractions import Fraction
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fattree.demand import traffic
from fattree.experiment.collective import MATRIX_KEYS, Matrix
from fattree.experiment.model import Collective, Fabric, Packets, Scenario, Transport
from fattree.policies import POLICIES
from tests.fattree.brute_force import seeds

SLOT_PS = 41_780
ACK_SLOT_PS = 840
matrices = st.sampled_from(sorted({*get_args(Matrix)} - {"file", "workload"}))
slugs = st.sampled_from(sorted(POLICIES))


def scenario(
    matrix: str = "permutation",
    policy: str = "ofan",
    seed: int = 1,
    k: int = 4,
    **transport: object,
) -> Scenario:
    values = {
        "message_bytes": 10_000,
        "pairs": ((0, 9), (0, 5)),
        "model": "llama-7b",
        "steps": 3,
    }
    heeded = MATRIX_KEYS[matrix]  # type: ignore[index]
    collective = {"matrix": matrix, **{key: values[key] for key in heeded if key in values}}
    return Scenario(
        fabric=Fabric(k=k),
        policy=policy,
        seed=seed,
        collective=Collective.model_validate(collective),
        transport=Transport.model_validate(transport),
    )


@given(matrices, slugs, seeds, st.sampled_from([2, 4, 8]))
def test_flows_are_valid_int64_arrays(matrix: str, policy: str, seed: int, k: int) -> None:
    case = scenario(matrix, policy, seed, max(k, 4) if matrix == "pairs" else k)
    made = traffic.flows(case)
    columns = (
        made.source,
        made.destination,
        made.packets,
        made.start_ps,
        made.after_offset,
        made.after,
    )
    assert {column.dtype for column in columns} == {np.dtype(np.int64)}
    assert (made.source != made.destination).all()
    assert made.packets.min() > 0
    assert max(made.source.max(), made.destination.max()) < case.tree.hosts


@given(matrices, slugs, slugs, seeds)
def test_flows_do_not_depend_on_the_load_balancer(
    matrix: str, slug: str, other_slug: str, seed: int
) -> None:
    first, second = (
        traffic.whole_flows(scenario(matrix, policy, seed)) for policy in (slug, other_slug)
    )
    assert first.destination.tolist() == second.destination.tolist()
    assert first.packets.tolist() == second.packets.tolist()


def test_messages_are_whole_packets() -> None:
    assert traffic.flows(scenario()).packets.tolist() == [3] * 16
    assert traffic.flows(scenario(policy="subflow")).packets.tolist() == [1] * 64


@pytest.mark.parametrize(
    ("matrix", "policy", "share"),
    [
        ("permutation", "ofan", 1),
        ("permutation", "subflow", 4),
        ("all_to_all", "ofan", 15),
        ("all_to_all", "subflow", 60),
        ("ring", "ofan", 1),
        ("hierarchical_ring", "subflow", 4),
        ("fsdp", "ofan", 1),
        ("pairs", "ofan", 2),
    ],
)
def test_a_hosts_flows_share_its_link(matrix: str, policy: str, share: int) -> None:
    case = scenario(matrix, policy)
    made = traffic.flows(case)
    assert set(traffic.shares(case.tree, made).tolist()) == {share}
    # Only active pairs share a link: each may have the whole link.
    apart = 1 if matrix == "pairs" else share
    assert set(traffic.gaps(case, made).tolist()) == {apart * SLOT_PS}


@given(st.fractions(Fraction(1, 50), Fraction(99, 100)))
def test_below_line_rate_acks_count_and_gaps_are_rounded_up(rho: Fraction) -> None:
    case = scenario("pairs", sharing="static")
    (gap,) = set(traffic.gaps(case, traffic.flows(case), rho).tolist())
    exact = Fraction(2 * (SLOT_PS + ACK_SLOT_PS)) / rho
    assert exact <= gap < exact + 1


def test_a_rate_limit_stretches_the_gap() -> None:
    case = scenario(rate_limit=0.95)
    assert set(traffic.gaps(case, traffic.flows(case)).tolist()) == {43_979}


@given(matrices, seeds)
def test_random_phases_lie_within_a_gap(matrix: str, seed: int) -> None:
    case = scenario(matrix, seed=seed)
    made = traffic.flows(case)
    gaps = traffic.gaps(case, made)
    phases = traffic.phases(case, made, gaps)
    assert ((phases >= 0) & (phases < gaps)).all()
    assert (traffic.first_due(case, made, gaps) == made.start_ps + phases).all()


def test_phases_fill_slow_gaps_too() -> None:
    """At 10 Mb/s a gap has more than 32 bits of picoseconds."""
    case = scenario("all_to_all").model_copy(update={"fabric": Fabric(k=4, rate_gbps=0.01)})
    made = traffic.flows(case)
    gaps = traffic.gaps(case, made)
    fractions = traffic.phases(case, made, gaps) / gaps
    assert gaps.min() > 2**32
    assert 0 <= fractions.min() < 0.05 and 0.95 < fractions.max() < 1


def test_without_random_phases_flows_take_turns() -> None:
    case = scenario("pairs", random_phases=False, sharing="static")
    made = traffic.flows(case)
    assert traffic.phases(case, made, traffic.gaps(case, made)).tolist() == [0, SLOT_PS]


def test_steps_of_a_ring_do_not_queue_behind_each_other() -> None:
    case = scenario("ring", random_phases=False)
    made = traffic.flows(case)
    assert set(traffic.phases(case, made, traffic.gaps(case, made)).tolist()) == {0}


@given(matrices)
def test_checking_accepts_what_can_be_built(matrix: str) -> None:
    traffic.check_collective(scenario(matrix))


def test_tunnels_count_for_host_dr_only() -> None:
    packets = Packets(tunnel_bytes=20)
    ofan, host_dr = (
        scenario(policy=policy).model_copy(update={"packets": packets})
        for policy in ("ofan", "host_dr")
    )
    assert host_dr.slot_ps - ofan.slot_ps == 200
    assert ofan.slot_ps == SLOT_PS
