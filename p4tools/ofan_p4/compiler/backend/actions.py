"""Flow as the primitives of an action: branches become jumps over primitives."""

from __future__ import annotations

from ofan_p4.compiler.backend.encode import Json, hexstr, primitive, rvalue, step
from ofan_p4.compiler.midend.flow import (
    Apply,
    Flow,
    Item,
    Label,
    Leave,
    Repeat,
    Scope,
    Stop,
    Test,
)
from ofan_p4.compiler.semantics.scope import fail
from ofan_p4.diagnostics import Span

END = Label("end")


def primitives(flow: Flow) -> list[Json]:
    """Return the primitives that run a flow."""
    assembler = _Assembler()
    assembler.add_all(flow)
    assembler.place(END)

    return assembler.resolve()


class _Assembler:
    """Primitives with jumps; a jump's target is a label until all positions are known."""

    def __init__(self) -> None:
        self.code: list[Json] = []
        self.jumps: dict[int, Label] = {}
        self.positions: dict[Label, int] = {}

    def place(self, label: Label) -> None:
        self.positions[label] = len(self.code)

    def add_all(self, flow: Flow) -> None:
        for item in flow:
            self.add(item)

    def add(self, item: Item) -> None:
        match item:
            case Test():
                self._test(item)
            case Scope(label, body):
                self.add_all(body)
                self.place(label)
            case Leave(label):
                # A Leave has no place in the source.
                self._jump(label, None)
            case Repeat(body, span):
                top = Label("top")
                self.place(top)
                self.add_all(body)
                self._jump(top, span)
            case Stop(span):
                # The jump ends the action as well as `exit` ends the pipeline.
                self.code.append(primitive("exit", [], span))
                self._jump(END, span)
            case Apply(span=span):
                fail(
                    "a table cannot be applied in an action or in a loop that is not unrolled", span
                )
            case _:
                self.code.append(step(item))

    def _test(self, item: Test) -> None:
        otherwise = Label("else")
        after = Label("after")
        self.jumps[len(self.code)] = otherwise
        self.code.append(primitive("_jump_if_zero", [rvalue(item.condition)], item.span))
        self.add_all(item.then)

        if item.otherwise:
            self._jump(after, item.span)

        self.place(otherwise)
        self.add_all(item.otherwise)
        self.place(after)

    def _jump(self, label: Label, span: Span | None) -> None:
        self.jumps[len(self.code)] = label
        self.code.append(
            primitive("_jump", [], span) if span else {"op": "_jump", "parameters": []}
        )

    def resolve(self) -> list[Json]:
        # Only now are all positions known: jumps go forward, and back in loops.
        for position, label in self.jumps.items():
            target = {"type": "hexstr", "value": hexstr(self.positions[label])}
            self.code[position]["parameters"].append(target)

        return self.code
