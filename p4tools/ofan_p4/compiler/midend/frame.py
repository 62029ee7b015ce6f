"""The lowering's state on its walk through the typed tree: bindings, names, and its results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from ofan_p4.compiler.midend import ir
from ofan_p4.compiler.midend.flow import Action, Item, Label, Leave, Object, Scope, Table
from ofan_p4.compiler.midend.layout import allocate
from ofan_p4.compiler.midend.switch import Switch
from ofan_p4.compiler.semantics import typed as t
from ofan_p4.compiler.semantics import typed_declarations as td
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.annotations import string_annotation
from ofan_p4.compiler.semantics.scope import fail
from ofan_p4.compiler.syntax.nodes import Annotations
from ofan_p4.diagnostics import Span

MAX_WORK = 50_000
"""Steps, inlined calls, turns of loops and instances; large programs have some thousand."""


@dataclass(frozen=True, slots=True)
class Packet:
    """The `packet_in` or `packet_out` of a parser or deparser."""


@dataclass(slots=True, eq=False)
class BlockObject:
    """A control or parser instance: its own bindings, made once, and how often it was applied."""

    name: str
    source: td.Control | td.ParserBlock
    bindings: Bindings
    applied: bool = False


Binding = ir.Operand | Object | BlockObject | Packet
Bindings = dict[ty.Parameter | td.Variable | td.Instance, Binding]


@dataclass(frozen=True, slots=True)
class LeftValue:
    """A place with evaluated indexes, or a slice (of a slice ...) of it.

    The outermost slice is the first.
    """

    place: ir.Operand
    slices: tuple[t.Slice, ...]


@dataclass(frozen=True, slots=True)
class Copy:
    """A result, and the argument that it is copied to when the call ends."""

    target: LeftValue
    value: ir.Operand


@dataclass(frozen=True, slots=True)
class Lowering:
    """The two ways back up: an expression holds calls, and a call inlines the body that it calls.

    They are passed in, since calls and statements are made of all the rest.
    """

    call: Callable[[ty.Expression, Frame], ir.Operand]
    body: Callable[[td.Body, Frame], None]


@dataclass(slots=True, eq=False)
class Builder:
    """The program being made and the counters that keep names apart."""

    switch: Switch
    lowering: Lowering
    # Names that the control plane sees must differ, whatever block they are from.
    table_names: set[str] = field(default_factory=set)
    action_names: dict[str, td.Action] = field(default_factory=dict)
    paths: set[str] = field(default_factory=set)
    numbers: dict[str, int] = field(default_factory=dict)
    globals: Bindings = field(default_factory=dict)
    spent: int = 0

    def spend(self, span: Span, amount: int = 1) -> None:
        """Count work; raises CompileError for a program that grows without bounds by inlining."""
        self.spent += amount
        if self.spent > MAX_WORK:
            fail("the program becomes too large when its calls and loops are inlined", span)

    def unique_path(self, path: str) -> str:
        """Return a path that nothing else has; anonymous instances of one control get numbers."""
        candidate = path
        # Where the last search for this path ended.
        number = self.numbers.get(path, 0)
        while candidate in self.paths:
            candidate = f"{path}_{number}"
            number = number + 1

        self.numbers[path] = number
        self.paths.add(candidate)
        return candidate

    def temporary(self, type_: ty.Type, span: Span, name: str = "tmp") -> ir.Operand:
        """Allocate a place for an intermediate result."""
        return allocate(self.switch.layout, name, type_, span)


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """One inlined block.

    `where` is `parser`, `ingress`, `egress`, `deparser`, `verify` or `compute`.
    """

    builder: Builder
    where: str
    path: str
    bindings: Bindings
    out: list[Item]
    # Where `return` goes, and `loop` where `break` and `continue` go.
    end: Label | None = None
    result: ir.Operand | None = None
    in_action: bool = False
    tables: dict[td.Table, Table] = field(default_factory=dict)
    actions: dict[td.Action, Action] = field(default_factory=dict)
    loop: tuple[Label, Label] | None = None
    # The copies of `exit` before the end: the results of the innermost call first.
    copies: tuple[Copy, ...] = ()

    def emit(self, *items: Item) -> None:
        self.out.extend(items)
        # A label has no place of its own, but never comes alone.
        for item in items:
            if not isinstance(item, Leave | Scope):
                self.builder.spend(item.span)

    def lower_call(self, node: ty.Expression) -> ir.Operand:
        """Emit a call and return its result; see `calls.lower_call`."""
        self.builder.spend(node.span)
        return self.builder.lowering.call(node, self)

    def lower_body(self, body: td.Body) -> None:
        """Emit a list of statements; see `statements.lower_body`."""
        self.builder.lowering.body(body, self)

    def inner(self, **changes: object) -> Frame:
        """Return a frame that shares the bindings."""
        return replace(self, **changes)  # type: ignore[arg-type]

    @contextmanager
    def collect(self, **changes: object) -> Iterator[Frame]:
        """Enter a frame with a flow of its own, found in its `out`."""
        yield replace(self, out=[], **changes)  # type: ignore[arg-type]

    def qualify(self, name: str, annotations: Annotations) -> str:
        """Return the control plane's name of a declaration: `@name`, or path and own name."""
        annotated = string_annotation(annotations, "name") or name
        # `@name(".x")` is a name from the root.
        if annotated.startswith("."):
            return annotated[1:]

        return f"{self.path}.{annotated}" if self.path else annotated

    def action_name(self, action: td.Action) -> str:
        """Return the control plane name of an action; those of the top level have no path."""
        if action.top_level:
            return (string_annotation(action.annotations, "name") or action.name).removeprefix(".")

        return self.qualify(action.name, action.annotations)

    def temporary(self, type_: ty.Type, span: Span, name: str = "tmp") -> ir.Operand:
        return self.builder.temporary(type_, span, name)
