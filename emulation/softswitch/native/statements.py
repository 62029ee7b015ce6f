"""Statements in machine code."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from llvmlite import ir

from emulation.softswitch.codegen import names
from emulation.softswitch.native import context as at
from emulation.softswitch.native.asking import Asking
from emulation.softswitch.native.build import load_word, word
from emulation.softswitch.native.forms import (
    is_name,
    number_of,
)
from emulation.softswitch.native.shared import (
    REQUEST_BITS,
)
from emulation.softswitch.native.values import (
    I32,
    I64,
    UnsupportedError,
    as_type,
)


class Function(Asking):
    """Translates one of the two functions."""

    _skipped = 0

    def translate(self) -> None:
        """Build the function."""
        self._start()
        self._block(self._node.body[self._skipped :])
        if not self._b.block.is_terminated:
            self._b.unreachable()

        self._rooms.branch(self._body)

    def _start(self) -> None:
        """Prepare what the text takes for granted."""

    def _block(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            if self._b.block.is_terminated:
                return

            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Break():
                self._b.branch(self._leave[-1])
            case ast.Pass():
                pass
            case ast.Expr(value=ast.Call(func=ast.Name(id=names.LOG), args=[text, values])):
                self._log(text, values)
            case _:
                handler = self._handlers().get(type(node))
                if handler is None:
                    raise UnsupportedError(self._text(node))

                handler(node)

    def _handlers(self) -> Mapping[type[ast.stmt], Callable[[Any], None]]:
        return {
            ast.Assign: self._assign,
            ast.AugAssign: self._augmented,
            ast.If: self._if,
            ast.While: self._once,
            ast.For: self._for,
            ast.Return: self._return,
        }

    def _log(self, text: ast.expr, values: ast.expr) -> None:
        assert isinstance(text, ast.Name) and isinstance(values, ast.Tuple)
        number = number_of(text.id, "K")
        room = self._rooms.alloca(I64, size=max(1, len(values.elts)))
        for i, part in enumerate(values.elts):
            value = self._number(part)
            if value.signed_bits > 64:
                raise UnsupportedError("a log message with more than 63 bits")

            self._b.store(as_type(self._b, value, I64), self._b.gep(room, [word(i)]))

        kind = ir.FunctionType(ir.VoidType(), [I64, I64.as_pointer()]).as_pointer()
        log = self._b.inttoptr(load_word(self._b, self._context, at.LOG), kind)
        self._b.call(log, [word(number), room])
        self._shared.logs[number] = str(self._shared.constants[text.id]), len(values.elts)

    def _if(self, node: ast.If) -> None:
        after = self._function.append_basic_block("after")
        current: list[ast.stmt] = [node]
        # A chain of `elif` is as long as a table has actions: no recursion for it.
        while len(current) == 1 and isinstance(current[0], ast.If):
            test = current[0]
            if self._search_masked(test):
                break

            inside = self._function.append_basic_block("then")
            otherwise = self._function.append_basic_block("else")
            self._b.cbranch(self._truth(test.test), inside, otherwise)
            self._b.position_at_end(inside)
            outer = self._list
            self._list = self._list_asked(test.test, outer)
            self._block(test.body)
            self._list = outer
            if not self._b.block.is_terminated:
                self._b.branch(after)

            self._b.position_at_end(otherwise)
            current = test.orelse
        else:
            self._block(current)

        if not self._b.block.is_terminated:
            self._b.branch(after)

        self._b.position_at_end(after)

    def _once(self, node: ast.While) -> None:
        after = self._function.append_basic_block("done")
        self._leave.append(after)
        self._block(node.body)
        self._leave.pop()
        if not self._b.block.is_terminated:
            raise UnsupportedError("a loop")

        self._b.position_at_end(after)

    def _for(self, node: ast.For) -> None:
        if isinstance(node.iter, ast.Call):
            self._repeat(node)
            return

        assert isinstance(node.iter, ast.Name)
        number = number_of(node.iter.id, "T")
        if self._places.of_tables[number].kind == "lpm":
            self._search_prefixes(number, node)
        else:
            self._search_rows(number, node)

    def _repeat(self, node: ast.For) -> None:
        """Translate the loop over the numbers of blocks, for graphs with cycles."""
        assert isinstance(node.iter, ast.Call)
        limit = self._number(node.iter.args[0])
        count = self._rooms.alloca(I32)
        self._b.store(ir.Constant(I32, 0), count)
        head = self._function.append_basic_block("again")
        body = self._function.append_basic_block("step")
        after = self._function.append_basic_block("done")
        self._b.branch(head)
        self._b.position_at_end(head)
        made = self._b.load(count)
        self._b.store(self._b.add(made, ir.Constant(I32, 1)), count)
        self._b.cbranch(self._b.icmp_unsigned("<", made, limit.value), body, after)
        self._b.position_at_end(body)
        self._leave.append(after)
        self._block(node.body)
        self._leave.pop()
        if not self._b.block.is_terminated:
            self._b.branch(head)

        self._b.position_at_end(after)

    def _assign(self, node: ast.Assign) -> None:
        value = node.value
        target = node.targets[0]
        if isinstance(target, ast.Tuple):
            self._assign_tuple(target, value)
            return

        if isinstance(target, ast.Subscript):
            self._store_cell(target, value)
            return

        if isinstance(target, ast.Attribute):
            self._store_record(target, value)
            return

        assert isinstance(target, ast.Name)
        special = self._specials().get(target.id)
        if special is not None and len(node.targets) == 1:
            special(value)
            return

        found = self._value(value)
        for each in node.targets:
            assert isinstance(each, ast.Name)
            self._set(each.id, found)

    def _specials(self) -> Mapping[str, Callable[[ast.expr], None]]:
        """Return what is assigned to variables that are neither numbers nor bytes."""
        return {
            names.ENTRY: self._assign_entry,
            names.RECORD: self._assign_result,
            names.CELL: self._assign_cell,
            names.REQUESTS: self._ask,
            **{name: self._request(name) for name in REQUEST_BITS},
            **{names.values_of(name): self._request_values(name) for name in REQUEST_BITS},
        }

    def _assign_tuple(self, target: ast.Tuple, value: ast.expr) -> None:
        variables = [name.id for name in target.elts if isinstance(name, ast.Name)]
        if isinstance(value, ast.Tuple):
            # All of the right side first: elements of a stack move over one another.
            found = [self._value(part) for part in value.elts]
        elif isinstance(value, ast.Call):
            found = self._unpacked(value)
        elif isinstance(value, ast.Subscript) and is_name(value.value, names.ENTRY):
            found = self._arguments(len(variables))
        elif isinstance(value, ast.Subscript) and is_name(value.value, names.RESUME):
            found = self._resumed(variables)
        else:
            raise UnsupportedError(self._text(value))

        for name, part in zip(variables, found, strict=True):
            self._set(name, part)

    def _augmented(self, node: ast.AugAssign) -> None:
        target = node.target
        if isinstance(target, ast.Name):
            changed = ast.BinOp(ast.Name(target.id, ast.Load()), node.op, node.value)
            self._set(target.id, self._number(changed))
            return

        if isinstance(target, ast.Attribute) and is_name(target.value, names.RECORD):
            place = {"packets": at.PACKETS, "octets": at.OCTETS}[target.attr]
            self._grow(self._record_word(place), node.value)
            return

        if isinstance(target, ast.Subscript) and is_name(target.value, names.CELL):
            index = ast.literal_eval(target.slice)
            self._grow(self._b.gep(self._cell, [word(index)]), node.value)
            return

        raise UnsupportedError(self._text(node))

    def _return(self, node: ast.Return) -> None:
        raise NotImplementedError
