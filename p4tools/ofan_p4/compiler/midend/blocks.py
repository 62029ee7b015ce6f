"""Controls, inlined where they are applied."""

from __future__ import annotations

from ofan_p4.compiler.midend.arguments import Bound, copy_out
from ofan_p4.compiler.midend.flow import Label, close
from ofan_p4.compiler.midend.frame import Bindings, BlockObject, Frame
from ofan_p4.compiler.midend.variables import declare
from ofan_p4.compiler.semantics import typed_declarations as td
from ofan_p4.compiler.semantics.scope import fail
from ofan_p4.diagnostics import Span


def inline_control(block: BlockObject, args: Bound, span: Span, frame: Frame) -> None:
    """Emit the body of a control with its parameters bound."""
    assert isinstance(block.source, td.Control)

    # Inlined twice, its tables would be two under one name.
    if block.applied and _has_tables(block.source):
        fail(
            f"'{block.name}' has tables and is applied more than once, which the target cannot do",
            span,
        )

    block.applied = True
    label = Label("return")
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
        copies=(*args.copies, *frame.copies),
    ) as inner:
        for item in block.source.locals:
            if isinstance(item, td.Variable):
                declare(item, item.span, inner)

        inner.lower_body(block.source.body)

    frame.emit(*close(label, inner.out))
    copy_out(args.copies, span, frame)


def _has_tables(control: td.Control) -> bool:
    return any(
        isinstance(item, td.Table)
        or (
            isinstance(item, td.Instance)
            and isinstance(item.type, td.Control)
            and _has_tables(item.type)
        )
        for item in control.locals
    )
