"""BMv2 expressions as nodes.

Arithmetic has infinite precision, as in BMv2; values are cut when they are assigned. Every node
knows how many bits it can have at most (None: it may be negative or of any size), so that most cuts
cost nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ofan_p4.softswitch.base.errors import PipelineError
from ofan_p4.softswitch.codegen import names
from ofan_p4.softswitch.codegen.layout import masked
from ofan_p4.softswitch.codegen.nodes import (
    MOST_TESTS,
    Binary,
    Bytes,
    Call,
    Choice,
    Compare,
    CompareBytes,
    Cut,
    CutByValue,
    Expression,
    InBounds,
    Inverse,
    Logic,
    Not,
    Number,
    SameTruth,
    Shift,
    Truth,
)
from ofan_p4.softswitch.codegen.packet_nodes import Cell
from ofan_p4.softswitch.codegen.program import (
    VALID,
    Array,
    Field,
    Header,
    Json,
    Program,
    Stack,
    Union,
    hex_int,
    item_at,
)
from ofan_p4.softswitch.codegen.variables import parameter

# Wider than any field. A larger literal would make Python fold a constant of that many bits;
# `arithmetic` bounds it at run time instead.
MAX_SHIFT = 1 << 13
COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
BOOLEAN_OPS = COMPARISONS | {"and", "or", "not", "valid", "valid_union", "d2b"}
ARITHMETIC = frozenset({"+", "-", "*", "&", "|", "^"})
ZERO = Number(0)
ONE = Number(1)


@dataclass(frozen=True, slots=True)
class HeaderRef:
    """A header that is known, or chosen among several by an index known only at run time."""

    headers: tuple[Header, ...]
    index: Expression | None

    def pick(self, values: Sequence[Expression]) -> Expression:
        """Return the expression that is `values[index]`, 0 beyond the end."""
        if self.index is None:
            return values[0]

        return _picked(self.index, list(enumerate(values)))


def _picked(index: Expression, numbered: Sequence[tuple[int, Expression]]) -> Expression:
    if len(numbered) > MOST_TESTS:
        # Many elements: halve the range, so that no chain of tests is longer than MOST_TESTS.
        middle = len(numbered) // 2
        lower, upper = _picked(index, numbered[:middle]), _picked(index, numbered[middle:])
        return Choice(Compare("<", index, Number(numbered[middle][0])), lower, upper)

    # The packet chooses the index: one beyond the end must yield something, not raise.
    chosen: Expression = ZERO
    for number, value in reversed(numbered):
        chosen = Choice(Compare("==", index, Number(number)), value, chosen)

    return chosen


def inner(expression: Json) -> Json:
    """Return the expression without the `expression` wrappers around it."""
    while isinstance(expression, dict) and expression.get("type") == "expression":
        expression = expression["value"]

    return expression


class Expressions:
    """Translates the expressions of one program.

    `parameter_bits` are the widths of its action's arguments.
    """

    def __init__(self, program: Program, parameter_bits: tuple[int, ...] = ()) -> None:
        self._program = program
        self._parameter_bits = parameter_bits
        self._registers = {array.name: array for array in program.registers}

    def is_boolean(self, expression: Json) -> bool:
        """Return whether the expression yields a truth value."""
        node = inner(expression)
        if "op" not in node:
            return bool(node.get("type") == "bool")
        if node["op"] == "?":
            return self.is_boolean(node["left"])

        return node["op"] in BOOLEAN_OPS

    def boolean(self, expression: Json) -> Expression:
        """Return a truth value."""
        node = inner(expression)
        if node.get("type") == "bool":
            return Truth(bool(node["value"]))

        match node.get("op"):
            case "and" | "or" | "not" | "?":
                return self._connective(node)
            case "d2b":
                return _is_set(self.data(node["right"]))
            case "valid":
                return self._validity(self.header(node["right"]))
            case "valid_union":
                return self._union_validity(node["right"])
            case op if op in COMPARISONS:
                return self._comparison(node)

        return _is_set(self.data(node))

    def condition(self, expression: Json) -> Expression:
        """Return the condition of an `if`: a truth value, or a number that is not 0."""
        is_boolean = self.is_boolean(expression)
        return self.boolean(expression) if is_boolean else self.data(expression)

    def _connective(self, node: Json) -> Expression:
        op = node["op"]
        right = self.boolean(node["right"])
        if op == "not":
            return Not(right)
        if op == "?":
            return Choice(self.boolean(node["cond"]), self.boolean(node["left"]), right)

        return Logic(op, (self.boolean(node["left"]), right))

    def data(self, expression: Json) -> Expression:
        """Return a number."""
        node = inner(expression)
        if "op" in node:
            return self._operation(node)

        value = node["value"]
        match node["type"]:
            case "hexstr":
                return Number(hex_int(value, "constant"))
            case "field":
                return self.field_value(value)
            case "local" | "runtime_data":
                bits = item_at(self._parameter_bits, value, "the number of a parameter")
                return parameter(value, bits)
            case "bool":
                return Number(int(bool(value)))
            case "register":
                return self._register(value[0], self.data(value[1]))
            case "stack_field":
                return self._stack_field(self.stack(value[0]), value[1])

        raise PipelineError(f"unknown operand type {node['type']!r}")

    def field_value(self, target: Json) -> Expression:
        """Return the value of a field given as [header, field].

        The validity of a header is a field too.
        """
        if target[1] == VALID:
            return self._program.header(target[0]).valid

        return self._program.field(target[0], target[1]).var

    def header(self, expression: Json) -> HeaderRef:
        """Return the header that an expression denotes."""
        node = inner(expression)
        if node.get("type") == "header":
            return HeaderRef((self._program.header(node["value"]),), None)

        match node.get("op"):
            case "dereference_header_stack":
                stack = self.stack(inner(node["left"])["value"])
                headers = tuple(self._program.headers[i] for i in stack.elements)
                return _choose(headers, self.data(node["right"]))
            case "access_union_header":
                unions, index = self._unions(node["left"])
                headers = tuple(
                    self._program.headers[item_at(union.members, node["right"], "a member")]
                    for union in unions
                )
                return HeaderRef(headers, index)

        raise PipelineError(f"not a header: {node!r}")

    def field_of(self, expression: Json) -> tuple[HeaderRef, list[Field]] | None:
        """Return the fields that an lvalue `header[i].field` may denote, None for other forms."""
        node = inner(expression)
        if node.get("op") != "access_field":
            return None

        ref = self.header(node["left"])
        return ref, [item_at(header.fields, node["right"], "a field") for header in ref.headers]

    def stack(self, name: str) -> Stack:
        """Return a stack of headers or of unions."""
        if name in self._program.stacks:
            return self._program.stacks[name]
        if name in self._program.union_stacks:
            return self._program.union_stacks[name]

        raise PipelineError(f"no header stack is called {name!r}")

    def _union_validity(self, expression: Json) -> Expression:
        unions, index = self._unions(expression)
        any_member = [
            Logic("or", tuple(self._program.headers[member].valid for member in union.members))
            for union in unions
        ]
        if index is None:
            return any_member[0]

        return Logic(
            "or",
            tuple(
                Logic("and", (Compare("==", index, Number(i)), valid))
                for i, valid in enumerate(any_member)
            ),
        )

    def _unions(self, expression: Json) -> tuple[tuple[Union, ...], Expression | None]:
        node = inner(expression)
        if node.get("type") == "header_union":
            return (self._program.unions[self._program.union_ids[node["value"]]],), None
        if node.get("op") != "dereference_union_stack":
            raise PipelineError(f"not a header union: {node!r}")

        unions = tuple(
            self._program.unions[i] for i in self.stack(inner(node["left"])["value"]).elements
        )
        index = self.data(node["right"])
        # A constant index leaves one union, so that no test is generated.
        constant = constant_below(index, len(unions))
        return (unions, index) if constant is None else ((unions[constant],), None)

    def _validity(self, ref: HeaderRef) -> Expression:
        return ref.pick([header.valid for header in ref.headers])

    def _comparison(self, node: Json) -> Expression:
        first = node["left"]
        right = node["right"]
        op = node["op"]

        # The JSON has one operator for numbers, truth values and headers: the left side decides.
        if self._is_header(first):
            equal = self._same_header(self.header(first), self.header(right))
            return equal if op == "==" else Not(equal)

        if self.is_boolean(first):
            return SameTruth(op, self.boolean(first), self.boolean(right))

        return _compared(op, self.data(first), self.data(right))

    def _is_header(self, expression: Json) -> bool:
        node = inner(expression)
        return node.get("type") == "header" or node.get("op") in {
            "dereference_header_stack",
            "access_union_header",
        }

    def _same_header(self, left: HeaderRef, right: HeaderRef) -> Expression:
        """BMv2 compares headers as equal only when both are valid."""
        # Two invalid headers are not equal either.
        tests = [self._validity(left), self._validity(right)]
        for i in range(len(left.headers[0].fields)):
            first, second = (
                ref.pick([header.fields[i].var for header in ref.headers]) for ref in (left, right)
            )
            tests.append(_compared("==", first, second))

        return Logic("and", tuple(tests))

    def _register(self, name: str, index: Expression) -> Expression:
        array = self.register(name)
        cell = Cell(array.id, index, array.bits)
        # A register is a Python list, which would take -1 for its last cell and raise beyond its
        # end.
        bounds = in_bounds(index, array.size)
        return cell if bounds is None else Choice(bounds, cell, ZERO)

    def register(self, name: str) -> Array:
        """Return a register array by name."""
        if name not in self._registers:
            raise PipelineError(f"no register array is called {name!r}")

        return self._registers[name]

    def _stack_field(self, stack: Stack, name: str) -> Expression:
        headers = tuple(self._program.headers[i] for i in stack.elements)
        ref = HeaderRef(headers, last_index(stack))
        return ref.pick([self._program.field(header.name, name).var for header in headers])

    def _operation(self, node: Json) -> Expression:
        match node["op"]:
            case "access_field":
                ref = self.header(node["left"])
                fields = [
                    item_at(header.fields, node["right"], "a field") for header in ref.headers
                ]
                return ref.pick([field.var for field in fields])
            case "?":
                test = self.boolean(node["cond"])
                return Choice(test, self.data(node["left"]), self.data(node["right"]))
            case "b2d":
                return _as_number(self.boolean(node["right"]))
            # It is -1 while nothing has been extracted.
            case "last_stack_index":
                return last_index(self.stack(inner(node["right"])["value"]))
            case "size_stack":
                return self.stack(inner(node["right"])["value"]).next
            case "~":
                return Inverse(self.data(node["right"]))
            case op if op in BOOLEAN_OPS:
                return _as_number(self.boolean(node))

        return self._binary(node)

    def _binary(self, node: Json) -> Expression:
        op = node["op"]
        right = self.data(node["right"])
        # A unary operator has no left side in the JSON.
        first = self.data(node["left"]) if node.get("left") is not None else ZERO
        if op in ARITHMETIC:
            return Binary(op, first, right)
        if op in ("<<", ">>"):
            return _shift(op, first, right)
        if op in _DIVISIONS:
            return Call(_DIVISIONS[op], (first, right))
        if op in _CUTS:
            return _cut(_CUTS[op], first, right)

        raise PipelineError(f"unknown operator {op!r}")


def _as_number(test: Expression) -> Expression:
    return Number(int(test.value)) if isinstance(test, Truth) else Choice(test, ONE, ZERO)


def _compared(op: str, left: Expression, right: Expression) -> Expression:
    # Varbits are bytes, which Python compares as such.
    kind = CompareBytes if _is_bytes(left) or _is_bytes(right) else Compare
    return kind(op, left, right)


def _is_bytes(value: Expression) -> bool:
    while isinstance(value, Choice):
        value = value.yes

    return isinstance(value, Bytes)


def _is_set(value: Expression) -> Compare:
    return Compare("!=", value, ZERO)


def last_index(stack: Stack) -> Expression:
    """Return the index of `last` of a stack, the element before `next`."""
    return Binary("-", stack.next, ONE)


def cut(field: Field, value: Expression) -> Expression:
    """Return the value of a field after the assignment."""
    # BMv2 computes with integers of any size and cuts where a value is stored; where P4 wants a
    # result cut in between, compilers say so in the expression. Python does the same for nothing,
    # and a value that cannot be wider than the field needs no cut at all.
    if field.is_signed:
        return Cut(names.WRAP, value, field.bits)

    return value if field.is_varbit else cut_to(value, field.bits)


def cut_to(value: Expression, bits: int) -> Expression:
    """Return the low bits of a value, which may have no more."""
    return value if value.bits is not None and value.bits <= bits else masked(value, bits)


def in_bounds(index: Expression, size: int) -> Expression | None:
    """Return the condition under which an index is inside an array, None where it always is."""
    # A 9-bit port and 512 cells: most arrays are as large as their index can get.
    if index.bits is not None and 1 << index.bits <= size:
        return None

    return InBounds(index, size) if constant_below(index, size) is None else None


def constant_below(value: Expression, limit: int | None = None) -> int | None:
    """Return a value's number if it is a constant below `limit`, else None.

    Negative numbers are none.
    """
    if not isinstance(value, Number) or value.value < 0:
        return None

    return value.value if limit is None or value.value < limit else None


def _choose(headers: tuple[Header, ...], index: Expression) -> HeaderRef:
    constant = constant_below(index, len(headers))
    return HeaderRef(headers, index) if constant is None else HeaderRef((headers[constant],), None)


_DIVISIONS = {"/": names.DIV, "%": names.MOD}
_CUTS = {
    "two_comp_mod": names.WRAP,
    "usat_cast": names.SATURATE,
    "sat_cast": names.SATURATE_SIGNED,
}


def _cut(function: str, value: Expression, size: Expression) -> Expression:
    to = constant_below(size)
    if to is None or (to == 0 and function == names.SATURATE_SIGNED):
        return CutByValue(function, value, size)

    # Saturation is the only operator that carries its result's width.
    return Cut(function, value, to, to if function == names.SATURATE else None)


def _shift(op: str, left: Expression, right: Expression) -> Expression:
    amount = constant_below(right, MAX_SHIFT + 1)
    if amount is not None:
        return Shift(op, left, amount)
    if op == "<<":
        return Call(names.SHIFT_LEFT, (left, right))

    return Call(names.SHIFT_RIGHT, (left, right), left.bits)
