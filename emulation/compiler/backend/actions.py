"""Flow as the primitives of an action: branches become jumps over primitives."""

from __future__ import annotations

from emulation.compiler.backend.encode import Json, hexstr, primitive, rvalue, step
from emulation.compiler.diagnostics import Span
from emulation.compiler.midend import ir
from emulation.compiler.semantics.scope import fail

END = ir.Label("end")


def primitives(flow: ir.Flow) -> list[Json]:
    """Return the primitives that run a flow."""
    assembler = _Assembler()
    assembler.add_all(flow)
    assembler.place(END)

    return assembler.resolve()


class _Assembler:
    """Primitives with jumps whose targets are labels until all positions are known."""

    def __init__(self) -> None:
        self.code: list[Json] = []
        self.jumps: dict[int, ir.Label] = {}
        self.positions: dict[ir.Label, int] = {}

    def place(self, label: ir.Label) -> None:
        self.positions[label] = len(self.code)

    def add_all(self, flow: ir.Flow) -> None:
        for item in flow:
            self.add(item)

    def add(self, item: ir.Item) -> None:
        match item:
            case ir.Test():
                self._test(item)
            case ir.Scope(label, body):
                self.add_all(body)
                self.place(label)
            case ir.Leave(label):
                # A Leave has no place in the source.
                self._jump(label, None)
            case ir.Repeat(body, span):
                top = ir.Label("top")
                self.place(top)
                self.add_all(body)
                self._jump(top, span)
            case ir.Stop(span):
                # The jump ends the action as well as `exit` ends the pipeline.
                self.code.append(primitive("exit", [], span))
                self._jump(END, span)
            case ir.Apply(span=span):
                fail(
                    "a table cannot be applied in an action or in a loop that is not unrolled", span
                )
            case _:
                self.code.append(step(item))

    def _test(self, item: ir.Test) -> None:
        otherwise = ir.Label("else")
        after = ir.Label("after")
        self.jumps[len(self.code)] = otherwise
        self.code.append(primitive("_jump_if_zero", [rvalue(item.condition)], item.span))
        self.add_all(item.then)

        if item.otherwise:
            self._jump(after, item.span)

        self.place(otherwise)
        self.add_all(item.otherwise)
        self.place(after)

    def _jump(self, label: ir.Label, span: Span | None) -> None:
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
