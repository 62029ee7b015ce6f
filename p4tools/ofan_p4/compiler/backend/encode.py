"""Operands and steps as BMv2 JSON (behavioral-model, docs/JSON_format.md)."""

from __future__ import annotations

from typing import Any

from ofan_p4.compiler.midend import ir
from ofan_p4.compiler.midend.operands import bits_of, fits, inside
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.scope import fail
from ofan_p4.diagnostics import Span

Json = dict[str, Any]


def hexstr(value: int, width: int = 0) -> str:
    """Return a number as the format wants it: `0x`, padded to whole bytes of `width` bits."""
    digits = 2 * ((width + 7) // 8)
    return f"{'-' if value < 0 else ''}0x{abs(value):0{digits}x}"


def source_info(span: Span) -> Json:
    """Return where something stands, lines from 1 and columns from 0 as p4c writes them."""
    where = span.location
    lines = span.text.split("\n", 1)
    return {
        "filename": where.file,
        "line": where.line,
        "column": where.column - 1,
        "source_fragment": lines[0] + (" ..." if len(lines) > 1 else ""),
    }


# Expressions


def expression(value: ir.Value) -> Json:  # noqa: C901 one line for each kind of value
    """Return a value as an element of an expression; bool fields are read as booleans."""
    match value:
        case ir.Num(number, type_):
            return {"type": "hexstr", "value": hexstr(number, _width(type_))}
        case ir.Flag(flag):
            return {"type": "bool", "value": flag}
        case ir.RunTime(index, type_):
            # Inside an expression a parameter is `local`, as an argument `runtime_data` (see
            # `rvalue`).
            return _as_bool({"type": "local", "value": index}, type_)
        case ir.FieldRef(header, name, type_):
            return _as_bool(field(header, name), type_)
        case ir.Valid():
            return _valid(value)
        case ir.Compute(op, left, right):
            return operation(op, expression(left) if left is not None else None, expression(right))
        case ir.Choose(condition, then, otherwise):
            inner: Json = {"op": "?", "left": expression(then), "right": expression(otherwise)}
            return {"type": "expression", "value": {**inner, "cond": expression(condition)}}
        # A unary operator has its operand on the right.
        case ir.LastIndex(stack):
            return operation("last_stack_index", None, {"type": "header_stack", "value": stack})
        case ir.LastField(stack, name, type_):
            return _as_bool({"type": "stack_field", "value": [stack, name]}, type_)
        case ir.ElementField(stack, size, index, offset, type_):
            access: Json = {
                "op": "access_field",
                "left": _element(stack, size, index),
                "right": offset,
            }

            return _as_bool({"type": "expression", "value": access}, type_)
        case ir.Lookahead(offset, width):
            return {"type": "lookahead", "value": [offset, width]}
        case ir.Widened(stored):
            return expression(stored)


def _width(type_: ty.Type) -> int:
    below = bits_of(type_)
    return below.width if isinstance(below, ty.Bits) else 0


def field(header: str, name: str) -> Json:
    """Return a reference to a field."""
    return {"type": "field", "value": [header, name]}


def operation(op: str, left: Json | None, right: Json) -> Json:
    """Return an operator with its operands; `left` is None for an unary operator."""
    return {"type": "expression", "value": {"op": op, "left": left, "right": right}}


def _as_bool(json: Json, type_: ty.Type) -> Json:
    """Booleans are stored as numbers."""
    # BMv2's expressions tell booleans from numbers, its fields do not.
    return operation("d2b", None, json) if bits_of(type_) == ty.BOOL else json


def _element(stack: str, size: int, index: ir.Value) -> Json:
    """Return an element.

    A read with a wrong index, which is undefined, gets the first: the target would end with it.
    """
    # An index that surely fits is left alone: the check costs time for every packet.
    if not fits(index, size):
        index = ir.Choose(inside(index, size), index, ir.Num(0, index.type), index.type)

    return operation(
        "dereference_header_stack", {"type": "header_stack", "value": stack}, expression(index)
    )


def _valid(value: ir.Valid) -> Json:
    match value.of:
        case ir.HeaderAt(name):
            return operation("d2b", None, field(name, "$valid$"))
        case ir.UnionAt(name):
            return operation("valid_union", None, {"type": "header_union", "value": name})
        case ir.ElementAt(stack, index):
            return operation("valid", None, _element(stack.name, len(stack.elements), index))


# Arguments of primitives


def rvalue(value: ir.Value) -> Json:
    """Return a value as an argument that is read.

    Numbers and fields stand plainly, the rest is a wrapped expression.
    """
    # ... and back, since a primitive takes numbers only.
    if bits_of(value.type) == ty.BOOL:
        return wrapped(operation("b2d", None, expression(value)))

    match value:
        case ir.RunTime(index):
            return {"type": "runtime_data", "value": index}
        case ir.Num() | ir.FieldRef() | ir.Lookahead():
            return expression(value)
        case ir.Widened(stored):
            return rvalue(stored)
        case _:
            return wrapped(expression(value))


def wrapped(json: Json) -> Json:
    """Return an expression as the argument of a primitive, which the format wraps once more."""
    return {"type": "expression", "value": json}


def lvalue(value: ir.FieldRef | ir.ElementField) -> Json:
    """Return a field as an argument that is written."""
    if isinstance(value, ir.FieldRef):
        return field(value.header, value.name)

    access: Json = {
        "op": "access_field",
        "left": _element(value.stack, value.size, value.index),
        "right": value.offset,
    }

    return wrapped({"type": "expression", "value": access})


def argument(value: ir.Argument, span: Span) -> Json:  # noqa: C901 one line for each kind
    """Return any argument of a primitive."""
    match value:
        case ir.Named(kind, name):
            return {"type": kind, "value": name}
        case ir.Text(text):
            return {"type": "string", "value": text}
        case ir.Vector(items):
            return {"type": "parameters_vector", "value": [rvalue(item) for item in items]}
        case ir.HeaderAt(name):
            return {"type": "header", "value": name}
        case ir.UnionAt(name):
            return {"type": "header_union", "value": name}
        case ir.StackAt(name, stack):
            union = stack.element.kind == "header_union"
            return {"type": "header_union_stack" if union else "header_stack", "value": name}
        case ir.ElementAt(stack_at, index):
            return wrapped(_element(stack_at.name, len(stack_at.elements), index))
        case ir.StructAt() | ir.NextAt() | ir.NextMember() | ir.LastAt() | ir.Invalid():
            return fail("the target cannot use this here", span)
        case _:
            return rvalue(value)


# Steps


def step(item: ir.Step) -> Json:
    """Return a step of an action."""
    match item:
        case ir.Assign(target, value, span):
            return primitive("assign", [lvalue(target), rvalue(value)], span)
        case ir.Primitive("assert" | "assume" as name, (condition,), span):
            return primitive(name, [argument(condition, span)], span)
        case ir.Primitive(
            "execute_meter" | "register_read" | "modify_field_rng_uniform" as name, args, span
        ):
            return primitive(name, [_written(arg, span) for arg in args], span)
        case ir.Primitive("modify_field_with_hash_based_offset" as name, (target, *rest), span):
            return primitive(
                name, [_written(target, span), *(argument(arg, span) for arg in rest)], span
            )
        case ir.Primitive(name, args, span):
            return primitive(name, [argument(arg, span) for arg in args], span)
        case ir.Extract(span=span) | ir.Advance(span=span) | ir.Verify(span=span):
            return fail("this is possible in a parser only", span)


def _written(value: ir.Argument, span: Span) -> Json:
    """Return a field as a plain reference, also if it is a bool."""
    return lvalue(value) if isinstance(value, ir.FieldRef) else argument(value, span)


def primitive(op: str, parameters: list[Json], span: Span) -> Json:
    """Return a primitive with the place it comes from."""
    return {"op": op, "parameters": parameters, "source_info": source_info(span)}
