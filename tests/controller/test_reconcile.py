"""Make before break: in every prefix of the updates, every route leads to a whole schedule."""

from collections.abc import Iterable, Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import p4src
from controller.entries import Call, Change, Entries, Entry, Key, Kind
from controller.fabric_controller import FabricController, LinkChange
from controller.parts import Phase
from controller.pipeline import Pipeline
from controller.reconcile import SCHEDULE_TABLES, assign, updates
from fattree.experiment.model import Fabric, Scenario
from fattree.policies import POLICIES
from tests.controller.test_crashes import described

Place = tuple[str, Key]
PIPELINES = {name: Pipeline.read(p4src.p4info_path(name)) for name in p4src.programs()}
SLUGS = ["ofan", "simple_rr", "switch_pkt", "jsq", "ofan_jsq_start", "flow"]
A, B, C = (b"\0\1",), (b"\1\0",), (b"\0\0\1",)


def controller(
    slug: str, seed: int = 1, k: int = 4, convergence_rtt: float = 0
) -> FabricController:
    """Return a controller."""
    failures = {"convergence_rtt": convergence_rtt}
    chosen = Scenario.model_validate(
        {"policy": slug, "seed": seed, "fabric": Fabric(k=k), "failures": failures}
    )
    return FabricController(chosen, PIPELINES[POLICIES[slug].program])


def applied(state: dict[Place, Call], batches: Iterable[Sequence[Change]]) -> Iterator[Change]:
    """Apply updates singly as a switch would, refusing the updates that it would refuse."""
    for change in (change for batch in batches for change in batch):
        entry_key = change.entry.table, change.entry.key
        assert (entry_key in state) == (change.kind is not Kind.INSERT) or not entry_key[1]
        if change.kind is Kind.DELETE:
            del state[entry_key]
        else:
            state[entry_key] = change.entry.action, change.entry.arguments
        yield change


def is_whole(state: Entries) -> bool:
    """Return whether every route's schedule has all its slots and nothing beyond, and weights where
    there are any.
    """
    slots: dict[int, list[int]] = {}
    for table, key in state:
        if table == "schedule":
            slots.setdefault(int(str(key[0])), []).append(int(str(key[1])))
    for (table, _), (action, arguments) in state.items():
        if (
            table == "routes"
            and action == "to_group"
            and sorted(slots.get(arguments[1], [])) != list(range(arguments[2]))
        ):
            return False
    return True


@pytest.mark.parametrize("slug", SLUGS)
@given(
    rounds=st.lists(st.frozensets(st.integers(0, 31), max_size=4), min_size=1, max_size=4),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=8, deadline=None)
def test_no_packet_sees_half_a_schedule(slug: str, rounds: list[frozenset[int]], seed: int) -> None:
    brain = controller(slug, seed)
    states: list[dict[Place, Call]] = [{} for _ in range(20)]
    steps = brain.start()
    for failed in [*rounds, frozenset[int]()]:
        for step in steps:
            for _ in applied(states[step.switch], [step.changes]):
                assert is_whole(states[step.switch])
        assert states == [dict(brain.entries(switch)) for switch in range(20)]
        steps = brain.on_event(0, LinkChange(down=failed - brain.failed, up=brain.failed - failed))


@pytest.mark.parametrize("slug", SLUGS)
@given(rounds=st.lists(st.frozensets(st.integers(0, 31), max_size=4), min_size=1, max_size=5))
@settings(max_examples=8, deadline=None)
def test_a_repaired_fabric_holds_the_first_plan_exactly(
    slug: str, rounds: list[frozenset[int]]
) -> None:
    brain = controller(slug)
    brain.start()
    first = [dict(brain.entries(switch)) for switch in range(20)]
    for failed in [*rounds, frozenset[int]()]:
        brain.on_event(0, LinkChange(down=failed - brain.failed, up=brain.failed - failed))
    assert [dict(brain.entries(switch)) for switch in range(20)] == first


def test_a_schedule_is_never_modified() -> None:
    brain = controller("ofan", k=8)
    brain.start()
    steps = brain.on_event(0, LinkChange(down=frozenset({0, 130, 131})))
    changes = [change for step in steps for change in step.changes]
    assert {change.kind for change in changes if change.entry.table == "schedule"} == {
        Kind.INSERT,
        Kind.DELETE,
    }


def test_updates_come_in_the_order_make_move_break() -> None:
    brain = controller("ofan")
    brain.start()
    steps = [
        step for step in brain.on_event(0, LinkChange(down=frozenset({16}))) if step.switch == 0
    ]
    made, moved, removed = (step.changes for step in steps)
    assert {(change.kind, change.entry.table) for change in made} == {(Kind.INSERT, "schedule")}
    assert {(change.kind, change.entry.table) for change in moved} == {(Kind.MODIFY, "routes")}
    assert {(change.kind, change.entry.table) for change in removed} == {(Kind.DELETE, "schedule")}


def test_a_block_of_the_first_plan_has_its_own_id() -> None:
    assert assign([A, B], {(0, C): 2, (1, B): 1}, [A, B]) == [0, 1]


def test_an_installed_block_keeps_its_id() -> None:
    assert assign([A, B], {(0, C): 5, (1, B): 1}, [C, B]) == [5, 1]


def test_new_blocks_get_ids_that_nobody_uses() -> None:
    assert assign([A, B], {(0, C): 2, (1, B): 1}, [B, C, A]) == [3, 4, 5]


def test_ids_of_16_orders_do_not_overlap() -> None:
    home = [tuple(bytes([order]) for order in range(16))]
    backwards = tuple(bytes([15 - order]) for order in range(16))
    assert assign(home, {(0, home[0]): 0}, [backwards, home[0]]) == [16, 32]


def test_nothing_is_sent_where_nothing_changes() -> None:
    entries: dict[Place, Call] = {("routes", ((1, 32),)): ("to_port", (1,))}
    assert updates(entries, dict(entries)) == []


ROUTED: dict[Place, Call] = {
    ("routes", ((1, 32),)): ("to_group", (0, 7, 2, 0, 0)),
    ("schedule", (7, 0)): ("take_port", (3,)),
    ("schedule", (7, 1)): ("take_port", (4,)),
}


def test_a_schedule_is_there_before_its_route_and_goes_after_it() -> None:
    for old, new in [({}, ROUTED), (ROUTED, {})]:
        batches = [tuple(part.changes) for part in updates(old, new)]
        assert len(list(applied(dict(old), batches))) == 3
        state = dict(old)
        assert all(is_whole(state) for _ in applied(state, batches)), batches
        assert state == new


@pytest.mark.parametrize("slug", SLUGS)
@given(
    before=st.frozensets(st.integers(0, 31), max_size=4),
    after=st.frozensets(st.integers(0, 31), max_size=4),
    seeds=st.tuples(st.integers(0, 9), st.integers(0, 9)),
)
@settings(max_examples=8, deadline=None)
def test_no_packet_sees_half_a_schedule_of_a_switch_that_is_taken_over(
    slug: str, before: frozenset[int], after: frozenset[int], seeds: tuple[int, int]
) -> None:
    theirs, ours = (controller(slug, seed) for seed in seeds)
    for brain, failed in ((theirs, before), (ours, after)):
        brain.start()
        brain.on_event(0, LinkChange(down=failed))

    for switch in range(20):
        state = dict(theirs.entries(switch))
        ours.adopt(switch, dict(state))
        for step in ours.restore(0, switch):
            for _ in applied(state, [step.changes]):
                assert is_whole(state)

        assert state == dict(ours.entries(switch))


def test_default_entries_are_modified_even_at_first() -> None:
    call = ("mark_above", (7,))
    assert updates({}, {("ecn", ()): call}) == [
        (Phase.ADD, (Change(Kind.MODIFY, Entry("ecn", (), *call)),))
    ]


@pytest.mark.parametrize("slug", SLUGS)
def test_schedules_of_another_seed_are_replaced_and_never_modified(slug: str) -> None:
    stranger, brain = controller(slug, seed=2), controller(slug, seed=1)
    stranger.start()
    states = [dict(stranger.entries(switch)) for switch in range(20)]
    for switch, state in enumerate(states):
        brain.adopt(switch, dict(state))

    for step in brain.start():
        for change in applied(states[step.switch], [step.changes]):
            assert change.kind is not Kind.MODIFY or change.entry.table not in SCHEDULE_TABLES
            assert is_whole(states[step.switch])

    assert states == [dict(brain.entries(switch)) for switch in range(20)]

    # Once the strangers are gone, the first plan's ids are free: the next change brings it home.
    links = frozenset({0, 16})
    brain.on_event(0, LinkChange(down=links))
    brain.on_event(0, LinkChange(up=links))

    first = controller(slug, seed=1)
    first.start()
    for switch in range(20):
        assert described(brain.entries(switch)) == described(first.entries(switch))


def test_of_equal_schedules_that_no_route_leads_to_the_lowest_id_is_taken() -> None:
    brain = controller("ofan")
    brain.start()
    brain.on_event(0, LinkChange(down=frozenset({0})))
    entries = dict(brain.entries(0))
    used = max(int(str(key[0])) for table, key in entries if table == "schedule")

    # A needed schedule twice, under ids that a set does not hold in order, and no route to it.
    adopted = {entry_key: call for entry_key, call in entries.items() if entry_key[0] != "routes"}
    for (table, key), call in entries.items():
        if table == "schedule" and key[0] == used:
            del adopted[table, key]
            adopted |= {(table, (schedule, *key[1:])): call for schedule in (64, 33)}

    brain.adopt(0, adopted)
    brain.restore(0, 0)
    schedules = {key[0] for table, key in brain.entries(0) if table == "schedule"}
    assert 33 in schedules
    assert not schedules & {64, used}
