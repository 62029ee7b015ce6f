"""Installed against wanted: the ordered updates of one switch, make before break.

A schedule is never changed in place. What is new gets an id that nobody uses, then the routes move to it, each in one
update, then what nobody uses any more goes: at any instant every packet walks a whole schedule, the old or the new one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from controller.entries import Batch, Call, Change, Entries, Entry, Key, Kind
from controller.plan import Block, Planner, SwitchPlan

SCHEDULE_TABLES = frozenset({"schedule", "uplinks_of"})
Place = tuple[str, Key]


@dataclass(frozen=True, slots=True)
class Installed:
    """What a switch holds: its entries, the id of every block by (place in the plan, content), and the first plan's blocks.

    The ids below `len(home)` blocks belong to the first plan for ever, so that a repaired fabric is exactly the first one.
    """

    home: tuple[Block, ...] = ()
    ids: dict[tuple[int, Block], int] = field(default_factory=dict)
    entries: Entries = field(default_factory=dict)
    plan: SwitchPlan | None = None


def reconcile(planner: Planner, switch: int, installed: Installed, plan: SwitchPlan) -> tuple[Installed, list[Batch]]:
    """Return what the switch will hold and the batches that bring it there, in order; none where nothing changes."""
    if plan == installed.plan:
        return installed, []
    home = plan.blocks if installed.plan is None else installed.home
    ids = assign(home, installed.ids, plan.blocks)
    entries = planner.entries(switch, plan, ids)
    keys = {(index, block): first for index, (block, first) in enumerate(zip(plan.blocks, ids, strict=True))}
    return Installed(home, keys, entries, plan), ordered(installed.entries, entries)


def assign(home: Sequence[Block], used: dict[tuple[int, Block], int], blocks: Sequence[Block]) -> list[int]:
    """Return the id of every block's first schedule.

    A block of the first plan has its own id, a block that is installed keeps the one it has, any other gets the lowest
    that is free now.
    """
    orders = len(blocks[0]) if blocks else 1
    reserved = len(home) * orders
    taken = set(used.values())
    ids = []
    for index, block in enumerate(blocks):
        if index < len(home) and home[index] == block:
            ids.append(index * orders)
        elif (index, block) in used:
            ids.append(used[index, block])
        else:
            free = next(first for first in _numbers(reserved, orders) if first not in taken)
            taken.add(free)
            ids.append(free)
    return ids


def ordered(old: Entries, new: Entries) -> list[Batch]:
    """Return the updates from `old` to `new`: schedules and settings made, routes moved, schedules removed."""
    made = [Change(_making(old, place), _entry(place, call)) for place, call in new.items() if old.get(place) != call]
    gone = [Change(Kind.DELETE, _entry(place, call)) for place, call in old.items() if place not in new]
    make = (change for change in made if not _is_route(change))
    move = (change for change in made + gone if _is_route(change))
    remove = (change for change in gone if not _is_route(change))
    return [batch for batch in (tuple(make), tuple(move), tuple(remove)) if batch]


def _making(old: Entries, place: Place) -> Kind:
    """Return how an entry comes to be: default entries always exist."""
    return Kind.MODIFY if place in old or not place[1] else Kind.INSERT


def _is_route(change: Change) -> bool:
    return change.entry.table == "routes"


def _entry(place: Place, call: Call) -> Entry:
    return Entry(*place, *call)


def _numbers(start: int, step: int) -> Iterator[int]:
    number = start
    while True:
        yield number
        number += step
