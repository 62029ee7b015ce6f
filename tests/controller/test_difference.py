"""The difference of two plans is that of all their entries, message by message, and is made when it
is sent.
"""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import p4src
from controller.entries import Change, Entries, Entry, Kind
from controller.parts import MOST_UPDATES, Changes, Part, Phase, Piece, Turn, packed
from controller.pipeline import Pipeline
from controller.plan import Planner
from controller.reconcile import Installed, reconcile, updates
from fattree.experiment.model import Fabric, LoadBalancer, Scenario
from fattree.policies import POLICIES
from fattree.routes.forwarding import scenario_forwarding
from fattree.routes.wecmp import LinkState

PIPELINES = {name: Pipeline.read(p4src.p4info_path(name)) for name in p4src.programs()}
OPTIONS = (
    LoadBalancer(),
    LoadBalancer(schedule_orders="per_pointer"),
    LoadBalancer(edge_pointers="host", agg_pointers="edge"),
)
COUNTED = [
    Change(Kind.INSERT, Entry("schedule", (1, slot), "take_port", (2,))) for slot in range(2_500)
]


def of_phase(parts: Sequence[Part], phase: Phase) -> list[str]:
    return sorted(str(change) for part in parts if part.phase is phase for change in part.changes)


@pytest.mark.parametrize(
    "slug", ["ofan", "ofan_jsq_start", "simple_rr", "switch_pkt", "jsq", "host_dr"]
)
@given(
    rounds=st.lists(st.frozensets(st.integers(0, 31), max_size=6), min_size=1, max_size=4),
    switch=st.integers(0, 19),
    options=st.sampled_from(OPTIONS),
)
@settings(max_examples=15)
def test_plans_differ_as_their_entries_do(
    slug: str, rounds: list[frozenset[int]], switch: int, options: LoadBalancer
) -> None:
    scenario = Scenario(policy=slug, fabric=Fabric(k=4), load_balancer=options)
    planner, installed = Planner(scenario, PIPELINES[POLICIES[slug].program]), Installed()
    held: Entries = {}
    for failed in rounds:
        state = scenario_forwarding(scenario, LinkState.without(scenario.tree, failed))
        installed, parts = reconcile(installed, planner.plan(state, switch))
        expected = updates(held, held := dict(installed.entries))
        assert [of_phase(parts, phase) for phase in Phase] == [
            of_phase(expected, phase) for phase in Phase
        ]
        assert [part.phase for part in parts] == sorted(part.phase for part in parts)
    assert reconcile(installed, planner.plan(state, switch)) == (installed, [])


def test_messages_are_full_and_keep_the_order() -> None:
    pieces = [
        Piece(Turn.MAKE, 300, lambda: iter(COUNTED[:300])),
        Piece(Turn.MAKE, 2_200, lambda: iter(COUNTED[300:])),
    ]
    parts = list(packed(Phase.ADD, pieces))
    assert [len(part.changes) for part in parts] == [MOST_UPDATES, MOST_UPDATES, 500]
    assert [change for part in parts for change in part.changes] == COUNTED


def test_changes_are_made_when_they_are_looked_at() -> None:
    made: list[int] = []
    changes = Changes([Piece(Turn.MAKE, 3, lambda: made.append(1) or iter(COUNTED[:3]))])  # type: ignore[func-returns-value]
    assert (len(changes), made) == (3, [])
    assert changes[1:] == tuple(COUNTED[1:3])
    assert (changes == COUNTED[:3], changes == COUNTED[:2], made) == (True, False, [1, 1, 1])
