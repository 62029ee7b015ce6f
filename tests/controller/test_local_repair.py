"""An agent's rule on the entries of one switch, by example (tests/parity has it by rule)."""

from controller.entries import Call, Key
from controller.local_repair import repaired

Entries = dict[tuple[str, Key], Call]
ROUTE = ("routes", ((1, 32),))


def slots(ports: list[int]) -> Entries:
    return {("schedule", (7, slot)): ("take_port", (port,)) for slot, port in enumerate(ports)}


def routed(length: int, *starts: int) -> Entries:
    return {ROUTE: ("to_group", (9, 7, length, *starts))}


OTHER: Entries = {("ecn", ()): ("mark_above", (7,)), ("routes", ((2, 32),)): ("to_port", (1,))}
WHOLE = OTHER | slots([3, 4, 5, 3]) | routed(4, 1, 3)


def test_slots_of_a_dead_port_go_and_a_start_beyond_the_end_is_0() -> None:
    assert repaired(WHOLE, frozenset({5})) == OTHER | slots([3, 4, 3]) | routed(3, 1, 0)


def test_a_route_of_which_no_slot_is_left_goes() -> None:
    assert repaired(WHOLE, frozenset({3, 4, 5})) == OTHER


def test_weights_of_dead_ports_are_0_and_give_the_length_where_there_are_no_slots() -> None:
    weighted = OTHER | routed(6) | {("uplinks_of", (7,)): ("set_uplinks", (3, 2, 1, 3))}
    expected = OTHER | routed(5) | {("uplinks_of", (7,)): ("set_uplinks", (3, 2, 0, 3))}
    assert repaired(weighted, frozenset({4})) == expected


def test_where_no_port_is_dead_nothing_changes() -> None:
    assert repaired(WHOLE, frozenset()) == WHOLE
