"""Declarations of the typed tree: from variables to whole parsers.

They compare by identity, so that the mid-end can bind a declaration to several pieces of storage,
once for every time a control is inlined. The kinds of expressions and statements that they hold
stand in `typed`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ofan_p4.compiler.semantics.types import (
    BlockDefinition,
    Expression,
    Extern,
    Parameter,
    Type,
)
from ofan_p4.compiler.syntax.nodes import Annotations
from ofan_p4.diagnostics import Span

Args = tuple[Expression | None, ...]
"""Arguments in the order of the parameters; None is a don't care for an out parameter."""


@dataclass(frozen=True, slots=True, eq=False)
class Statement:
    """Base of the statements of the typed tree."""

    span: Span


Body = tuple[Statement, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    span: Span
    name: str
    type: Type
    value: Expression | None


@dataclass(frozen=True, slots=True, eq=False)
class ValueSet:
    span: Span
    name: str
    type: Type
    size: Expression
    annotations: Annotations


@dataclass(slots=True, eq=False)
class Function:
    """Filled in two steps, so that the body can be checked after the signature is known."""

    span: Span
    name: str
    params: tuple[Parameter, ...]
    returns: Type
    body: Body = ()


@dataclass(frozen=True, slots=True, eq=False)
class Action:
    """`top_level` actions have no control in front of their name."""

    span: Span
    name: str
    params: tuple[Parameter, ...]
    body: Body
    annotations: Annotations
    top_level: bool

    @property
    def bound_params(self) -> tuple[Parameter, ...]:
        """Parameters with a direction: given where the action is listed."""
        return tuple(param for param in self.params if param.direction)

    @property
    def runtime_params(self) -> tuple[Parameter, ...]:
        """Parameters without direction: given by the control plane."""
        return tuple(param for param in self.params if not param.direction)


@dataclass(frozen=True, slots=True, eq=False)
class Instance:
    """An extern object, control, parser or package made at compile time."""

    span: Span
    name: str
    type: InstanceType
    args: tuple[Expression | Instance, ...]
    annotations: Annotations
    anonymous: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Key:
    span: Span
    expression: Expression
    match_kind: str
    name: str
    annotations: Annotations


@dataclass(frozen=True, slots=True, eq=False)
class ActionEntry:
    """An action in a table's list; `args` are those of its directional parameters."""

    span: Span
    action: Action
    args: Args
    annotations: Annotations


@dataclass(frozen=True, slots=True, eq=False)
class ActionChoice:
    """An action with all its run-time arguments: a default action or the action of an entry."""

    span: Span
    entry: ActionEntry
    args: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    span: Span
    keys: tuple[Expression, ...]
    choice: ActionChoice
    priority: Expression | None
    # The program's own priority, which P4Runtime shows; only if the largest wins, as it does there.
    own_priority: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table; the properties of v1model are resolved, `None` where absent."""

    span: Span
    name: str
    keys: tuple[Key, ...]
    actions: tuple[ActionEntry, ...]
    default: ActionChoice
    default_const: bool
    entries: tuple[Entry, ...]
    entries_const: bool
    size: Expression | None
    implementation: Instance | None
    counters: Instance | None
    meters: Instance | None
    support_timeout: bool
    annotations: Annotations


@dataclass(frozen=True, slots=True, eq=False)
class Control:
    span: Span
    name: str
    params: tuple[Parameter, ...]
    constructor: tuple[Parameter, ...]
    locals: tuple[Variable | Instance | Action | Table, ...]
    body: Body
    annotations: Annotations


@dataclass(frozen=True, slots=True, eq=False)
class SelectCase:
    span: Span
    keys: tuple[Expression, ...]
    state: str


@dataclass(frozen=True, slots=True, eq=False)
class Transition:
    """Where to go on.

    `keys` is empty for a plain jump; its target is then the state of the only case.
    """

    span: Span
    keys: tuple[Expression, ...]
    cases: tuple[SelectCase, ...]


@dataclass(frozen=True, slots=True, eq=False)
class State:
    span: Span
    name: str
    body: Body
    transition: Transition
    annotations: Annotations


@dataclass(frozen=True, slots=True, eq=False)
class ParserBlock:
    span: Span
    name: str
    params: tuple[Parameter, ...]
    constructor: tuple[Parameter, ...]
    locals: tuple[Variable | Instance | ValueSet, ...]
    states: tuple[State, ...]
    annotations: Annotations


InstanceType = Extern | Control | ParserBlock | BlockDefinition
