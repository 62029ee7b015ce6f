"""The runtime API's view of the running program: names and handles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any, TypeVar

from ofan_p4.softswitch.codegen.program import Action, Array, Profile
from ofan_p4.softswitch.daemon.thrift.handles import Handles
from ofan_p4.softswitch.daemon.thrift.messages import CallError, Refusal, TableError
from ofan_p4.softswitch.state.profiles import ActionProfile
from ofan_p4.softswitch.state.tables import Match, Table

# Clients know the methods by these modules, and need no engine.
if TYPE_CHECKING:
    from ofan_p4.softswitch.control.pipeline import Pipeline
    from ofan_p4.softswitch.control.switch import Switch

T = TypeVar("T")


class TableState:
    """One table with the handles of its entries."""

    def __init__(self, table: Table, actions: Mapping[int, Action]) -> None:
        self.table = table
        self.actions = {actions[number].name: actions[number] for number in table.spec.actions}
        self._handles: Handles[tuple[Match, int]] = Handles(
            TableError.INVALID_HANDLE, TableError.EXPIRED_HANDLE
        )
        self._changes = -1

    def handles(self) -> Handles[tuple[Match, int]]:
        """Return the handles of all entries, also of those made by P4Runtime or the program."""
        if self._changes != self.table.changes:
            for _, key in list(self._handles):
                if key not in self.table.entries:
                    self._handles.remove(key)

            for key in self.table.entries:
                if key not in self._handles:
                    self._handles.add(key)

            self._changes = self.table.changes

        return self._handles

    def added(self, key: tuple[Match, int]) -> int:
        """Return the handle of an entry that was added just now."""
        if self._changes + 1 != self.table.changes:
            return self.handles().handle(key)

        # Thousands of entries in a row are not looked through each time.
        self._changes = self.table.changes
        return self._handles.add(key)

    def removed(self, key: tuple[Match, int]) -> None:
        """Forget an entry that was deleted just now."""
        if self._changes + 1 == self.table.changes:
            self._changes = self.table.changes
            self._handles.remove(key)

    def action(self, name: str) -> Action:
        """Return an action that the table offers."""
        return found(self.actions, name, TableError.INVALID_ACTION_NAME)


class ProfileState:
    """One action profile with the actions of its tables."""

    def __init__(self, spec: Profile, profile: ActionProfile, tables: Iterable[TableState]) -> None:
        self.spec = spec
        self.profile = profile
        self.tables = [state for state in tables if state.table.spec.profile == spec.name]
        self.actions = {
            name: action for state in self.tables for name, action in state.actions.items()
        }

    @property
    def has_selector(self) -> bool:
        """Whether the profile has groups."""
        return self.spec.algorithm is not None

    def action(self, name: str) -> Action:
        """Return an action that members may have."""
        return found(self.actions, name, TableError.INVALID_ACTION_NAME)


Cells = tuple[Array, Sequence[Any]]


class Loaded:
    """The names of one pipeline."""

    def __init__(self, pipeline: Pipeline) -> None:
        program = pipeline.program
        self.pipeline = pipeline
        self.actions = program.actions
        self.tables = {
            table.spec.name: TableState(table, program.actions) for table in pipeline.tables
        }
        self.profiles = {
            spec.name: ProfileState(spec, profile, self.tables.values())
            for spec, profile in zip(program.profiles(), pipeline.profiles, strict=True)
        }
        self.counters = _named(program.counters, pipeline.counters)
        self.meters = _named(program.meters, pipeline.meters)
        self.registers = _named(program.registers, pipeline.registers)
        self.calculations = program.calculations
        self.custom_crcs = {
            item.name: crc
            for item, crc in zip(program.custom_crcs(), pipeline.custom_crcs, strict=True)
        }
        # Direct meters are in the list for their names.
        self.direct_meters = {array.name: array for array in program.meters if array.is_direct}

    def table(self, name: str) -> TableState:
        """Return a table."""
        return found(self.tables, name, TableError.INVALID_TABLE_NAME)

    def profile(self, name: str) -> ProfileState:
        """Return an action profile."""
        return found(self.profiles, name, TableError.INVALID_ACTION_PROFILE_NAME)


class Runtime:
    """A switch and the names of the program that it runs at the moment."""

    def __init__(self, switch: Switch) -> None:
        self.switch = switch
        self._loaded: Loaded | None = None

    @property
    def loaded(self) -> Loaded:
        """The names of the present program; raises CallError without a program."""
        pipeline = self.switch.pipeline
        if pipeline is None:
            raise CallError("the switch has no program yet")

        if self._loaded is None or self._loaded.pipeline is not pipeline:
            self._loaded = Loaded(pipeline)

        return self._loaded


def found(items: Mapping[str, T], name: str, code: IntEnum) -> T:
    """Return the item of a name; Refusal without such an item."""
    if name not in items:
        raise Refusal(code)

    return items[name]


def cell(cells: Sequence[Any], index: int, code: IntEnum) -> Any:
    """Return one cell; raises Refusal beyond the end."""
    if not 0 <= index < len(cells):
        raise Refusal(code)

    return cells[index]


def _named(arrays: Sequence[Array], cells: Sequence[Sequence[Any]]) -> dict[str, Cells]:
    return {
        array.name: (array, items)
        for array, items in zip(arrays, cells, strict=True)
        if not array.is_direct
    }
