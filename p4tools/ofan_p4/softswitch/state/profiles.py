"""Action profiles and selectors at run time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ofan_p4.softswitch.base.errors import Code, EntryError
from ofan_p4.softswitch.codegen.program import NO_ACTION, USE_MEMBER
from ofan_p4.softswitch.state.tables import Entry

Choice = tuple[int, tuple[int, ...]]
NOTHING: Choice = (NO_ACTION, ())


@dataclass(frozen=True, slots=True)
class Membership:
    """A member of a group: its weight, and the port that takes it out by failing."""

    member: int
    weight: int
    watch_port: int | None = None


@dataclass(slots=True, eq=False)
class Group:
    """A group: its members, the size with which it was made, and the hash's choices."""

    members: tuple[Membership, ...]
    max_size: int
    choices: list[Choice] = field(default_factory=list)


class ActionProfile:
    """Members and groups of one action profile; ids of one-shot groups are negative."""

    def __init__(
        self,
        size: int,
        is_up: Callable[[int], bool],
        has_port: Callable[[int], bool] = lambda _port: True,
    ) -> None:
        self.size = size
        self.has_port = has_port
        self.members: dict[int, Choice] = {}
        self.groups: dict[int, Group] = {}
        self._is_up = is_up
        self._next_hidden = -1

    def _changed(self) -> None:
        """Take note of a change of members or groups."""

    def resolve(self, entry: Entry, key: int) -> Entry:
        """Return the action of an indirect entry; `key` is the selector's hash."""
        kind, (target,), record = entry
        if kind == USE_MEMBER:
            return (*self.members.get(target, NOTHING), record)

        group = self.groups.get(target)
        if group is None or not group.choices:
            return (NO_ACTION, (), record)

        # BMv2: hash modulo the number of live members, weights as repetitions.
        return (*group.choices[key % len(group.choices)], record)

    def add_member(self, member: int, choice: Choice) -> None:
        """Add a member."""
        if member in self.members:
            raise EntryError(Code.ALREADY_EXISTS, f"member {member} already exists")

        self._check_room(1)
        self.members[member] = choice
        self._changed()

    def modify_member(self, member: int, choice: Choice) -> None:
        """Replace a member's action, in every group that has it, in one step."""
        self._check_known(member)
        self.members[member] = choice
        self.refresh()

    def delete_member(self, member: int) -> None:
        """Remove a member that no group and no entry uses."""
        self._check_known(member)
        if any(member == m.member for group in self.groups.values() for m in group.members):
            raise EntryError(Code.FAILED_PRECONDITION, f"member {member} is in a group")

        del self.members[member]
        self._changed()

    def add_group(self, group: int, members: Sequence[Membership], max_size: int) -> None:
        """Add a group."""
        if group in self.groups:
            raise EntryError(Code.ALREADY_EXISTS, f"group {group} already exists")

        self._check_group(members)
        self.groups[group] = Group(tuple(members), max_size)
        self.refresh()

    def modify_group(self, group: int, members: Sequence[Membership], max_size: int) -> None:
        """Replace a group's members in one step."""
        if group not in self.groups:
            raise EntryError(Code.NOT_FOUND, f"no group {group}")
        if max_size != self.groups[group].max_size:
            raise EntryError(Code.INVALID_ARGUMENT, "the max_size of a group cannot change")

        self._check_group(members)
        self.groups[group].members = tuple(members)
        self.refresh()

    def delete_group(self, group: int) -> None:
        """Remove a group."""
        if self.groups.pop(group, None) is None:
            raise EntryError(Code.NOT_FOUND, f"no group {group}")

        self._changed()

    def add_hidden(
        self, choices: Sequence[tuple[Choice, int, int | None]], replaced: int | None = None
    ) -> int:
        """Add members, given as (choice, weight, port), and group of a one-shot; the group's id.

        `replaced` is the one-shot that will be deleted in exchange: its members do not count
        against the size.
        """
        # For a moment both exist, so that packets always find a group.
        spared = len(self.groups[replaced].members) if replaced is not None else 0
        self._check_room(len(choices) - spared)
        members = []

        for choice, weight, port in choices:
            self.members[self._next_hidden] = choice
            members.append(Membership(self._next_hidden, weight, port))
            self._next_hidden -= 1

        group = self._next_hidden
        self._next_hidden = self._next_hidden - 1
        self.groups[group] = Group(tuple(members), 0)
        self.refresh()

        return group

    def delete_hidden(self, group: int) -> None:
        """Remove a one-shot's group with its members."""
        for member in self.groups.pop(group).members:
            del self.members[member.member]

        self._changed()

    def has_hidden(self) -> bool:
        """Return whether one-shots use the profile."""
        return any(group < 0 for group in self.groups)

    def clear(self) -> None:
        """Remove all members and groups."""
        self.members.clear()
        self.groups.clear()
        self._changed()

    def refresh(self) -> None:
        """Work out every group's choices after a change of members or ports."""
        for group in self.groups.values():
            # Made when something changes, so that a packet only indexes.
            group.choices = [
                self.members[m.member]
                for m in group.members
                if m.watch_port is None or self._is_up(m.watch_port)
                for _ in range(m.weight)
            ]

        self._changed()

    def _check_known(self, member: int) -> None:
        if member not in self.members:
            raise EntryError(Code.NOT_FOUND, f"no member {member}")

    def _check_room(self, more: int) -> None:
        if self.size and len(self.members) + more > self.size:
            raise EntryError(
                Code.RESOURCE_EXHAUSTED, f"the action profile is full: {self.size} members"
            )

    def _check_group(self, members: Sequence[Membership]) -> None:
        for member in members:
            self._check_known(member.member)
            if member.weight <= 0:
                raise EntryError(
                    Code.INVALID_ARGUMENT, f"member {member.member} has weight {member.weight}"
                )

        if len({member.member for member in members}) < len(members):
            raise EntryError(Code.INVALID_ARGUMENT, "a member appears twice in the group")
