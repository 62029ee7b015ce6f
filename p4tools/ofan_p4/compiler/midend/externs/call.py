"""A call of an extern as the handlers see it, and how they read arguments and write results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ofan_p4.compiler.midend import ir
from ofan_p4.compiler.midend.arguments import Argument
from ofan_p4.compiler.midend.assignments import as_value, assign
from ofan_p4.compiler.midend.flow import Object
from ofan_p4.compiler.midend.frame import Frame, LeftValue
from ofan_p4.compiler.midend.layout import header_field
from ofan_p4.compiler.midend.operands import is_signed, reduce_to
from ofan_p4.compiler.midend.variables import store
from ofan_p4.compiler.semantics import typed as t
from ofan_p4.compiler.semantics import typed_declarations as td
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.scope import fail
from ofan_p4.diagnostics import Span

PIPELINES = ("ingress", "egress")


ALGORITHMS = (
    "crc32",
    "crc32_custom",
    "crc16",
    "crc16_custom",
    "random",
    "identity",
    "csum16",
    "xor16",
)


@dataclass(frozen=True, slots=True)
class Call:
    """A call as the handlers below see it."""

    span: Span
    name: str
    args: td.Args
    types: tuple[ty.Type, ...]
    frame: Frame
    operands: tuple[Argument | None, ...]
    object: Object | None = None

    def arg(self, index: int) -> ty.Expression:
        argument = self.args[index]
        assert argument is not None
        return argument

    def operand(self, index: int) -> ir.Operand:
        """Return an argument as it was evaluated before the call."""
        argument = self.operands[index]
        if argument is None or not isinstance(argument.operand, ir.Operand):
            fail("the target has no such argument", self.arg(index).span)

        return argument.operand

    def value(self, index: int) -> ir.Value:
        return as_value(self.operand(index), self.arg(index).span)

    def target(self, index: int) -> LeftValue | None:
        """Return where an out argument is written to, None if it is `_`."""
        argument = self.operands[index]
        return None if argument is None else argument.left

    def emit(self, name: str, *args: ir.Argument) -> None:
        self.frame.emit(ir.Primitive(name, args, self.span))


Handler = tuple[tuple[str, ...], Callable[[Call], ir.Operand | None]]
"""Where a function may be called, and what makes steps of it."""


def owner(call: Call) -> Object:
    """Return the object of the method that is called."""
    assert call.object is not None
    return call.object


def to_field(call: Call, index: int, step: Callable[[ir.FieldRef], None]) -> None:
    """Run a step that writes an out argument, through a copy where that is no single field."""
    target = call.target(index)
    if target is not None and isinstance(target.place, ir.FieldRef) and not target.slices:
        step(target.place)
        _with_sign(target.place, call)
        return

    arg = call.args[index]
    type_ = arg.type if arg is not None else ty.Bits(32)
    copy = call.frame.temporary(type_, call.span)
    if not isinstance(copy, ir.FieldRef):
        fail("the target writes this result to a single field only", call.span)

    step(copy)
    _with_sign(copy, call)
    if target is not None:
        store(target, copy, call.span, call.frame)


def _with_sign(field: ir.FieldRef, call: Call) -> None:
    """Bring a signed field into its range: a register or a hash writes values without sign."""
    if is_signed(field.type):
        call.frame.emit(ir.Assign(field, reduce_to(field, field.type), call.span))


# Values of any shape as lists of fields


def flatten(operand: ir.Operand, span: Span) -> list[ir.Value]:
    """Return the single values that an operand is made of."""
    match operand:
        case ir.StructAt(_, _, items):
            return [value for item in items for value in flatten(item, span)]
        case ir.HeaderAt(_, header):
            return [
                value
                for item in header.fields
                for value in flatten(header_field(operand, item.name), span)
            ]
        case _:
            return [as_value(operand, span)]


def as_fields(operand: ir.Operand, span: Span, frame: Frame) -> tuple[ir.Value, ...]:
    """Return values as the target's lists want them: fields, or numbers of known width."""
    fields = []
    for value in flatten(operand, span):
        # BMv2 hashes and sends bits, so the number of them must be known.
        if isinstance(value, ir.Num) and value.type == ty.INT:
            fail(f"the number {value.value} needs a width here", span)

        plain = isinstance(value, ir.Num | ir.FieldRef)
        fields.append(value if plain else as_value(freeze_value(value, span, frame), span))

    return tuple(fields)


def freeze_value(value: ir.Value, span: Span, frame: Frame) -> ir.Operand:
    """Copy a value to a temporary field, also if it is constant."""
    copy = frame.temporary(value.type, span)
    assign(copy, value, span, frame)
    return copy


def algorithm_of(node: ty.Expression) -> str:
    """Return the name of a hash algorithm, which must be a member of HashAlgorithm."""
    if not isinstance(node, t.Literal) or node.value not in ALGORITHMS:
        fail("the hash algorithm must be known at compile time", node.span)

    if node.value == "random":
        fail("the target has no hash algorithm 'random'; use the function random()", node.span)

    return str(node.value)
