"""The ordered updates of one switch from installed to wanted entries, make before break.

A schedule is never changed in place. A new schedule gets an unused id, then the routes change to
it, each in one update, then unused schedules are deleted: at any instant every packet uses a
complete schedule, the old or the new one. So a controller may die between any two messages: the
next controller reads the entries back (`adopted`) and continues from them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TypeAlias

from controller.difference import Placed, difference
from controller.entries import Call, Change, Entries, Entry, Key, Kind
from controller.parts import Part, Piece, Turn, in_order
from controller.plan import Block, Planner, SwitchPlan

# Tables whose first key field is the id of a schedule.
SCHEDULE_TABLES = frozenset({"schedule", "uplinks_of"})
Place = tuple[str, Key]
Content: TypeAlias = frozenset[tuple[str, Key, Call]]
NOTHING: Content = frozenset()


class Wanted(Mapping[Place, Call]):
    """The entries of a plan, made at the first access."""

    def __init__(self, plan: SwitchPlan, ids: Sequence[int]) -> None:
        self._plan = plan
        self._ids = ids

    @cached_property
    def _made(self) -> dict[Place, Call]:
        return self._plan.planner.entries(self._plan, self._ids)

    def __getitem__(self, place: Place) -> Call:
        return self._made[place]

    def __iter__(self) -> Iterator[Place]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)


@dataclass(frozen=True, slots=True)
class Installed:
    """The state of a switch: its entries, the id of every block, and the first plan's blocks.

    A block is identified by its place in the plan and its content: two groups with equal schedules
    have separate blocks. The ids below `len(home)` blocks always belong to the first plan, so that
    a repaired fabric equals the first one.
    """

    home: tuple[Block, ...] = ()
    ids: dict[tuple[int, Block], int] = field(default_factory=dict)
    entries: Entries = field(default_factory=dict)
    plan: SwitchPlan | None = None


def adopted(planner: Planner, entries: Entries, home: SwitchPlan, plan: SwitchPlan) -> Installed:
    """Return the state of a switch that has `entries`, from any controller.

    `home` is the plan without failures. Schedules of `plan` that are there already keep their ids.
    Ids in use for other schedules count as taken until these are deleted, also ids of the first
    plan, where another seed's plan has left its schedules.
    """
    orders = len(home.blocks[0]) if home.blocks else 1
    reserved = len(home.blocks) * orders
    contents = _schedules(entries)

    # Ids come in blocks of `orders`: an id in use takes its block.
    held = {
        first: tuple(contents.get(first + order, NOTHING) for order in range(orders))
        for first in sorted({schedule - schedule % orders for schedule in contents})
    }

    # A controller that died may have left a part of a block of the first plan: no route leads
    # there, so it can be completed. Other entries are not ours.
    at_home = {first: held.pop(first) for first in list(held) if first < reserved}
    foreign = [
        first
        for first, content in at_home.items()
        if any(
            not part <= _content(planner.schedule(plan.switch, 0, uplinks))
            for part, uplinks in zip(content, home.blocks[first // orders], strict=True)
        )
    ]

    # Of equal schedules the one to which the block's own route leads is taken: it need not move.
    routed = _routed(entries, plan)
    ids: dict[tuple[int, Block], int] = {}
    for index, block in enumerate(plan.blocks):
        block_content = tuple(
            _content(planner.schedule(plan.switch, 0, uplinks)) for uplinks in block
        )
        candidates = [*routed.get(index, ()), *held]
        first = next((first for first in candidates if held.get(first) == block_content), None)

        if first is not None:
            ids[index, block] = first
            del held[first]

    # No plan has a block at an index below 0: these ids count as taken, and their schedules go with
    # the next `reconcile`, after the routes that still lead to them.
    strangers = {(-1 - first, ()): first for first in [*foreign, *held]}
    return Installed(home.blocks, ids | strangers, entries)


def _routed(entries: Entries, plan: SwitchPlan) -> dict[int, list[int]]:
    """Return where the switch's routes lead now, for each block of the plan."""
    schedules: dict[int, list[int]] = {}
    for prefix, group in plan.groups.items():
        action, arguments = entries.get(("routes", (prefix,)), ("", ()))
        if action == "to_group":
            schedules.setdefault(group.block, []).append(arguments[1])

    return schedules


def _schedules(entries: Entries) -> dict[int, Content]:
    """Return the content of every schedule on the switch, by id."""
    rows_by_schedule: dict[int, list[tuple[Place, Call]]] = {}
    for (table, key), call in entries.items():
        if table in SCHEDULE_TABLES and isinstance(key[0], int):
            rows_by_schedule.setdefault(key[0], []).append(((table, key), call))

    return {schedule: _content(rows) for schedule, rows in rows_by_schedule.items()}


def _content(rows: Iterable[tuple[Place, Call]]) -> Content:
    """Return a schedule's rows without its id: equal schedules have equal contents."""
    return frozenset((table, key[1:], call) for (table, key), call in rows)


def reconcile(installed: Installed, plan: SwitchPlan) -> tuple[Installed, list[Part]]:
    """Return the switch's next state and the ordered messages that lead to it.

    None if nothing changes.
    """
    # Where no destination's weights change, as on 3 of 5 switches when a core link fails at k = 64.
    if plan == installed.plan:
        return installed, []

    blocks = plan.blocks
    home = installed.home or blocks
    new = Placed(plan, blocks, assign(home, installed.ids, blocks))
    keys = {
        (index, block): first
        for index, (block, first) in enumerate(zip(blocks, new.ids, strict=True))
    }

    entries = Wanted(plan, new.ids)

    # Entries that were read back came from no plan of ours, so they are compared one by one, once.
    if installed.plan is None and installed.entries:
        new.checked_calls()
        return Installed(home, keys, entries, plan), updates(installed.entries, entries)

    return Installed(home, keys, entries, plan), difference(_placed(installed), new)


def _placed(installed: Installed) -> Placed | None:
    """Return the plan that a switch has; nothing if it is empty."""
    if installed.plan is None:
        return None

    return Placed(
        installed.plan, [block for _, block in installed.ids], list(installed.ids.values())
    )


def assign(
    home: Sequence[Block], used: dict[tuple[int, Block], int], blocks: Sequence[Block]
) -> list[int]:
    """Return the id of every block's first schedule.

    A block of the first plan has a fixed id, unless another schedule uses it (`adopted`). An
    installed block keeps its id; all other blocks get the lowest free ids.
    """
    orders = len(blocks[0]) if blocks else 1
    reserved = len(home) * orders
    strange = {first for (index, _), first in used.items() if index < 0}

    # Ids that are in use now count as taken, though some of their schedules are about to go: until
    # then both must be there. The lowest free one is taken, so that ids stay small.
    taken = set(used.values())
    ids = []

    for index, block in enumerate(blocks):
        first_id = index * orders
        if index < len(home) and home[index] == block and first_id not in strange:
            ids.append(first_id)
        elif (index, block) in used:
            ids.append(used[index, block])
        else:
            free = next(first for first in _numbers(reserved, orders) if first not in taken)
            taken.add(free)
            ids.append(free)

    return ids


def updates(old: Entries, new: Entries) -> list[Part]:
    """Return the updates from some entries to others, make before break (`parts.Turn`).

    Default entries stay: they can be changed, not removed.
    """
    # Every change is of one turn, so pieces of one turn each are all that `in_order` needs.
    turns: dict[Turn, list[Change]] = {}
    for change in _changes(old, new):
        turns.setdefault(Turn.of(change.kind, change.entry.table), []).append(change)

    return list(
        in_order(
            Piece(turn, len(changes), partial(iter, changes)) for turn, changes in turns.items()
        )
    )


def _changes(old: Entries, new: Entries) -> Iterator[Change]:
    for match, call in new.items():
        if old.get(match) != call:
            yield Change(_making(old, match), Entry(*match, *call))

    for match, call in old.items():
        if match not in new and match[1]:
            yield Change(Kind.DELETE, Entry(*match, *call))


def _making(old: Entries, place: Place) -> Kind:
    """Return the kind of update that writes an entry: default entries always exist."""
    return Kind.MODIFY if place in old or not place[1] else Kind.INSERT


def _numbers(start: int, step: int) -> Iterator[int]:
    number = start
    while True:
        yield number
        number += step
