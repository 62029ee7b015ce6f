"""From a call in the program to the handler of its extern."""

from __future__ import annotations

from ofan_p4.compiler.midend import ir
from ofan_p4.compiler.midend.arguments import Argument, copy_out, evaluate
from ofan_p4.compiler.midend.assignments import as_value, freeze
from ofan_p4.compiler.midend.externs.call import PIPELINES, Call
from ofan_p4.compiler.midend.externs.functions import FUNCTIONS
from ofan_p4.compiler.midend.externs.methods import METHODS
from ofan_p4.compiler.midend.flow import Object
from ofan_p4.compiler.midend.frame import Copy, Frame, Packet
from ofan_p4.compiler.semantics import typed as t
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.scope import fail


def lower_function(node: t.ExternCall, frame: Frame) -> ir.Operand | None:
    """Emit the call of an extern function."""
    handler = FUNCTIONS.get(node.function.name)
    if handler is None and frame.builder.switch.emit_externs:
        foreign(node.function.name, (), node, frame)
        return None
    if handler is None:
        fail(f"the target does not know the function '{node.function.name}'", node.span)

    places, function = handler
    if frame.where not in places:
        fail(
            f"'{node.function.name}' cannot be called here, only in {' or '.join(places)}",
            node.span,
        )

    return function(
        Call(
            node.span,
            name=node.function.name,
            args=node.args,
            types=node.type_args,
            frame=frame,
            operands=_operands(node.function, node, frame),
        )
    )


def _operands(
    signature: ty.Signature, node: t.ExternCall | t.MethodCall, frame: Frame
) -> tuple[Argument | None, ...]:
    """Evaluate the arguments of a call, but strings: the target has none."""
    pairs = {
        i: (param, arg)
        for i, (param, arg) in enumerate(zip(signature.params, node.args, strict=True))
        if arg is not None and arg.type != ty.STRING
    }

    params = tuple(param for param, _ in pairs.values())
    args = tuple(arg for _, arg in pairs.values())
    made = dict(zip(pairs, evaluate(params, args, node.span, frame), strict=True))
    return tuple(made.get(i) for i in range(len(node.args)))


def foreign(
    name: str, first: tuple[ir.Argument, ...], node: t.ExternCall | t.MethodCall, frame: Frame
) -> None:
    """Emit a call that is not the target's own, for a plug-in of it: `--emit-externs`."""
    if node.type != ty.VOID:
        fail("the target writes results of such externs to arguments only", node.span)

    if frame.where not in PIPELINES:
        fail("such an extern can be called in ingress and egress only", node.span)

    if None in node.args:
        fail("the target needs a place for this result", node.span)

    signature = node.function if isinstance(node, t.ExternCall) else node.method
    args: list[ir.Argument] = []
    copies: list[Copy] = []
    for arg in evaluate(signature.params, node.args, node.span, frame):
        operand = arg.operand
        assert isinstance(operand, ir.Operand)
        # An extern writes to whole fields only.
        if arg.left is not None and (arg.left.slices or arg.is_saved):
            if not arg.is_saved:
                operand = freeze(operand, node.span, frame)
            copies.append(Copy(arg.left, operand))

        args.append(operand if isinstance(operand, ir.HeaderAt) else as_value(operand, node.span))

    frame.emit(ir.Primitive(name, (*first, *args), node.span))
    copy_out(copies, node.span, frame)


def lower_method(node: t.MethodCall, frame: Frame) -> ir.Operand | None:
    """Emit the call of a method of an extern object."""
    # The object may be a constructor parameter, so only the frame knows the actual object.
    target = frame.bindings.get(node.object)
    if isinstance(target, Packet):
        kind = "packet"
        owner = None
    elif isinstance(target, Object):
        kind = target.kind
        owner = target
    else:
        fail(f"'{node.object.name}' cannot be used here", node.span)

    handler = METHODS.get((kind, node.method.name))
    if owner is not None and owner.is_foreign:
        name = f"_{kind}_{node.method.name}"
        foreign(name, (ir.Named("extern", owner.name),), node, frame)
        return None
    if handler is None:
        fail(f"the target does not know the method '{node.method.name}' of {kind}", node.span)

    places, function = handler
    if frame.where not in places:
        fail(
            f"'{node.method.name}' cannot be called here, only in {' or '.join(places)}", node.span
        )

    return function(
        Call(
            node.span,
            name=node.method.name,
            args=node.args,
            types=node.type_args,
            frame=frame,
            operands=_operands(node.method, node, frame),
            object=owner,
        )
    )
