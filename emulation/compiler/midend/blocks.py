"""Controls, inlined where they are applied."""

from __future__ import annotations

from emulation.compiler.diagnostics import Span
from emulation.compiler.midend import ir
from emulation.compiler.midend.arguments import Bound, copy_out, refuse_exit
from emulation.compiler.midend.frame import Bindings, BlockObject, Frame
from emulation.compiler.midend.variables import declare
from emulation.compiler.semantics import typed as t
from emulation.compiler.semantics.scope import fail


def inline_control(block: BlockObject, args: Bound, span: Span, frame: Frame) -> None:
    """Emit the body of a control with its parameters bound."""
    assert isinstance(block.source, t.Control)

    # Inlined twice, its tables would be two under one name.
    if block.applied and _has_tables(block.source):
        fail(
            f"'{block.name}' has tables and is applied more than once, which the target cannot do",
            span,
        )

    block.applied = True
    label = ir.Label("return")
    # Without the caller's bindings: of those, a control sees its parameters only.
    bindings: Bindings = {**block.bindings, **args.bindings}

    with frame.collect(
        bindings=bindings,
        path=block.name,
        end=label,
        tables={},
        actions={},
        # A loop around the call cannot be left from inside of it.
        loop=None,
    ) as inner:
        for item in block.source.locals:
            if isinstance(item, t.Variable):
                declare(item, item.span, inner)

        inner.lower_body(block.source.body)

    # After the body is known, and before anything of it is emitted.
    refuse_exit(args, inner.out, span)
    frame.emit(*ir.close(label, inner.out))
    copy_out(args, span, frame)


def _has_tables(control: t.Control) -> bool:
    return any(
        isinstance(item, t.Table)
        or (
            isinstance(item, t.Instance)
            and isinstance(item.type, t.Control)
            and _has_tables(item.type)
        )
        for item in control.locals
    )
