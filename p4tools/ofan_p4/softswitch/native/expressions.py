"""Numbers and truth values in machine code."""

from __future__ import annotations

from typing import Any, ClassVar

from llvmlite import ir

from ofan_p4.softswitch.codegen import nodes, packet_nodes
from ofan_p4.softswitch.codegen.kinds import nodes_in
from ofan_p4.softswitch.codegen.nodes import Expression
from ofan_p4.softswitch.native import context
from ofan_p4.softswitch.native.build import load_word, word, words_at
from ofan_p4.softswitch.native.missing_rules import no_rule
from ofan_p4.softswitch.native.scope import NumberRules, Scope, TruthRules
from ofan_p4.softswitch.native.shared import RESUME_INSTANCE, RESUME_LIST, Place
from ofan_p4.softswitch.native.values import (
    I1,
    I32,
    I64,
    Limit,
    Number,
    added,
    as_type,
    beyond,
    bitwise,
    compared,
    constant,
    container,
    cut,
    modular,
    selected,
)
from ofan_p4.softswitch.native.variables import NOTHING, ZEROS

_EXACT = {"+": "add", "-": "sub", "*": "mul"}
_BITWISE = {"|": "or_", "^": "xor"}
# A choice of these alone computes both sides and selects, which costs less than a branch. With
# anything else in it only one side may run: reading a cell beyond the end of its array is
# forbidden, and a hash takes long.
_CHEAP = {
    nodes.Number,
    nodes.Truth,
    nodes.Local,
    nodes.Temporary,
    nodes.Argument,
    nodes.DropPort,
    nodes.Binary,
    nodes.Shift,
    nodes.Sum,
    nodes.Joined,
    nodes.Inverse,
    nodes.Quotient,
    nodes.Remainder,
    nodes.Compare,
    nodes.InBounds,
    nodes.Logic,
    nodes.Not,
    nodes.Choice,
    packet_nodes.Present,
    packet_nodes.Entry,
    packet_nodes.Resumed,
}


class Expressions(Scope):
    """Translator of expressions."""

    def _value(self, node: Expression) -> Number | Place:
        match node:
            case nodes.Zeros(size=size):
                offset = ZEROS if size else NOTHING
                return Place(ir.Constant(I32, offset), ir.Constant(I32, size))
            case nodes.Bytes() | nodes.Temporary():
                return self._get(node)
            # Bytes are never copied to be looked at: a place has their offset in the frame.
            case packet_nodes.FrameBytes(start=start, stop=stop):
                first = as_type(self._b, self._number(start), I32)
                end = as_type(self._b, self._number(stop), I32)
                return Place(first, self._b.sub(end, first))

        return self._number(node)

    def _bytes(self, node: Expression) -> Place:
        value = self._value(node)
        if not isinstance(value, Place):
            raise beyond(Limit.KINDS)

        return value

    def _number(self, node: Expression, demand: int | None = None) -> Number:
        """Return the value of an expression, or only its lowest `demand` bits."""
        rule = self.NUMBERS.get(type(node))
        if rule is not None:
            number = rule(self, node, demand)
        elif type(node) in self.TRUTHS:
            number = Number(self._b.zext(self._truth(node), I32), 1)
        else:
            raise no_rule(node)

        # A rule may ignore the demand; the caller relies on zeros above the bits demanded.
        return number if demand is None else cut(self._b, number, demand)

    def _truth(self, node: Expression) -> Any:
        """Return an expression's truth as one bit."""
        rule = self.TRUTHS.get(type(node))
        if rule is not None:
            return rule(self, node)

        # Everything but 0 is true.
        number = self._number(node)
        return self._b.icmp_unsigned("!=", number.value, ir.Constant(number.value.type, 0))

    def _constant(self, node: nodes.Number | nodes.Truth, _demand: int | None) -> Number:
        return constant(int(node.value))

    def _inverse(self, node: nodes.Inverse, demand: int | None) -> Number:
        inner = self._number(node.value, demand)
        # The inverse of a number of no sign is negative: -1 less the number.
        wide = as_type(self._b, inner, container(inner.signed_bits))
        return Number(self._b.not_(wide), inner.signed_bits, is_signed=True)

    def _argument(self, node: nodes.Argument, _demand: int | None) -> Number:
        return Number(self._arguments[node.name], 63)

    def _drop_port(self, _node: nodes.DropPort, _demand: int | None) -> Number:
        return Number(load_word(self._b, self._context, context.DROP), 32)

    def _variable(self, node: nodes.Variable, _demand: int | None) -> Number:
        value = self._get(node)
        if isinstance(value, Place):
            raise beyond(Limit.KINDS)

        return value

    def _binary(self, node: nodes.Binary, demand: int | None) -> Number:
        if node.op == "&":
            return self._masked(node, demand)

        first = self._number(node.left, demand)
        second = self._number(node.right, demand)
        if node.op in _BITWISE:
            return bitwise(self._b, first, second, _BITWISE[node.op])

        return self._exact(node.op, first, second, demand)

    def _exact(self, op: str, left: Number, right: Number, demand: int | None) -> Number:
        # Where only the low bits matter they are computed alone, as carries go upwards only.
        if demand is None:
            return added(self._b, left, right, _EXACT[op])

        return modular(self._b, left, right, _EXACT[op], demand)

    def _sum(self, node: nodes.Sum, demand: int | None) -> Number:
        total = self._number(node.terms[0], demand)
        for term in node.terms[1:]:
            total = self._exact("+", total, self._number(term, demand), demand)

        return total

    def _joined(self, node: nodes.Joined, demand: int | None) -> Number:
        # The parts stand side by side, the highest first, and their bits do not overlap.
        low = node.bits
        joined: Number | None = None
        for value, width in node.parts:
            low -= width
            part = self._moved_left(value, low, demand) if low else self._number(value, demand)
            joined = part if joined is None else bitwise(self._b, joined, part, "or_")

        return constant(0) if joined is None else joined

    def _quotient(self, node: nodes.Quotient, _demand: int | None) -> Number:
        dividend, divisor, bits, _ = self._divided(self._number(node.value), constant(node.by))
        return Number(self._b.udiv(dividend, divisor), bits)

    def _remainder(self, node: nodes.Remainder, _demand: int | None) -> Number:
        value = self._number(node.value)
        dividend, divisor, bits, size = self._divided(value, self._number(node.size))
        if not isinstance(node.size, nodes.Number):
            # A division by zero ends the process, even where its result is not used.
            is_zero = self._b.icmp_unsigned("==", divisor, ir.Constant(divisor.type, 0))
            divisor = self._b.select(is_zero, ir.Constant(divisor.type, 1), divisor)

        # The remainder is below both sides.
        return Number(self._b.urem(dividend, divisor), min(bits, size))

    def _divided(self, left: Number, right: Number) -> tuple[Any, Any, int, int]:
        """Return dividend and divisor in one container, and the bits of each."""
        type_ = container(max(left.bits, right.bits))
        if left.is_signed or right.is_signed or type_.width > 64:
            raise beyond(Limit.DIVISIONS)

        return as_type(self._b, left, type_), as_type(self._b, right, type_), left.bits, right.bits

    def _masked(self, node: nodes.Binary, demand: int | None) -> Number:
        """Return an `&`: a constant mask limits the bits of the other side."""
        for mask, operand in ((node.right, node.left), (node.left, node.right)):
            if isinstance(mask, nodes.Number) and mask.value >= 0:
                bits = mask.value.bit_length()
                needed_bits = bits if demand is None else min(bits, demand)
                if not needed_bits:
                    return constant(0)

                value = self._number(operand, needed_bits)
                # Ones only: the bits that matter are all of them, and are cut already.
                if mask.value == (1 << bits) - 1:
                    return value

                under = bitwise(self._b, value, constant(mask.value), "and_")
                return cut(self._b, under, needed_bits)

        first = self._number(node.left, demand)
        second = self._number(node.right, demand)
        return bitwise(self._b, first, second, "and_")

    def _shift(self, node: nodes.Shift, demand: int | None) -> Number:
        if node.op == "<<":
            return self._moved_left(node.value, node.amount, demand)

        amount = node.amount
        # The bits that the shift moves out below are computed, too.
        inner = self._number(node.value, None if demand is None else demand + amount)
        bits = inner.bits - amount
        if bits <= 0 and not inner.is_signed:
            return constant(0)

        # LLVM leaves a shift by the whole width or more undefined; one less leaves only the sign.
        by = ir.Constant(inner.value.type, min(amount, inner.width - 1))
        shift = self._b.ashr if inner.is_signed else self._b.lshr
        return Number(shift(inner.value, by), max(bits, 1), inner.is_signed)

    def _moved_left(self, value: Expression, amount: int, demand: int | None) -> Number:
        if demand is None:
            inner = self._number(value)
            bits = inner.bits + amount
        else:
            if amount >= demand:
                return constant(0)

            # The shift fills the lowest bits with zeros: so many fewer of the value matter.
            inner = self._number(value, demand - amount)
            bits = min(demand, inner.bits + amount)

        if not inner.bits:
            # A container of so many bits would be shifted by its whole width, which LLVM leaves
            # undefined: it would take the code behind it for code that is never reached.
            return constant(0)

        type_ = container(bits)
        moved = self._b.shl(as_type(self._b, inner, type_), ir.Constant(type_, amount))
        return Number(moved, bits, inner.is_signed)

    def _choice(self, node: nodes.Choice, demand: int | None) -> Number:
        if any(type(part) not in _CHEAP for part in nodes_in(node)):
            return self._branched(node, demand)

        condition = self._truth(node.test)
        yes = self._number(node.yes, demand)
        no = self._number(node.no, demand)
        return selected(self._b, condition, yes, no)

    def _branched(self, node: nodes.Choice, demand: int | None) -> Number:
        yes = self._function.append_basic_block("yes")
        no = self._function.append_basic_block("no")
        after = self._function.append_basic_block("chosen")
        self._b.cbranch(self._truth(node.test), yes, no)
        self._b.position_at_end(yes)
        yes_value = self._number(node.yes, demand)
        # Translating a side may have begun new blocks: the next code follows the last of them.
        end_of_yes = self._b.block
        self._b.position_at_end(no)
        no_value = self._number(node.no, demand)
        end_of_no = self._b.block
        # Both sides must arrive in one type, which is known only now: each widens at its own end.
        is_signed = yes_value.is_signed or no_value.is_signed
        bits = (
            max(yes_value.signed_bits, no_value.signed_bits)
            if is_signed
            else max(yes_value.bits, no_value.bits)
        )
        type_ = container(bits)

        self._b.position_at_end(end_of_yes)
        chosen_yes = as_type(self._b, yes_value, type_)
        self._b.branch(after)
        self._b.position_at_end(end_of_no)
        chosen_no = as_type(self._b, no_value, type_)
        self._b.branch(after)
        self._b.position_at_end(after)
        chosen = self._b.phi(type_)
        chosen.add_incoming(chosen_yes, end_of_yes)
        chosen.add_incoming(chosen_no, end_of_no)

        return Number(chosen, bits, is_signed)

    def _entry_action(self, _node: packet_nodes.EntryAction, _demand: int | None) -> Number:
        entry = words_at(self._b, self._b.load(self._entry))
        return Number(load_word(self._b, entry, context.ACTION), 64, is_signed=True)

    def _resumed_type(self, _node: packet_nodes.ResumedType, _demand: int | None) -> Number:
        return self._resumed_word(RESUME_INSTANCE)

    def _resumed_list(self, _node: packet_nodes.ResumedList, _demand: int | None) -> Number:
        return self._resumed_word(RESUME_LIST)

    def _resumed_word(self, slot: int) -> Number:
        resumed = words_at(self._b, load_word(self._b, self._context, context.RESUME))
        return Number(load_word(self._b, resumed, slot), 63)

    def _asked_number(self, node: packet_nodes.Asked, _demand: int | None) -> Number:
        rooms = self._request_rooms(node.request)
        return Number(self._b.load(rooms[1 + (node.part or 0)]), 63)

    def _request_rooms(self, name: str) -> tuple[Any, Any, Any]:
        """Return the variables of a request: its presence, and its two numbers."""
        if name not in self._requests:
            allocate = self._rooms.alloca
            self._requests[name] = allocate(I1), allocate(I64), allocate(I64)

        return self._requests[name]

    def _record_word(self, slot: int) -> Any:
        """Return the address of a word of the present entry."""
        entry = words_at(self._b, self._b.load(self._entry))
        return self._b.gep(entry, [word(slot)])

    def _known(self, node: nodes.Number | nodes.Truth) -> Any:
        return ir.Constant(I1, int(bool(node.value)))

    def _not(self, node: nodes.Not) -> Any:
        return self._b.not_(self._truth(node.test))

    def _logic(self, node: nodes.Logic) -> Any:
        combine = self._b.and_ if node.op == "and" else self._b.or_
        truth = self._truth(node.parts[0])
        for part in node.parts[1:]:
            truth = combine(truth, self._truth(part))

        return truth

    def _chosen_truth(self, node: nodes.Choice) -> Any:
        condition = self._truth(node.test)
        return self._b.select(condition, self._truth(node.yes), self._truth(node.no))

    def _same_truth(self, node: nodes.SameTruth) -> Any:
        first, second = self._truth(node.left), self._truth(node.right)
        return self._b.icmp_unsigned(node.op, first, second)

    def _comparison(self, node: nodes.Compare) -> Any:
        return compared(self._b, node.op, self._number(node.left), self._number(node.right))

    def _in_bounds(self, node: nodes.InBounds) -> Any:
        index = self._number(node.index)
        # An index of known width has no sign, so that one comparison is enough.
        below = compared(self._b, "<", index, constant(node.size))
        if node.index.bits is not None:
            return below

        return self._b.and_(compared(self._b, "<=", constant(0), index), below)

    def _present(self, node: packet_nodes.Present) -> Any:
        match node.what:
            case packet_nodes.Asked(request=request):
                return self._b.load(self._request_rooms(request)[0])
            case packet_nodes.DirectMeter():
                address = self._b.load(self._record_word(context.METER))
            case packet_nodes.Entry():
                address = self._b.load(self._entry)
            case packet_nodes.Resumed():
                address = load_word(self._b, self._context, context.RESUME)

        # A missing object has address 0.
        return self._b.icmp_unsigned("!=", address, word(0))

    NUMBERS: ClassVar[NumberRules] = {
        nodes.Number: _constant,
        nodes.Truth: _constant,
        nodes.Local: _variable,
        nodes.Bytes: _variable,
        nodes.Temporary: _variable,
        nodes.Argument: _argument,
        nodes.DropPort: _drop_port,
        nodes.Binary: _binary,
        nodes.Shift: _shift,
        nodes.Sum: _sum,
        nodes.Joined: _joined,
        nodes.Inverse: _inverse,
        nodes.Quotient: _quotient,
        nodes.Remainder: _remainder,
        nodes.Choice: _choice,
        packet_nodes.EntryAction: _entry_action,
        packet_nodes.ResumedType: _resumed_type,
        packet_nodes.ResumedList: _resumed_list,
        packet_nodes.Asked: _asked_number,
    }
    TRUTHS: ClassVar[TruthRules] = {
        nodes.Number: _known,
        nodes.Truth: _known,
        nodes.Not: _not,
        nodes.Logic: _logic,
        nodes.Choice: _chosen_truth,
        nodes.SameTruth: _same_truth,
        nodes.Compare: _comparison,
        nodes.InBounds: _in_bounds,
        packet_nodes.Present: _present,
    }
