"""A whole program as a v1model switch has it: storage, parser states, pipelines and objects."""

from __future__ import annotations

from dataclasses import dataclass, field

from ofan_p4.compiler.midend.flow import Action, Flow, Match, Object
from ofan_p4.compiler.midend.ir import FieldRef, HeaderAt, StackAt, UnionAt, Value
from ofan_p4.compiler.semantics import typed as t
from ofan_p4.compiler.semantics import typed_declarations as td
from ofan_p4.compiler.semantics.types import Struct, Type
from ofan_p4.diagnostics import CompileWarning, Span


@dataclass(frozen=True, slots=True)
class ValueSet:
    name: str
    width: int
    size: int
    source: td.ValueSet


@dataclass(frozen=True, slots=True)
class Case:
    """A select case: value and mask per key, or the name of a value set.

    `state` None ends the parser.
    """

    matches: tuple[Match, ...]
    value_set: str | None
    state: str | None


@dataclass(frozen=True, slots=True)
class State:
    """A parser state; without keys, the only case is the next state."""

    name: str
    flow: Flow
    keys: tuple[Value, ...]
    cases: tuple[Case, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Checksum:
    """`verify` or, if not, update."""

    verify: bool
    condition: Value
    inputs: tuple[Value, ...]
    target: FieldRef
    algorithm: str
    payload: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Digest:
    """A message to the control plane, by the name of its type."""

    name: str
    type: Type
    fields: tuple[Value, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Calculation:
    """The input of a hash."""

    name: str
    algorithm: str
    inputs: tuple[Value, ...]
    span: Span


@dataclass(slots=True)
class HeaderInstance:
    name: str
    type: Struct
    metadata: bool = False


@dataclass(slots=True)
class Layout:
    """All storage of a program: scalars in one metadata header, headers, stacks and unions."""

    scalars: dict[str, Type] = field(default_factory=dict)
    headers: dict[str, HeaderInstance] = field(default_factory=dict)
    stacks: dict[str, StackAt] = field(default_factory=dict)
    unions: dict[str, UnionAt] = field(default_factory=dict)
    # The next number to try for a name that is taken.
    numbers: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Switch:
    """A whole program, ready for the back end."""

    program: t.Program
    layout: Layout
    states: list[State] = field(default_factory=list)
    value_sets: list[ValueSet] = field(default_factory=list)
    ingress: Flow = ()
    egress: Flow = ()
    ingress_span: Span | None = None
    egress_span: Span | None = None
    emits: list[HeaderAt] = field(default_factory=list)
    checksums: list[Checksum] = field(default_factory=list)
    calculations: list[Calculation] = field(default_factory=list)
    digests: list[Digest] = field(default_factory=list)
    field_lists: dict[int, list[FieldRef]] = field(default_factory=dict)
    objects: list[Object] = field(default_factory=list)
    meter_targets: dict[str, FieldRef] = field(default_factory=dict)
    called: list[Action] = field(default_factory=list)
    warnings: list[CompileWarning] = field(default_factory=list)
    # Whether externs that are not the target's are left to it all the same.
    emit_externs: bool = False
