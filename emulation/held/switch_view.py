"""A person's view of a switch, from the entries and cells that were read back."""

from collections.abc import Mapping, Sequence

from controller.entries import Call, Entries, Match
from emulation.held.messages import ArrayView, GroupView, PointerView
from fattree.shape.addressing import dotted, switch_name
from fattree.shape.topology import FatTree

# The entry of round_robin.p4's table `orders` if each class has a pointer of its own.
PER_CLASS: Call = ("reshuffle_after", (0,))


def groups(tree: FatTree, switch: int, entries: Entries) -> list[GroupView]:
    """Return the groups of a switch, read from its entries."""
    # Routes that lead to the same group, with the same arguments, are one row.
    destinations: dict[tuple[int, ...], list[str]] = {}
    for (table, key), (action, arguments) in entries.items():
        if table == "routes" and action == "to_group":
            destinations.setdefault(arguments, []).append(_prefix(key[0]))

    return [
        GroupView(
            number,
            destinations=sorted(prefixes),
            schedule=schedule,
            uplinks=_uplinks(tree, switch, entries, schedule=schedule, length=length),
            data_start=data,
            ack_start=ack,
        )
        for (number, schedule, length, data, ack), prefixes in sorted(destinations.items())
    ]


def pointers(seen: list[GroupView], entries: Entries, cells: Sequence[int]) -> list[PointerView]:
    """Return the pointers of the groups.

    Cell 2 * group + class holds the next slot plus one, 0 before the first packet.
    """
    # Only round_robin.p4 has the table: Simple RR by the experiment's key, Switch Pkt always.
    is_shared = entries.get(("orders", ()), PER_CLASS) != PER_CLASS

    return [
        PointerView(
            group=row.group,
            data=_slot(cells[2 * row.group]),
            acks=None if is_shared else _slot(cells[2 * row.group + 1]),
        )
        for row in seen
    ]


def arrays(cells_by_name: Mapping[str, Sequence[tuple[int, ...]]]) -> list[ArrayView]:
    """Return registers and counters, from all of their cells."""
    return [
        ArrayView(
            array=name,
            size=len(cells),
            cells={number: list(cell) for number, cell in enumerate(cells) if any(cell)},
        )
        for name, cells in cells_by_name.items()
    ]


def _slot(cell: int) -> str:
    return f"slot {cell - 1}" if cell else "start"


def _prefix(match: Match) -> str:
    value, length = match if isinstance(match, tuple) else (match, 32)
    return f"{dotted(value)}/{length}"


def _uplinks(tree: FatTree, switch: int, entries: Entries, schedule: int, length: int) -> list[str]:
    """Return the neighbours in the order of the slots.

    A program without that table has weights instead.
    """
    # Schedules are entries by slot, or one entry by uplink of weights (p4src/include/uplinks.p4).
    slots = [entries.get(("schedule", (schedule, slot))) for slot in range(length)]
    if any(slots):
        return [_neighbour(tree, switch, call) for call in slots]

    _, (first, *weights) = entries.get(("uplinks_of", (schedule,)), ("", (0,)))
    return [
        f"{_name(tree, switch, first + uplink)} x{weight}"
        for uplink, weight in enumerate(weights)
        if weight
    ]


def _neighbour(tree: FatTree, switch: int, call: Call | None) -> str:
    return "none" if call is None else _name(tree, switch, call[1][0])


def _name(tree: FatTree, switch: int, port: int) -> str:
    far = tree.neighbour(switch, port)
    return f"port {port}" if far is None else switch_name(tree, far.switch)
