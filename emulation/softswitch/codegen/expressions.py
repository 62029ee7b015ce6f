"""BMv2 expressions as Python source.

Arithmetic has infinite precision, as in BMv2; values are cut when they are assigned. Every
expression knows how many bits it can have at most (None: it may be negative or of any size), so
that most cuts cost nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from emulation.softswitch.codegen import names
from emulation.softswitch.codegen.layout import unsigned
from emulation.softswitch.codegen.program import (
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
from emulation.softswitch.errors import PipelineError

# Wider than any field. A larger literal would make Python fold a constant of that many bits;
# `arithmetic` bounds it at run time instead.
MAX_SHIFT = 1 << 13
COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
BOOLEAN_OPS = COMPARISONS | {"and", "or", "not", "valid", "valid_union", "d2b"}


@dataclass(frozen=True, slots=True)
class Value:
    """Source of a number, and the most bits it can have when it is not negative."""

    source: str
    bits: int | None


@dataclass(frozen=True, slots=True)
class HeaderRef:
    """A header that is known, or chosen among several by an index known only at run time."""

    headers: tuple[Header, ...]
    index: str | None

    def pick(self, sources: list[str]) -> str:
        """Return the expression that is `sources[index]`, 0 beyond the end."""
        if self.index is None:
            return sources[0]

        # The packet chooses the index: one beyond the end must yield something, not raise.
        arms = [f"{source} if {self.index} == {i} else" for i, source in enumerate(sources)]
        return f"({' '.join(arms)} 0)"


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

    def boolean(self, expression: Json) -> str:
        """Return the source of a truth value."""
        node = inner(expression)
        if node.get("type") == "bool":
            return "True" if node["value"] else "False"

        match node.get("op"):
            case "and" | "or" | "not" | "?":
                return self._connective(node)
            case "d2b":
                return f"({self.data(node['right']).source} != 0)"
            case "valid":
                return self._validity(self.header(node["right"]))
            case "valid_union":
                return self._union_validity(node["right"])
            case op if op in COMPARISONS:
                return self._comparison(node)

        return f"({self.data(node).source} != 0)"

    def _connective(self, node: Json) -> str:
        op = node["op"]
        right = self.boolean(node["right"])
        if op == "not":
            return f"(not {right})"
        if op == "?":
            return f"({self.boolean(node['left'])} if {self.boolean(node['cond'])} else {right})"

        return f"({self.boolean(node['left'])} {op} {right})"

    def data(self, expression: Json) -> Value:
        """Return the source of a number."""
        node = inner(expression)
        if "op" in node:
            return self._operation(node)

        value = node["value"]
        match node["type"]:
            case "hexstr":
                number = hex_int(value, "constant")
                return Value(f"({number})" if number < 0 else str(number), _bits_of(number))
            case "field":
                return self.field_value(value)
            case "local" | "runtime_data":
                return self._parameter(value)
            case "bool":
                return Value(str(int(bool(value))), 1)
            case "register":
                return self._register(value[0], self.data(value[1]))
            case "stack_field":
                return self._stack_field(self.stack(value[0]), value[1])

        raise PipelineError(f"unknown operand type {node['type']!r}")

    def _parameter(self, number: Json) -> Value:
        return Value(
            names.parameter(number),
            item_at(self._parameter_bits, number, "the number of a parameter"),
        )

    def field_value(self, target: Json) -> Value:
        """Return the value of a field given as [header, field].

        The validity of a header is a field too.
        """
        if target[1] == VALID:
            return Value(self._program.header(target[0]).valid, 1)

        return value_of(self._program.field(target[0], target[1]))

    def header(self, expression: Json) -> HeaderRef:
        """Return the header that an expression denotes."""
        node = inner(expression)
        if node.get("type") == "header":
            return HeaderRef((self._program.header(node["value"]),), None)

        match node.get("op"):
            case "dereference_header_stack":
                stack = self.stack(inner(node["left"])["value"])
                headers = tuple(self._program.headers[i] for i in stack.elements)
                return _choose(headers, self.data(node["right"]).source)
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

    def _union_validity(self, expression: Json) -> str:
        unions, index = self._unions(expression)
        any_member = [
            "(" + " or ".join(self._program.headers[member].valid for member in union.members) + ")"
            for union in unions
        ]

        if index is None:
            return any_member[0]

        return (
            "("
            + " or ".join(f"({index} == {i} and {source})" for i, source in enumerate(any_member))
            + ")"
        )

    def _unions(self, expression: Json) -> tuple[tuple[Union, ...], str | None]:
        node = inner(expression)
        if node.get("type") == "header_union":
            return (self._program.unions[self._program.union_ids[node["value"]]],), None
        if node.get("op") != "dereference_union_stack":
            raise PipelineError(f"not a header union: {node!r}")

        unions = tuple(
            self._program.unions[i] for i in self.stack(inner(node["left"])["value"]).elements
        )
        index = self.data(node["right"]).source
        return ((unions[int(index)],), None) if _is_index(index, len(unions)) else (unions, index)

    def _validity(self, ref: HeaderRef) -> str:
        return ref.pick([header.valid for header in ref.headers])

    def _comparison(self, node: Json) -> str:
        left = node["left"]
        right = node["right"]
        op = node["op"]

        if self._is_header(left):
            equal = self._same_header(self.header(left), self.header(right))
            return equal if op == "==" else f"(not {equal})"

        if self.is_boolean(left):
            # `and` and `or` of Python return an operand, not a truth value.
            return f"(bool({self.boolean(left)}) {op} bool({self.boolean(right)}))"

        return f"({self.data(left).source} {op} {self.data(right).source})"

    def _is_header(self, expression: Json) -> bool:
        node = inner(expression)
        return node.get("type") == "header" or node.get("op") in {
            "dereference_header_stack",
            "access_union_header",
        }

    def _same_header(self, left: HeaderRef, right: HeaderRef) -> str:
        """BMv2 compares headers as equal only when both are valid."""
        # Two invalid headers are not equal either.
        pairs = [f"{self._validity(left)}", f"{self._validity(right)}"]
        for i in range(len(left.headers[0].fields)):
            sides = (
                ref.pick([header.fields[i].var for header in ref.headers]) for ref in (left, right)
            )
            pairs.append(" == ".join(sides))

        return f"({' and '.join(pairs)})"

    def _register(self, name: str, index: Value) -> Value:
        array = self.register(name)
        cell = f"{names.register(array.id)}[{index.source}]"
        # A register is a Python list, which would take -1 for its last cell and raise beyond its
        # end.
        bounds = in_bounds(index, array.size)

        return Value(cell if bounds is None else f"({cell} if {bounds} else 0)", array.bits)

    def register(self, name: str) -> Array:
        """Return a register array by name."""
        if name not in self._registers:
            raise PipelineError(f"no register array is called {name!r}")

        return self._registers[name]

    def _stack_field(self, stack: Stack, name: str) -> Value:
        headers = tuple(self._program.headers[i] for i in stack.elements)
        # `last` of a stack is the element before the next one.
        ref = HeaderRef(headers, f"{stack.next} - 1")
        fields = [self._program.field(header.name, name) for header in headers]

        return Value(ref.pick([field.var for field in fields]), fields[0].bits)

    def _operation(self, node: Json) -> Value:
        match node["op"]:
            case "access_field":
                ref = self.header(node["left"])
                fields = [
                    item_at(header.fields, node["right"], "a field") for header in ref.headers
                ]
                return Value(ref.pick([field.var for field in fields]), value_of(fields[0]).bits)
            case "?":
                return self._ternary(node)
            case "b2d":
                return _as_number(self.boolean(node["right"]))
            # No width: it is -1 while nothing has been extracted.
            case "last_stack_index":
                return Value(f"({self.stack(inner(node['right'])['value']).next} - 1)", None)
            case "size_stack":
                return Value(self.stack(inner(node["right"])["value"]).next, 32)
            case "~":
                # Of a non-negative number `~` is negative; the assignment cuts it.
                return Value(f"(~{self.data(node['right']).source})", None)
            case op if op in BOOLEAN_OPS:
                return _as_number(self.boolean(node))

        return self._binary(node)

    def _ternary(self, node: Json) -> Value:
        left = self.data(node["left"])
        right = self.data(node["right"])
        bits = None if left.bits is None or right.bits is None else max(left.bits, right.bits)

        return Value(f"({left.source} if {self.boolean(node['cond'])} else {right.source})", bits)

    def _binary(self, node: Json) -> Value:
        op = node["op"]
        right = self.data(node["right"])
        # A unary operator has no left side in the JSON.
        left = self.data(node["left"]) if node.get("left") is not None else Value("0", 0)

        if op in _ARITHMETIC:
            return Value(
                f"({left.source} {op} {right.source})", _ARITHMETIC[op](left.bits, right.bits)
            )

        if op in ("<<", ">>"):
            return _shift(op, left, right)
        if op not in _CALLS:
            raise PipelineError(f"unknown operator {op!r}")

        # Saturation is the one operator that says itself how wide its result is.
        bits = right.source.isdigit() and op == "usat_cast"
        return Value(
            f"{_CALLS[op]}({left.source}, {right.source})", int(right.source) if bits else None
        )


def _as_number(boolean: str) -> Value:
    literal = {"True": "1", "False": "0"}.get(boolean)
    return Value(literal or f"(1 if {boolean} else 0)", 1)


def value_of(field: Field) -> Value:
    """Return the value of a known field."""
    return Value(field.var, None if field.is_signed or field.is_varbit else field.bits)


def cut(field: Field, value: Value) -> str:
    """Return the source of what a field holds after the value is assigned to it."""
    # BMv2 computes with integers of any size and cuts where a value is stored; where P4 wants a
    # result cut in between, compilers say so in the expression. Python does the same for nothing,
    # and a value that cannot be wider than the field needs no cut at all.
    if field.is_signed:
        return f"{names.WRAP}({value.source}, {field.bits})"
    if field.is_varbit or (value.bits is not None and value.bits <= field.bits):
        return value.source

    return f"{value.source} & {(1 << field.bits) - 1}"


def bits_of_field(field: Field) -> str:
    """Return the unsigned source of a field, as keys and hashes see it."""
    return unsigned(field)


def in_bounds(index: Value, size: int) -> str | None:
    """Return the condition under which an index is inside an array, None where it always is."""
    # A 9-bit port and 512 cells: most arrays are as large as their index can get.
    if index.bits is not None and 1 << index.bits <= size:
        return None
    if index.source.isdigit() and int(index.source) < size:
        return None

    return f"{index.source} < {size}" if index.bits is not None else f"0 <= {index.source} < {size}"


def _choose(headers: tuple[Header, ...], index: str) -> HeaderRef:
    if _is_index(index, len(headers)):
        return HeaderRef((headers[int(index)],), None)

    return HeaderRef(headers, index)


def _is_index(source: str, size: int) -> bool:
    return source.isdigit() and int(source) < size


def _bits_of(number: int) -> int | None:
    return number.bit_length() if number >= 0 else None


def _add_bits(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else max(left, right) + 1


def _multiply_bits(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else left + right


def _and_bits(left: int | None, right: int | None) -> int | None:
    # A mask bounds even a negative number: Python takes it for two's complement without end.
    known = [bits for bits in (left, right) if bits is not None]
    return min(known) if known else None


def _or_bits(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else max(left, right)


# The difference may be negative, and then has no width.
def _subtract_bits(_left: int | None, _right: int | None) -> int | None:
    return None


_ARITHMETIC = {
    "+": _add_bits,
    "-": _subtract_bits,
    "*": _multiply_bits,
    "&": _and_bits,
    "|": _or_bits,
    "^": _or_bits,
}
_CALLS = {
    "/": names.DIV,
    "%": names.MOD,
    "two_comp_mod": names.WRAP,
    "usat_cast": names.SATURATE,
    "sat_cast": names.SATURATE_SIGNED,
}


def _shift(op: str, left: Value, right: Value) -> Value:
    if not right.source.isdigit() or int(right.source) > MAX_SHIFT:
        name = names.SHIFT_LEFT if op == "<<" else names.SHIFT_RIGHT
        return Value(f"{name}({left.source}, {right.source})", left.bits if op == ">>" else None)

    # Shifting right by more than there is leaves no bits, not a negative number of them.
    amount = int(right.source)
    bits = None if left.bits is None else max(left.bits + (amount if op == "<<" else -amount), 0)
    return Value(f"({left.source} {op} {amount})", bits)
