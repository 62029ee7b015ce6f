"""The objects that P4Info declares, each with its counterpart in the pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from p4.config.v1 import p4info_pb2

from ofan_p4.softswitch.codegen.program import Array
from ofan_p4.softswitch.p4rt.bytestrings import decode, encode
from ofan_p4.softswitch.p4rt.translation import Names
from ofan_p4.softswitch.state.profiles import ActionProfile
from ofan_p4.softswitch.state.tables import Table, needs_priority
from ofan_p4.softswitch.state.valuesets import ValueSetState


@dataclass(frozen=True, slots=True)
class Parameter:
    """A run-time parameter of an action, or a field of a controller header.

    `names` are the strings of a translated type.
    """

    id: int
    name: str
    bits: int
    names: Names | None = None

    def decode(self, value: bytes, noun: str) -> int:
        """Return the number that a controller means."""
        return self.names.number(value, noun) if self.names else decode(value, self.bits, noun)

    def encode(self, number: int) -> bytes:
        """Return a number as the controller knows it."""
        return self.names.text(number) if self.names else encode(number)


@dataclass(frozen=True, slots=True)
class ActionSpec:
    """An action as P4Info declares it."""

    id: int
    name: str
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True, slots=True)
class MatchSpec(Parameter):
    """One field of a match key, with its kind (exact, lpm, ...)."""

    kind: str = ""


@dataclass(frozen=True, slots=True)
class ProfileSpec:
    """An action profile or selector."""

    id: int
    name: str
    size: int
    max_group_size: int
    counts_members: bool
    max_member_weight: int
    has_selector: bool
    runtime: ActionProfile
    table_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TableInfo:
    """A table: ids of P4Info beside the numbers of the pipeline."""

    id: int
    name: str
    key: tuple[MatchSpec, ...]
    actions: Mapping[int, ActionSpec]
    numbers: Mapping[int, int]
    not_default: frozenset[int]
    only_default: frozenset[int]
    has_const_default: bool
    is_const: bool
    profile: ProfileSpec | None
    counter: p4info_pb2.DirectCounter | None
    meter: p4info_pb2.DirectMeter | None
    supports_timeout: bool
    runtime: Table

    @property
    def needs_priority(self) -> bool:
        """Whether entries carry a priority."""
        return needs_priority(self.runtime.spec)

    def number(self, action: int) -> int:
        """Return the pipeline's number of an action of the table."""
        return self.numbers[action]

    def action_of(self, number: int) -> ActionSpec | None:
        """Return the action with the pipeline's number, None for no action."""
        return next((self.actions[i] for i, n in self.numbers.items() if n == number), None)


@dataclass(frozen=True, slots=True)
class ArrayInfo:
    """An indirect counter, meter or register array with its cells."""

    id: int
    name: str
    array: Array
    cells: Any
    declaration: Any


@dataclass(frozen=True, slots=True)
class ValueSetInfo:
    """A parser value set."""

    id: int
    name: str
    key: tuple[MatchSpec, ...]
    size: int
    runtime: ValueSetState


@dataclass(frozen=True, slots=True)
class DigestInfo:
    """A digest: the learn lists of the pipeline that feed it, a list for each place that sends it.

    `names` are the strings of its members, empty if their types are unknown.
    """

    id: int
    name: str
    learn_ids: tuple[int, ...]
    is_struct: bool
    is_tuple: bool
    names: tuple[Names | None, ...] = ()


@dataclass(frozen=True, slots=True)
class PacketHeader:
    """The controller header of packet-ins or packet-outs."""

    fields: tuple[Parameter, ...]

    @property
    def bytes(self) -> int:
        """The length of the header in front of the frame."""
        return (sum(field.bits for field in self.fields) + 7) // 8
