"""Numbers and truth values in machine code."""

from __future__ import annotations

import ast
from abc import abstractmethod
from typing import Any, ClassVar

from llvmlite import ir

from emulation.softswitch.codegen import names
from emulation.softswitch.native import context as at
from emulation.softswitch.native.build import load_word, word, words_at
from emulation.softswitch.native.forms import (
    constant_of,
    is_truth,
    memory_bits,
    number_of,
)
from emulation.softswitch.native.scope import Scope
from emulation.softswitch.native.shared import (
    REQUEST_BITS,
    RESUME_INSTANCE,
    RESUME_LIST,
    Bytes,
)
from emulation.softswitch.native.values import (
    I1,
    I32,
    I64,
    Number,
    UnsupportedError,
    added,
    alignment,
    as_type,
    bitwise,
    compared,
    constant,
    container,
    cut,
    modular,
    selected,
)
from emulation.softswitch.native.variables import NOTHING, ZEROS


class Expressions(Scope):
    """Translates expressions."""

    @abstractmethod
    def _call(self, node: ast.Call, demand: int | None) -> Number:
        """Return what a function returns."""

    @abstractmethod
    def _metered(self, node: ast.Call) -> Number:
        """Return the colour that a meter gives the packet."""

    @abstractmethod
    def _register_cell(self, number: int, index: ast.expr) -> Any:
        """Return the address of a register's cell."""

    @abstractmethod
    def _record_word(self, place: int) -> Any:
        """Return the address of a word of the present entry."""

    @abstractmethod
    def _request_rooms(self, name: str) -> tuple[Any, Any, Any]:
        """Return where it is noted that a packet asks for something, and two numbers of it."""

    @abstractmethod
    def _request_part(self, name: str, index: int) -> Number:
        """Return one of the two numbers."""

    @abstractmethod
    def _in_set(self, node: ast.Call) -> Any:
        """Return whether a key is in a value set, as one bit."""

    @abstractmethod
    def _descriptor(self, table: int, place: int) -> Any:
        """Return a word of a table's descriptor."""

    _EXACT: ClassVar = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul"}
    _BITWISE: ClassVar = {ast.BitOr: "or_", ast.BitXor: "xor"}
    _COMPARISONS: ClassVar = {
        ast.Eq: "==",
        ast.NotEq: "!=",
        ast.Lt: "<",
        ast.LtE: "<=",
        ast.Gt: ">",
        ast.GtE: ">=",
    }

    def _value(self, node: ast.expr) -> Number | Bytes:
        match node:
            case ast.Constant(value=bytes(content)):
                if any(content):
                    raise UnsupportedError(self._text(node))

                offset = ZEROS if content else NOTHING
                return Bytes(ir.Constant(I32, offset), ir.Constant(I32, len(content)))
            case ast.Name(id=name) if self._is_bytes(name):
                return self._get(name)
            case ast.Subscript(slice=ast.Slice(lower=low, upper=high)) if high is not None:
                return self._slice(low, high)
        return self._number(node)

    def _slice(self, low: ast.expr | None, high: ast.expr) -> Bytes:
        start = as_type(self._b, self._number(low or ast.Constant(0)), I32)
        end = as_type(self._b, self._number(high), I32)
        return Bytes(start, self._b.sub(end, start))

    def _number(self, node: ast.expr, demand: int | None = None) -> Number:
        """Return the value of an expression, or, where only so many bits matter, those."""
        match node:
            case ast.BinOp():
                return self._binary(node, demand)
            case ast.Call(func=ast.Attribute(attr="execute")):
                found = self._metered(node)
            case ast.Call():
                return self._call(node, demand)
            case ast.IfExp():
                found = self._choice(node, demand)
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                inner = self._number(operand, demand)
                wide = as_type(self._b, inner, container(inner.signed_bits))
                found = Number(self._b.not_(wide), inner.signed_bits, is_signed=True)
            case _:
                found = self._simple(node)

        return found if demand is None else cut(self._b, found, demand)

    def _simple(self, node: ast.expr) -> Number:
        """Return the value of an expression of one part."""
        match node:
            case ast.Constant(value=int(number)):
                return constant(int(number))
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(number))):
                return constant(-number)
            case ast.Name(id=name):
                return self._named(name)
            case ast.Subscript():
                return self._subscript(node)
            case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                return Number(self._b.zext(self._truth(node), I32), 1)

        raise UnsupportedError(self._text(node))

    def _named(self, name: str) -> Number:
        if name == names.DROP:
            return Number(load_word(self._b, self._context, at.DROP), 32)
        if name in self._given:
            return Number(self._given[name], 63)
        if name in REQUEST_BITS:
            return self._request_part(name, 0)

        value = self._get(name)
        if isinstance(value, Bytes):
            raise UnsupportedError(f"{name} as a number")

        return value

    def _binary(self, node: ast.BinOp, demand: int | None) -> Number:
        op = type(node.op)
        if op is ast.BitAnd:
            return self._masked(node, demand)

        if op in self._EXACT:
            left = self._number(node.left, demand)
            right = self._number(node.right, demand)
            if demand is None:
                return added(self._b, left, right, self._EXACT[op])

            return modular(self._b, left, right, self._EXACT[op], demand)

        if op in self._BITWISE:
            left = self._number(node.left, demand)
            right = self._number(node.right, demand)
            return bitwise(self._b, left, right, self._BITWISE[op])

        if op is ast.LShift:
            return self._shifted_left(node, demand)
        if op is ast.RShift:
            return self._shifted_right(node, demand)

        if op in (ast.FloorDiv, ast.Mod):
            found = self._divided(node)
            return found if demand is None else cut(self._b, found, demand)

        raise UnsupportedError(self._text(node))

    def _divided(self, node: ast.BinOp) -> Number:
        """Return a quotient or a remainder of what is not negative by what is not 0."""
        left = self._number(node.left)
        divisor = node.right
        # `size or 1`: a hash modulo an empty range.
        is_guarded = isinstance(divisor, ast.BoolOp) and isinstance(divisor.op, ast.Or)
        right = self._number(divisor.values[0] if isinstance(divisor, ast.BoolOp) else divisor)
        type_ = container(max(left.bits, right.bits))
        if left.is_signed or right.is_signed or type_.width > 64:
            raise UnsupportedError(self._text(node))

        one = as_type(self._b, left, type_)
        other = as_type(self._b, right, type_)
        if is_guarded:
            is_zero = self._b.icmp_unsigned("==", other, ir.Constant(type_, 0))
            other = self._b.select(is_zero, ir.Constant(type_, 1), other)
        elif not constant_of(divisor):
            raise UnsupportedError(self._text(node))

        if isinstance(node.op, ast.Mod):
            return Number(self._b.urem(one, other), min(left.bits, right.bits))

        return Number(self._b.udiv(one, other), left.bits)

    def _masked(self, node: ast.BinOp, demand: int | None) -> Number:
        """Return an `&`: a constant mask says how many bits of the other side matter."""
        for mask, other in ((node.right, node.left), (node.left, node.right)):
            match mask:
                case ast.Constant(value=int(number)) if number >= 0:
                    bits = number.bit_length()
                    wanted = bits if demand is None else min(bits, demand)
                    if not wanted:
                        return constant(0)

                    found = self._number(other, wanted)
                    if number == (1 << bits) - 1:
                        return found

                    return cut(self._b, bitwise(self._b, found, constant(number), "and_"), wanted)

        left = self._number(node.left, demand)
        right = self._number(node.right, demand)
        return bitwise(self._b, left, right, "and_")

    def _shifted_left(self, node: ast.BinOp, demand: int | None) -> Number:
        amount = constant_of(node.right)
        if amount is None:
            raise UnsupportedError(self._text(node))

        if demand is None:
            inner = self._number(node.left)
            bits = inner.bits + amount
        else:
            if amount >= demand:
                return constant(0)

            inner = self._number(node.left, demand - amount)
            bits = min(demand, inner.bits + amount)

        if not inner.bits:
            # A container of so many bits would be shifted by its whole width, which LLVM leaves
            # undefined: it would take the code behind it for code that is never reached.
            return constant(0)

        type_ = container(bits)
        value = self._b.shl(as_type(self._b, inner, type_), ir.Constant(type_, amount))
        return Number(value, bits, inner.is_signed)

    def _shifted_right(self, node: ast.BinOp, demand: int | None) -> Number:
        amount = constant_of(node.right)
        if amount is None:
            raise UnsupportedError(self._text(node))

        inner = self._number(node.left, None if demand is None else demand + amount)
        bits = inner.bits - amount
        if bits <= 0 and not inner.is_signed:
            return constant(0)

        by = ir.Constant(inner.value.type, min(amount, inner.width - 1))
        shift = self._b.ashr if inner.is_signed else self._b.lshr
        found = Number(shift(inner.value, by), max(bits, 1), inner.is_signed)
        return found if demand is None else cut(self._b, found, demand)

    def _choice(self, node: ast.IfExp, demand: int | None) -> Number:
        # A cell beyond the end of its array must not even be looked at, and hashes take long.
        if any(isinstance(part, (ast.Subscript, ast.Call)) for part in ast.walk(node)):
            return self._branched(node, demand)

        condition = self._truth(node.test)
        left = self._number(node.body, demand)
        right = self._number(node.orelse, demand)
        return selected(self._b, condition, left, right)

    def _branched(self, node: ast.IfExp, demand: int | None) -> Number:
        yes = self._function.append_basic_block("yes")
        no = self._function.append_basic_block("no")
        after = self._function.append_basic_block("chosen")
        self._b.cbranch(self._truth(node.test), yes, no)
        self._b.position_at_end(yes)
        left = self._number(node.body, demand)
        end_of_yes = self._b.block
        self._b.position_at_end(no)
        right = self._number(node.orelse, demand)
        end_of_no = self._b.block
        is_signed = left.is_signed or right.is_signed
        bits = max(left.signed_bits, right.signed_bits) if is_signed else max(left.bits, right.bits)
        type_ = container(bits)

        self._b.position_at_end(end_of_yes)
        one = as_type(self._b, left, type_)
        self._b.branch(after)
        self._b.position_at_end(end_of_no)
        other = as_type(self._b, right, type_)
        self._b.branch(after)
        self._b.position_at_end(after)
        chosen = self._b.phi(type_)
        chosen.add_incoming(one, end_of_yes)
        chosen.add_incoming(other, end_of_no)

        return Number(chosen, bits, is_signed)

    def _subscript(self, node: ast.Subscript) -> Number:
        assert isinstance(node.value, ast.Name)
        name = node.value.id
        if name == names.DATA:
            offset = as_type(self._b, self._number(node.slice), I64)
            byte = self._b.load(self._b.gep(self._given[names.DATA], [offset]))
            return Number(self._b.zext(byte, I32), 8)

        if name == names.ENTRY:
            entry = words_at(self._b, self._b.load(self._entry))
            return Number(load_word(self._b, entry, at.ACTION), 64, is_signed=True)

        if name == names.RESUME:
            resumed = words_at(self._b, load_word(self._b, self._context, at.RESUME))
            place = RESUME_INSTANCE if ast.literal_eval(node.slice) == 0 else RESUME_LIST
            return Number(load_word(self._b, resumed, place), 63)

        if name in REQUEST_BITS:
            return self._request_part(name, ast.literal_eval(node.slice))

        number = number_of(name, "R")
        bits = self._shared.program.registers[number].bits
        type_ = ir.IntType(memory_bits(bits))
        cell = self._b.load(self._register_cell(number, node.slice), align=alignment(type_))
        wide = container(bits)
        value = cell if type_.width == wide.width else self._b.zext(cell, wide)
        return Number(value, bits)

    def _truth(self, node: ast.expr) -> Any:
        """Return an expression's truth as one bit."""
        match node:
            case ast.Constant(value=value):
                return ir.Constant(I1, int(bool(value)))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self._b.not_(self._truth(operand))
            case ast.BoolOp(op=op, values=parts):
                combine = self._b.and_ if isinstance(op, ast.And) else self._b.or_
                found = self._truth(parts[0])
                for part in parts[1:]:
                    found = combine(found, self._truth(part))

                return found
            case ast.Compare():
                return self._comparison(node)
            case ast.IfExp():
                condition = self._truth(node.test)
                return self._b.select(condition, self._truth(node.body), self._truth(node.orelse))
            case ast.Call(func=ast.Name(id="bool"), args=[inner]):
                return self._truth(inner)

        number = self._number(node)
        return self._b.icmp_unsigned("!=", number.value, ir.Constant(number.value.type, 0))

    def _comparison(self, node: ast.Compare) -> Any:
        if isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            there = self._is_there(node.left)
            return there if isinstance(node.ops[0], ast.IsNot) else self._b.not_(there)

        found = None
        left = node.left
        for op, right in zip(node.ops, node.comparators, strict=True):
            test = self._compared(self._COMPARISONS[type(op)], left, right)
            found = test if found is None else self._b.and_(found, test)
            left = right

        return found

    def _compared(self, op: str, left: ast.expr, right: ast.expr) -> Any:
        if is_truth(left) and is_truth(right) and op in ("==", "!="):
            return self._b.icmp_unsigned(op, self._truth(left), self._truth(right))

        sides = [self._value(left), self._value(right)]
        if any(isinstance(side, Bytes) for side in sides):
            raise UnsupportedError("a comparison of bytes")

        one, other = (side for side in sides if isinstance(side, Number))
        return compared(self._b, op, one, other)

    def _is_there(self, node: ast.expr) -> Any:
        """Return whether a variable is not None."""
        if isinstance(node, ast.Attribute) and node.attr == "meter":
            meter = self._b.load(self._record_word(at.METER))
            return self._b.icmp_unsigned("!=", meter, word(0))

        assert isinstance(node, ast.Name)
        if node.id == names.ENTRY:
            return self._b.icmp_unsigned("!=", self._b.load(self._entry), word(0))
        if node.id == names.RESUME:
            resumed = load_word(self._b, self._context, at.RESUME)
            return self._b.icmp_unsigned("!=", resumed, word(0))
        if node.id in REQUEST_BITS:
            present, *_ = self._request_rooms(node.id)
            return self._b.load(present)

        raise UnsupportedError(f"{node.id} is None")
