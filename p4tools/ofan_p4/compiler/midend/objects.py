"""Instances: the controls, parsers and extern objects that exist at compile time."""

from __future__ import annotations

from ofan_p4.compiler.midend.expressions import constant, lower, size_of
from ofan_p4.compiler.midend.flow import Object
from ofan_p4.compiler.midend.frame import Binding, Bindings, BlockObject, Frame
from ofan_p4.compiler.semantics import typed as t
from ofan_p4.compiler.semantics import typed_declarations as td
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.scope import fail


def make_block(
    block: td.Control | td.ParserBlock,
    args: tuple[ty.Expression | td.Instance, ...],
    name: str,
    frame: Frame,
) -> BlockObject:
    """Make an instance of a control or parser with all the instances that it holds."""
    frame.builder.spend(block.span)
    # A block sees the top level and itself, not the block that holds it.
    bindings: Bindings = dict(frame.builder.globals)
    for param, arg in zip(block.constructor, args, strict=True):
        bindings[param] = _constructor_argument(arg, frame)

    # Tables and actions belong to an instance: two instances of a control have two of each.
    inner = frame.inner(path=name, bindings=bindings, tables={}, actions={})
    for item in block.locals:
        if isinstance(item, td.Instance):
            bindings[item] = make_instance(item, inner)

    return BlockObject(name, block, bindings)


def _constructor_argument(arg: ty.Expression | td.Instance, frame: Frame) -> Binding:
    if isinstance(arg, td.Instance):
        # A named instance exists already, an instance that is written in place is made now.
        return frame.bindings[arg] if arg in frame.bindings else make_instance(arg, frame)
    if isinstance(arg, t.Ref):
        return frame.bindings[arg.declaration]

    return lower(arg, frame)


def make_instance(instance: td.Instance, frame: Frame) -> Object | BlockObject:
    """Make an extern object, control or parser that is declared in this frame's block."""
    if isinstance(instance.type, td.Control | td.ParserBlock):
        name = frame.builder.unique_path(frame.qualify(instance.name, instance.annotations))
        return make_block(instance.type, instance.args, name, frame)

    return make_object(instance, frame)


def make_object(instance: td.Instance, frame: Frame) -> Object:
    """Make an extern object with its evaluated constructor arguments."""
    assert isinstance(instance.type, ty.Extern)
    name = (
        # `semantics` has given the anonymous ones their whole name.
        instance.name if instance.anonymous else frame.qualify(instance.name, instance.annotations)
    )
    # The number of arguments is enough: the checker has filled in defaults and refused the rest.
    signature = next(
        object_
        for object_ in instance.type.definition.constructors
        if len(object_.params) == len(instance.args)
    )

    args = {
        param.name: _object_argument(arg, param.name, frame)
        for param, arg in zip(signature.params, instance.args, strict=True)
    }

    object_ = Object(name, instance, args)
    if object_.is_foreign and not frame.builder.switch.emit_externs:
        fail(
            f"the target does not know the extern {object_.kind} (see --emit-externs)",
            instance.span,
        )

    if any(
        # P4Runtime and BMv2 have a space of names for each kind.
        present.name == name and present.kind == object_.kind
        for present in frame.builder.switch.objects
    ):
        fail(f"there is more than one {object_.kind} '{name}'", instance.span)

    frame.builder.switch.objects.append(object_)
    return object_


def _object_argument(arg: ty.Expression | td.Instance, name: str, frame: Frame) -> int | str:
    if isinstance(arg, t.Literal) and isinstance(arg.value, str):
        return arg.value

    if isinstance(arg, td.Instance):
        fail("a constructor argument must be known at compile time", arg.span)

    if name == "size":
        return size_of(arg, frame, "'size'")

    return constant(arg, frame, "a constructor argument")
