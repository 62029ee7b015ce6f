"""Statements in machine code."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from llvmlite import ir

from ofan_p4.softswitch.codegen import statements as code
from ofan_p4.softswitch.codegen.nodes import Binary, Expression, Shift
from ofan_p4.softswitch.codegen.packet_nodes import Cell
from ofan_p4.softswitch.native import context
from ofan_p4.softswitch.native.asking import Asking
from ofan_p4.softswitch.native.build import load_word, word
from ofan_p4.softswitch.native.calls import Calls
from ofan_p4.softswitch.native.cells import Cells
from ofan_p4.softswitch.native.expressions import Expressions
from ofan_p4.softswitch.native.frames import Frames
from ofan_p4.softswitch.native.lookups import Lookups
from ofan_p4.softswitch.native.missing_rules import no_rule
from ofan_p4.softswitch.native.scope import CodeRules, NumberRules, TruthRules
from ofan_p4.softswitch.native.values import I32, I64, Limit, as_type, beyond, constant


class Function(Asking):
    """Translator of a function, statement by statement."""

    def translate(self) -> None:
        """Build the function."""
        self._block(self._statements)
        if not self._b.block.is_terminated:
            self._b.unreachable()

        # Only now all variables have their room, which the first block makes.
        self._rooms.branch(self._body)

    def _block(self, statements: Iterable[code.Statement]) -> None:
        for statement in statements:
            # Behind a return or a break nothing is reached, and LLVM takes no code there.
            if self._b.block.is_terminated:
                return

            rule = self.CODE.get(type(statement))
            if rule is None:
                raise no_rule(statement)

            rule(self, statement)

    def _measure(self, _node: code.Measure) -> None:
        """Do nothing: machine code is given the number of bytes."""

    def _break(self, _node: code.Break) -> None:
        self._b.branch(self._leave[-1])

    def _log(self, node: code.Log) -> None:
        buffer = self._rooms.alloca(I64, size=max(1, len(node.values)))
        for i, part in enumerate(node.values):
            # The log is called with signed words.
            value = self._number(part)
            if value.signed_bits > 64:
                raise beyond(Limit.LOGS)

            self._b.store(as_type(self._b, value, I64), self._b.gep(buffer, [word(i)]))

        # The text stays in Python: machine code passes on its number and the values.
        number = len(self._shared.logs)
        self._shared.logs[number] = node.text, len(node.values)
        kind = ir.FunctionType(ir.VoidType(), [I64, I64.as_pointer()]).as_pointer()
        log = self._b.inttoptr(load_word(self._b, self._context, context.LOG), kind)
        self._b.call(log, [word(number), buffer])

    def _if(self, node: code.If) -> None:
        after = self._function.append_basic_block("after")
        # A chain of tests is as long as a table has actions: no recursion for it.
        while True:
            for test, body in node.arms:
                self._arm(test, body, after)

            if len(node.otherwise) != 1 or not isinstance(node.otherwise[0], code.If):
                break

            node = node.otherwise[0]

        self._block(node.otherwise)
        if not self._b.block.is_terminated:
            self._b.branch(after)

        self._b.position_at_end(after)

    def _arm(self, test: Expression, body: code.Statements, after: Any) -> None:
        """Translate the body of a test that holds, and go on where it does not."""
        # Where the test does not hold, the next arm goes on in the block "else".
        inside = self._function.append_basic_block("then")
        otherwise = self._function.append_basic_block("else")
        self._b.cbranch(self._truth(test), inside, otherwise)
        self._b.position_at_end(inside)
        self._block(body)
        if not self._b.block.is_terminated:
            self._b.branch(after)

        self._b.position_at_end(otherwise)

    def _once(self, node: code.Once) -> None:
        after = self._function.append_basic_block("done")
        self._breakable(node.body, after)
        self._b.position_at_end(after)

    def _breakable(self, body: code.Statements, after: Any) -> None:
        """Translate statements with breaks that lead to a block."""
        # A break leads out of the innermost of these, as in Python.
        self._leave.append(after)
        self._block(body)
        self._leave.pop()

    def _repeat(self, node: code.Repeat) -> None:
        """Translate the loop over the numbers of blocks, for graphs with cycles."""
        count = self._rooms.alloca(I32)
        self._b.store(ir.Constant(I32, 0), count)
        head = self._function.append_basic_block("again")
        body = self._function.append_basic_block("step")
        after = self._function.append_basic_block("done")
        self._b.branch(head)
        self._b.position_at_end(head)
        # A graph with cycles may go round for ever: so many blocks are enough for any packet.
        turns = self._b.load(count)
        self._b.store(self._b.add(turns, ir.Constant(I32, 1)), count)
        is_more = self._b.icmp_unsigned("<", turns, ir.Constant(I32, node.most))
        self._b.cbranch(is_more, body, after)
        self._b.position_at_end(body)
        self._breakable(node.body, after)
        if not self._b.block.is_terminated:
            self._b.branch(head)

        self._b.position_at_end(after)

    def _assign(self, node: code.Assign) -> None:
        if isinstance(node.target, Cell):
            self._store_cell(node.target, node.value)
        else:
            self._set(node.target, self._value(node.value))

    def _clear(self, node: code.Clear) -> None:
        for target in node.targets:
            self._set(target, constant(0))

    def _move(self, node: code.Move) -> None:
        # All of the right side first: elements of a stack move over one another.
        values = [self._value(value) for value in node.values]
        for target, value in zip(node.targets, values, strict=True):
            self._set(target, value)

    def _change(self, node: code.Change) -> None:
        self._set(node.target, self._number(Binary(node.op, node.target, node.value)))

    def _halve(self, node: code.Halve) -> None:
        self._set(node.target, self._number(Shift(">>", node.target, node.times)))

    CODE: ClassVar[CodeRules] = {
        **Frames.CODE,
        **Cells.CODE,
        **Lookups.CODE,
        **Asking.CODE,
        code.Measure: _measure,
        code.Break: _break,
        code.Log: _log,
        code.If: _if,
        code.Once: _once,
        code.Repeat: _repeat,
        code.Assign: _assign,
        code.Clear: _clear,
        code.Move: _move,
        code.Change: _change,
        code.Halve: _halve,
    }
    NUMBERS: ClassVar[NumberRules] = {
        **Expressions.NUMBERS,
        **Frames.NUMBERS,
        **Calls.NUMBERS,
        **Cells.NUMBERS,
        **Lookups.NUMBERS,
    }
    TRUTHS: ClassVar[TruthRules] = Expressions.TRUTHS
