"""Arguments: evaluated one after the other, then bound to parameters.

A parameter is bound to the argument itself, or to a copy if the program could tell them apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ofan_p4.compiler.midend import ir
from ofan_p4.compiler.midend.assignments import assign, freeze, reset
from ofan_p4.compiler.midend.expressions import has_effects, in_text_order, lower, static_place
from ofan_p4.compiler.midend.frame import Binding, Bindings, Copy, Frame, LeftValue
from ofan_p4.compiler.midend.operands import is_constant, overlap
from ofan_p4.compiler.midend.variables import left_value, load, store
from ofan_p4.compiler.semantics import typed as t
from ofan_p4.compiler.semantics import typed_declarations as td
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.walk import paths
from ofan_p4.diagnostics import Span


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument after its evaluation.

    `operand` is its value. `left` is where the result of an `out` or `inout` parameter goes: None
    for other parameters and for `_`. `is_saved` if `operand` is a temporary that no later argument
    could change.
    """

    operand: Binding
    left: LeftValue | None = None
    is_saved: bool = False

    @property
    def storage(self) -> ir.Operand | None:
        """The storage of the caller that the call reads or writes."""
        operand = self.left.place if self.left is not None else self.operand
        return operand if isinstance(operand, ir.Operand) else None


@dataclass(frozen=True, slots=True)
class Bound:
    """Parameters' bindings, and the copies to make after the call in their order."""

    bindings: Bindings
    copies: tuple[Copy, ...]


def evaluate(
    params: tuple[ty.Parameter, ...], args: td.Args, span: Span, frame: Frame
) -> list[Argument]:
    """Evaluate arguments in the order of the text; return them in the order of the parameters.

    "Calling convention": the left value of an `out` or `inout` argument is saved, and so is the
    value of every other argument, before the next argument is evaluated.
    """
    order = in_text_order(args)
    last = max((position for position, i in enumerate(order) if _has_effects(args[i])), default=0)
    made = {
        i: _argument(params[i], args[i], span, frame, is_last=position >= last)
        for position, i in enumerate(order)
    }

    return [made[i] for i in range(len(params))]


def _has_effects(arg: ty.Expression | None) -> bool:
    return arg is not None and has_effects(arg)


def _argument(
    param: ty.Parameter, arg: ty.Expression | None, span: Span, frame: Frame, is_last: bool
) -> Argument:
    """Evaluate an argument; if it `is_last`, no later argument has effects."""
    if arg is None:
        # A don't care still needs a place that the body can write to.
        return Argument(frame.temporary(param.type, span, param.name))
    if isinstance(param.type, ty.Extern) and isinstance(arg, t.Ref):
        return Argument(frame.bindings[arg.declaration])

    if not is_written(param):
        value = lower(arg, frame)
        return Argument(value if is_last else freeze(value, arg.span, frame))

    target = left_value(arg, frame)
    value = load(target, arg.span)
    if is_last or param.direction == "out":
        return Argument(value, target)

    saved = frame.temporary(param.type, span, param.name)
    assign(saved, value, span, frame)
    return Argument(saved, target, is_saved=True)


def is_written(param: ty.Parameter) -> bool:
    """Say whether a call writes to the argument of a parameter."""
    return param.direction in ("out", "inout")


def bind(
    params: tuple[ty.Parameter, ...], args: td.Args, span: Span, frame: Frame, body: td.Body = ()
) -> Bound:
    """Bind parameters to arguments.

    `body` is given where it can use the caller's variables, as actions do.
    """
    evaluated = evaluate(params, args, span, frame)
    used = list(_used_outside(body, frame))
    bindings: Bindings = {}
    copies: dict[int, Copy] = {}

    for i, (param, arg) in enumerate(zip(params, evaluated, strict=True)):
        in_use = used + [
            storage for storage in _storage(evaluated, params, i) if storage is not None
        ]
        if not isinstance(arg.operand, ir.Operand):
            bindings[param] = arg.operand
        elif is_written(param):
            bindings[param] = storage = _writable(param, arg, in_use, span, frame)
            # Bound to its own place, an argument needs no copy: writing the parameter writes it.
            if arg.left is not None and storage is not arg.left.place:
                copies[i] = Copy(arg.left, storage)
        else:
            bindings[param] = _readable(arg.operand, in_use, span, frame)

    return Bound(bindings, tuple(copies[i] for i in in_text_order(args) if i in copies))


def _storage(
    arguments: Sequence[Argument], params: tuple[ty.Parameter, ...], index: int
) -> Iterator[ir.Operand | None]:
    """Yield the storage that must differ from an argument's for it to be bound without a copy."""
    for i, (param, arg) in enumerate(zip(params, arguments, strict=True)):
        # Two that are only read may be the same.
        if i != index and (is_written(param) or is_written(params[index])):
            yield arg.storage


def _writable(
    param: ty.Parameter, arg: Argument, shared: list[ir.Operand], span: Span, frame: Frame
) -> ir.Operand:
    """Return the argument's own place, or a copy if it is part of a field or shared."""
    assert isinstance(arg.operand, ir.Operand)
    if arg.is_saved:
        return arg.operand

    # Copy-in/copy-out shows only where two names mean one place, or where the place is no whole
    # field: everywhere else the argument itself can stand for the parameter.
    is_direct = isinstance(arg.operand, ir.FieldRef | ir.Place) and not any(
        overlap(arg.operand, operand) for operand in shared
    )
    storage = arg.operand if is_direct else frame.temporary(param.type, span, param.name)
    if param.direction == "out":
        reset(storage, span, frame)
    elif not is_direct:
        assign(storage, arg.operand, span, frame)

    return storage


def _readable(
    operand: ir.Operand, written: list[ir.Operand], span: Span, frame: Frame
) -> ir.Operand:
    if is_constant(operand):
        return operand

    # A computed value may be used often in the body; one temporary is cheaper than the whole
    # expression each time, and the fields that it reads cannot change under it.
    computed = isinstance(operand, ir.Compute | ir.Choose)
    if computed or any(overlap(operand, target) for target in written):
        return freeze(operand, span, frame)

    return operand


def _used_outside(body: td.Body, frame: Frame) -> Iterator[ir.Operand]:
    """Yield the storage of the caller that a body uses by name."""
    for path in paths(body):
        operand = static_place(path, frame)
        if operand is not None:
            yield operand


def copy_out(copies: Sequence[Copy], span: Span, frame: Frame) -> None:
    """Emit the copies that end a call."""
    for copy in copies:
        store(copy.target, copy.value, span, frame)
