"""Variables of a control that are read before anything has written to them.

P4 leaves their values undefined ("Reading uninitialized values"); BMv2's are 0. Warnings are
certain: no statement that can come before writes to the variable, on any path. Only scalars are
looked at, as parts of structs are written separately.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from ofan_p4.compiler.semantics import typed as t
from ofan_p4.compiler.semantics import typed_declarations as td
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.diagnostics import CompileWarning

# As p4c calls it.
KIND = "uninitialized_use"


def unset_reads(control: td.Control) -> Iterator[CompileWarning]:
    """Yield a warning for each variable that is read before it is written, at that place."""
    seen: set[object] = set()
    for use, is_read in _uses(control.body):
        variable = use.declaration
        if variable in seen:
            continue

        seen.add(variable)
        is_set = not isinstance(variable, td.Variable) or variable.value is not None
        is_scalar = isinstance(variable.type, ty.Bits) or variable.type == ty.BOOL
        if is_read and is_scalar and not is_set:
            message = f"'{variable.name}' is read before anything is written to it"
            yield CompileWarning(KIND, message, use.span)


def _uses(node: object) -> Iterator[tuple[t.Ref, bool]]:  # noqa: C901 one case for each kind of node
    """Yield the names that a body uses, in the order in which it does, and whether it reads them.

    One branch counts as if it came before the other: its writes may have happened.
    """
    match node:
        case tuple():
            for item in node:
                yield from _uses(item)
        case t.Ref():
            yield node, True
        case t.Assign(_, target, value):
            yield from _uses(value)
            yield from _written(target)
        case t.Update(span, target, old, value):
            yield from _uses(target)
            yield t.Ref(span, old.type, old), False
            yield from _uses(value)
        case t.ForIn(span, variable, values, body):
            yield from _uses(values)
            yield t.Ref(span, variable.type, variable), False
            yield from _uses(body)
        case t.For(_, init, condition, update, body):
            yield from _uses((init, condition, body, update))
        case t.Declare(_, variable):
            yield from _uses(variable.value)
        case t.ActionCall(_, _, action, args):
            yield from _arguments(action.params, args)
            yield from _uses(action.body)
        case t.FunctionCall(_, _, function, args):
            yield from _arguments(function.params, args)
        case t.ExternCall(_, _, signature, _, args) | t.MethodCall(_, _, _, signature, _, args):
            yield from _arguments(signature.params, args)
        case t.BlockApply(_, _, instance, args):
            yield from _arguments(_params(instance), args)
        case t.SwitchAction(_, table, cases):
            yield from _table(table)
            yield from _uses(cases)
        case t.TableApply(_, _, table, _):
            yield from _table(table)
        case ty.Expression() | td.Statement() | t.ActionCase() | t.ValueCase():
            for item in fields(node):
                if item.name not in ("span", "type"):
                    yield from _uses(getattr(node, item.name))


def _table(table: td.Table) -> Iterator[tuple[t.Ref, bool]]:
    for key in table.keys:
        yield from _uses(key.expression)

    for entry in table.actions:
        yield from _arguments(entry.action.bound_params, entry.args)
        yield from _uses(entry.action.body)


def _arguments(params: tuple[ty.Parameter, ...], args: td.Args) -> Iterator[tuple[t.Ref, bool]]:
    """Yield the names in arguments: read before the call, then those that it may write."""
    pairs = list(zip(params, args, strict=False))
    for param, arg in pairs:
        # A control may write all of an argument and read nothing of it.
        if param.direction not in ("out", "inout"):
            yield from _uses(arg)

    for param, arg in pairs:
        if param.direction in ("out", "inout"):
            yield from _written(arg)


def _params(block: td.Instance | ty.Parameter) -> tuple[ty.Parameter, ...]:
    match block.type:
        case td.Control(params=params) | td.ParserBlock(params=params):
            return params
        case ty.BlockDefinition(params=params) | ty.Block(ty.BlockDefinition(params=params)):
            return params
        case _:
            return ()


def _written(target: ty.Expression | None) -> Iterator[tuple[t.Ref, bool]]:
    """Yield the name that a write goes to, and the names that its indices read."""
    match target:
        case t.Ref():
            yield target, False
        case t.Field(_, _, base) | t.StackMember(_, _, base) | t.Slice(_, _, base, _, _):
            yield from _written(base)
        case t.Element(_, _, base, index):
            yield from _uses(index)
            yield from _written(base)
