"""From `main` to everything that the switch needs."""

from __future__ import annotations

from ofan_p4.compiler.midend import ir
from ofan_p4.compiler.midend.arguments import Bound
from ofan_p4.compiler.midend.blocks import inline_control
from ofan_p4.compiler.midend.calls import lower_call
from ofan_p4.compiler.midend.externs.copies import collect_field_lists
from ofan_p4.compiler.midend.flow import Flow, Leave, Scope
from ofan_p4.compiler.midend.frame import Bindings, BlockObject, Builder, Frame, Lowering, Packet
from ofan_p4.compiler.midend.layout import allocate, standard_metadata
from ofan_p4.compiler.midend.objects import make_block, make_object
from ofan_p4.compiler.midend.statements import lower_body
from ofan_p4.compiler.midend.states import lower_parser
from ofan_p4.compiler.midend.switch import Layout, Switch
from ofan_p4.compiler.semantics import typed as t
from ofan_p4.compiler.semantics import typed_declarations as td
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.scope import fail
from ofan_p4.diagnostics import Span

ROLES = ("parser", "verify", "ingress", "egress", "compute", "deparser")
"""What the arguments of V1Switch are, in order."""


def lower_program(program: t.Program, emit_externs: bool = False) -> Switch:
    """Lower a checked v1model program; raises CompileError for code that the target cannot run."""
    main = program.main
    assert isinstance(main.type, ty.BlockDefinition)
    if main.type.name != "V1Switch" or len(main.args) != len(ROLES):
        fail(f"'main' must be a V1Switch, not {main.type.name}", main.span)

    switch = Switch(program, Layout(), emit_externs=emit_externs)
    builder = Builder(switch, Lowering(call=lower_call, body=lower_body))
    frame = Frame(builder, where="top", path="", bindings=builder.globals, out=[])

    # Externs of the top level exist once, whichever block uses them.
    for instance in program.instances:
        builder.globals[instance] = make_object(instance, frame)

    blocks = {role: _block(arg, frame) for role, arg in zip(ROLES, main.args, strict=True)}
    _lower_blocks(blocks, frame, switch)
    return switch


def _block(arg: ty.Expression | td.Instance, frame: Frame) -> BlockObject:
    if not isinstance(arg, td.Instance) or not isinstance(arg.type, td.Control | td.ParserBlock):
        fail("expected a parser or control", arg.span)

    # Top blocks are named after their types, as by p4c: `MyIngress.t`, not `ig.t`.
    frame.builder.paths.add(arg.type.name)
    return make_block(arg.type, arg.args, arg.type.name, frame)


def _lower_blocks(blocks: dict[str, BlockObject], frame: Frame, switch: Switch) -> None:
    """Lower all blocks over the same headers and metadata."""
    _, headers, metadata, standard = blocks["parser"].source.params
    assert isinstance(standard.type, ty.Struct)
    # One place for each of the types H, M and standard_metadata_t: the six blocks of V1Switch pass
    # the same values on, so nothing is ever copied between them.
    storage = {
        headers.type: allocate(switch.layout, "", headers.type, headers.span),
        metadata.type: _user_metadata(metadata, headers, switch),
        standard.type: standard_metadata(standard.type),
    }

    # Before any block, which may add lists of its own: their ids go by their order.
    collect_field_lists(storage[metadata.type], metadata.type, metadata.span, switch)
    for role, block in blocks.items():
        bindings = _parameters(block, storage)
        inner = frame.inner(where=role, out=[])
        # A parser becomes states, everything else is flow.
        if role == "parser":
            switch.states = lower_parser(block, bindings, inner)
            continue

        inline_control(block, Bound(bindings, ()), block.source.span, inner)
        _keep(role, block, tuple(inner.out), switch)


def _user_metadata(metadata: ty.Parameter, headers: ty.Parameter, switch: Switch) -> ir.Operand:
    # Parameters are distinguished by their types (see `_parameters`).
    if metadata.type == headers.type:
        fail("headers and metadata must have different types", metadata.span)

    return allocate(switch.layout, "userMetadata", metadata.type, metadata.span)


def _parameters(block: BlockObject, storage: dict[ty.Type, ir.Operand]) -> Bindings:
    """Bind the parameters of a top block, which are distinguished by their types."""
    bindings: Bindings = {}
    for param in block.source.params:
        bindings[param] = Packet() if isinstance(param.type, ty.Extern) else storage[param.type]

    return bindings


def _keep(role: str, block: BlockObject, flow: Flow, switch: Switch) -> None:
    span: Span = block.source.span
    match role:
        case "ingress":
            switch.ingress = flow
            switch.ingress_span = span
        case "egress":
            switch.egress = flow
            switch.egress_span = span
        case _:
            _refuse_steps(role, flow, span)


def _refuse_steps(role: str, flow: Flow, span: Span) -> None:
    """The deparser and the checksum controls of the target have no steps of their own."""
    if flow:
        allowed = "calls of emit()" if role == "deparser" else "calls of the checksum functions"
        fail(f"the target allows only {allowed} here", _first_span(flow) or span)


def _first_span(flow: Flow) -> Span | None:
    for item in flow:
        if isinstance(item, Scope):
            return _first_span(item.body)
        # A Leave has no place in the source; the scope that it leaves has a place.
        if not isinstance(item, Leave):
            return item.span

    return None
