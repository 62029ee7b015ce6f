"""What expressions, statements and calls of P4_16 do, as plainly as the specification says it.

Every value knows its type, so nothing is checked or inferred beforehand: an operator looks at what
it gets. Calls copy their arguments in and out, always, as "Calling convention: call by copy in/copy
out" has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.language import tree as n
from tests.language.values import (
    UNDEFINED,
    Header,
    Label,
    Num,
    ParserError,
    Stack,
    Struct,
    UndefinedError,
    Union,
    Varbits,
    clamped,
    copied,
    defined,
    equal,
    fresh,
    pattern,
    wrapped,
)

MOST_STEPS = 20_000
HEADERS = {"isValid", "setValid", "setInvalid", "push_front", "pop_front"}


class ExitSignal(Exception):
    """`exit`."""


class ReturnSignal(Exception):
    """`return`; `args[0]` is the value."""


class LoopSignal(Exception):
    """`break` or `continue`, in `args[0]`."""


class EndlessError(Exception):
    """The program takes too long to be worth judging."""


@dataclass(slots=True)
class Scope:
    """Names of a block: variables with their types, and what else has been declared there."""

    parent: Scope | None
    values: dict[str, Any] = field(default_factory=dict)
    types: dict[str, n.Type] = field(default_factory=dict)

    def holder(self, name: str) -> Scope:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope
            scope = scope.parent
        raise KeyError(name)

    def find(self, name: str) -> Any:
        return self.holder(name).values[name]

    def declare(self, name: str, type_: n.Type, value: Any) -> None:
        self.values[name] = value
        self.types[name] = type_


@dataclass(slots=True)
class Place:
    """Something that can be written to: an entry of a dict or list, or of a header's fields."""

    container: Any
    key: Any
    type: n.Type
    header: Header | None = None

    def get(self) -> Any:
        if self.header is not None and not self.header.valid:
            return UNDEFINED
        return self.container[self.key]

    def set(self, value: Any) -> None:
        # A write to a field of an invalid header has no effect that can be seen.
        if self.header is not None and not self.header.valid:
            return
        if isinstance(value, Struct | Header | Union | Stack):
            overwrite(self.container[self.key], value)
        else:
            self.container[self.key] = value


@dataclass(slots=True)
class Part:
    """A slice of a place."""

    whole: Place | Part
    high: int
    low: int

    @property
    def type(self) -> n.Type:
        return n.Bits(self.high - self.low + 1)

    def get(self) -> Any:
        return sliced(defined(self.whole.get()), self.high, self.low)

    def set(self, value: Any) -> None:
        old = self.whole.get()
        if old is UNDEFINED:
            return
        mask = ((1 << (self.high - self.low + 1)) - 1) << self.low
        bits = pattern(old) & ~mask | defined(value).value << self.low
        self.whole.set(wrapped(bits, old.width, old.signed))


def overwrite(target: Any, value: Any) -> None:
    """Copy a struct, header, union or stack into another of its type."""
    match target, value:
        case Struct(fields), Struct(given):
            for name, inner in given.items():
                if isinstance(inner, Struct | Header | Union | Stack):
                    overwrite(fields[name], inner)
                else:
                    fields[name] = inner
        case Header(), Header(fields=given, valid=valid):
            if valid:
                target.make_valid()
                # The same dict: a place that a call copies its argument out to stays this one.
                target.fields.update(given)
            else:
                target.make_invalid()
        case Union(members), Union(given):
            for member in members.values():
                member.make_invalid()
            for name, inner in given.items():
                if inner.valid:
                    overwrite(members[name], inner)
        case Stack(elements, _), Stack(given, following):
            for element, inner in zip(elements, given, strict=True):
                overwrite(element, inner)
            target.next = following
        case _:
            raise TypeError(f"{value} does not fit {target}")


def sliced(value: Num, high: int, low: int) -> Num:
    return wrapped(pattern(value) >> low, high - low + 1, False)


def converted(value: Any, type_: n.Type) -> Any:
    """Return a value as one of a type, by the implicit casts: of `int`, and of lists."""
    match type_, value:
        case n.Bits(width, signed), Num(number, None):
            return wrapped(number, width, signed)
        case n.Struct(kind="struct", fields=fields), Struct(given):
            return Struct(
                {
                    name: converted(copied(inner), below)
                    for (name, below), inner in zip(fields, ordered(given, fields), strict=True)
                }
            )
        case n.Tuple(items), Struct(given):
            pairs = zip(items, given.values(), strict=True)
            return Struct({str(at): converted(inner, t) for at, (t, inner) in enumerate(pairs)})
        case n.Struct(kind="header", fields=fields), Struct(given):
            made = fresh(type_)
            made.valid = True
            for (name, below), inner in zip(fields, ordered(given, fields), strict=True):
                made.fields[name] = converted(inner, below)
            return made
        case _:
            return copied(value)


def ordered(given: dict[str, Any], fields: tuple[tuple[str, n.Type], ...]) -> list[Any]:
    """Return the items of a list in the order of the fields, by name where they have names."""
    if all(name in given for name, _ in fields):
        return [given[name] for name, _ in fields]
    return list(given.values())


def cast(value: Any, type_: n.Type) -> Any:
    """Return `(type) value`."""
    match type_, value:
        case (n.Bits(width, signed), bool() | Num()) | (
            n.Enum(below=n.Bits(width, signed)),
            bool() | Num(),
        ):
            number = int(value) if isinstance(value, bool) else value.value
            return wrapped(number, width, signed)
        case n.Plain("bool"), bool() | Num():
            return value if isinstance(value, bool) else value.value != 0
        case n.Plain("int"), Num():
            return Num(value.value)
        case _:
            return converted(value, type_)


# Operators


def unary(op: str, value: Any) -> Any:
    if op == "!":
        return not value
    exact = {"-": -value.value, "~": ~value.value, "+": value.value}[op]
    return wrapped(exact, value.width, value.signed)


def binary(op: str, left: Any, right: Any) -> Any:
    if op in ("==", "!="):
        return equal(left, right) == (op == "==")
    if op in ("<<", ">>"):
        return shifted(op, left, right.value)
    if op == "++":
        bits = pattern(left) << right.width | pattern(right)
        return wrapped(bits, left.width + right.width, left.signed)

    # An `int` takes the type of the other side.
    if left.width is None and right.width is not None:
        left = wrapped(left.value, right.width, right.signed)
    elif right.width is None and left.width is not None:
        right = wrapped(right.value, left.width, left.signed)

    one, other = left.value, right.value
    if op in ("|+|", "|-|"):
        return clamped(one + other if op == "|+|" else one - other, left.width, left.signed)
    if op in ORDER:
        return ORDER[op](one, other)
    return wrapped(ARITHMETIC[op](one, other), left.width, left.signed)


ORDER: dict[str, Callable[[int, int], bool]] = {
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
}
ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": lambda one, other: one + other,
    "-": lambda one, other: one - other,
    "*": lambda one, other: one * other,
    "/": lambda one, other: one // other,
    "%": lambda one, other: one % other,
    "&": lambda one, other: one & other,
    "|": lambda one, other: one | other,
    "^": lambda one, other: one ^ other,
}


def shifted(op: str, left: Num, places: int) -> Num:
    """Shift; places beyond the width move everything out, and leave the sign of an `int<W>`."""
    if left.width is not None:
        places = min(places, left.width)
    exact = left.value << places if op == "<<" else left.value >> places
    return wrapped(exact, left.width, left.signed)


class Evaluator:
    """Runs the code of one program; subclasses know packets, tables and externs."""

    def __init__(self, program: n.Program) -> None:
        self.program = program
        self.steps = 0
        self.root = Scope(None)
        for function in program.functions.values():
            self.root.values[function.name] = function
        for constant in program.constants:
            assert constant.value is not None
            value = converted(self.value(constant.value, self.root), constant.type)
            self.root.declare(constant.name, constant.type, value)

    # Expressions

    def value(self, node: n.Expression, scope: Scope) -> Any:
        """Return the value of an expression, which must be defined."""
        match node:
            case n.Number(value, width, signed):
                return Num(value, width, signed)
            case n.Truth(value) | n.Text(value):
                return value
            case n.Name() | n.Member() | n.Index():
                return defined(self.read(node, scope))
            case n.OfType(type_, name):
                return label(type_, name)
            case n.Slice(base, high, low):
                return sliced(self.value(base, scope), high, low)
            case n.Unary(op, operand):
                return unary(op, self.value(operand, scope))
            case n.Binary("&&", left, right):
                return self.value(left, scope) and self.value(right, scope)
            case n.Binary("||", left, right):
                return self.value(left, scope) or self.value(right, scope)
            case n.Binary(op, left, right):
                # A copy: what the right side does must not change the left.
                first = copied(self.value(left, scope))
                return binary(op, first, self.value(right, scope))
            case n.Choice(condition, then, otherwise):
                return self.value(then if self.value(condition, scope) else otherwise, scope)
            case n.Cast(type_, operand):
                return cast(self.value(operand, scope), type_)
            case n.Items(items, names):
                keys = names or tuple(str(at) for at in range(len(items)))
                values = [copied(self.loose(item, scope)) for item in items]
                return Struct(dict(zip(keys, values, strict=True)))
            case n.Call():
                return self.call(node, scope)
        raise TypeError(f"{node} is not a value")

    def loose(self, node: n.Expression, scope: Scope) -> Any:
        """Return a value that may be undefined, as it is only copied."""
        if isinstance(node, n.Name | n.Member | n.Index):
            return self.read(node, scope)
        return self.value(node, scope)

    def read(self, node: n.Expression, scope: Scope) -> Any:
        match node:
            case n.Name(name):
                return scope.find(name)
            case n.Member(n.Call() as call, "hit" | "miss" | "action_run" as name):
                return self.applied(call, name, scope)
            case n.Member(base, name):
                return self.member(self.read(base, scope), name)
            case n.Index(base, index):
                return self.element(self.read(base, scope), self.value(index, scope))
            case _:
                return self.value(node, scope)

    def member(self, base: Any, name: str) -> Any:
        match base:
            case Struct(fields):
                return fields[name]
            case Header():
                return base.fields[name] if base.valid else UNDEFINED
            case Union(members):
                return members[name]
            case Stack(elements, following):
                if name == "lastIndex":
                    if following == 0:
                        raise UndefinedError
                    return Num(following - 1, 32)
                at = following - (name == "last")
                if not 0 <= at < len(elements):
                    raise ParserError("StackOutOfBounds")
                return elements[at]
        raise TypeError(f"{base} has no {name}")

    def element(self, base: Any, index: Num) -> Any:
        if isinstance(base, Struct):
            return base.fields[str(index.value)]
        if not 0 <= index.value < len(base.elements):
            raise UndefinedError
        return base.elements[index.value]

    def place(self, node: n.Expression, scope: Scope) -> Place | Part:
        """Return where an expression stands for; its indices are evaluated now, and only once."""
        match node:
            case n.Name(name):
                holder = scope.holder(name)
                return Place(holder.values, name, holder.types[name])
            case n.Member(base, name):
                owner = self.read(base, scope)
                match owner:
                    case Header():
                        return Place(owner.fields, name, dict(owner.type.fields)[name], owner)
                    case Struct(fields):
                        return Place(fields, name, self.type_of(node, scope))
                    case Union(members):
                        return Place(members, name, members[name].type)
                    case Stack(elements, following):
                        self.member(owner, name)
                        at = following - (name == "last")
                        return Place(elements, at, n.Plain("void"))
            case n.Index(base, index):
                owner = self.read(base, scope)
                at = self.value(index, scope).value
                self.element(owner, Num(at))
                if isinstance(owner, Struct):
                    return Place(owner.fields, str(at), self.type_of(node, scope))
                return Place(owner.elements, at, self.type_of(node, scope))
            case n.Slice(base, high, low):
                return Part(self.place(base, scope), high, low)
        raise TypeError(f"{node} is not a place")

    def type_of(self, node: n.Expression, scope: Scope) -> n.Type:
        """Return the type of a variable, or of a part of one."""
        match node:
            case n.Name(name):
                return scope.holder(name).types[name]
            case n.Member(base, name):
                match self.type_of(base, scope):
                    case n.Struct(fields=fields):
                        return dict(fields)[name]
                    case n.Stack(element):
                        return element
            case n.Index(base, index):
                match self.type_of(base, scope):
                    case n.Stack(element):
                        return element
                    case n.Tuple(items):
                        assert isinstance(index, n.Number)
                        return items[index.value]
        raise TypeError(f"{node} has no type of its own")

    # Statements

    def run(self, node: n.Statement, scope: Scope) -> None:
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise EndlessError
        match node:
            case n.Block(body):
                inner = Scope(scope)
                for statement in body:
                    self.run(statement, inner)
            case n.Declare(type_, name, value):
                given = fresh(type_)
                if value is not None:
                    given = converted(self.loose(value, scope), type_)
                scope.declare(name, type_, given)
            case n.Assign(target, op, value):
                place = self.place(target, scope)
                old = defined(place.get()) if op else None
                given = self.loose(value, scope)
                made = binary(op, old, defined(given)) if op else given
                place.set(converted(made, place.type))
            case n.Do(call):
                assert isinstance(call, n.Call)
                self.call(call, scope)
            case n.If(condition, then, otherwise):
                if self.value(condition, scope):
                    self.run(then, scope)
                elif otherwise is not None:
                    self.run(otherwise, scope)
            case n.Switch():
                self.switch(node, scope)
            case n.For() | n.ForIn():
                self.loop(node, scope)
            case n.Return(value):
                raise ReturnSignal(None if value is None else self.loose(value, scope))
            case n.Jump("exit"):
                raise ExitSignal
            case n.Jump(kind):
                raise LoopSignal(kind)

    def switch(self, node: n.Switch, scope: Scope) -> None:
        subject = self.value(node.subject, scope)
        chosen = None
        for at, (written, _) in enumerate(node.cases):
            # `default` applies when no other label does, wherever it stands.
            if isinstance(written, n.Anything):
                chosen = at if chosen is None else chosen
            elif self.is_label(written, subject, scope):
                chosen = at
                break
        if chosen is None:
            return
        for _, body in node.cases[chosen:]:
            if body is not None:
                self.run(body, scope)
                return

    def is_label(self, written: n.Expression, subject: Any, scope: Scope) -> bool:
        if isinstance(subject, str):
            return isinstance(written, n.Name) and written.name == subject
        return equal(self.value(written, scope), subject)

    def loop(self, node: n.For | n.ForIn, scope: Scope) -> None:
        inner = Scope(scope)
        for _ in self.turns(node, inner):
            if self.turn(node.body, inner) == "break":
                return

    def turn(self, body: n.Statement, scope: Scope) -> str:
        """Run a loop's body once; return how it has been left."""
        try:
            self.run(body, scope)
        except LoopSignal as signal:
            return str(signal.args[0])
        return ""

    def turns(self, node: n.For | n.ForIn, inner: Scope) -> Iterator[None]:
        if isinstance(node, n.For):
            for statement in node.init:
                self.run(statement, inner)
            while self.value(node.condition, inner):
                yield
                for statement in node.update:
                    self.run(statement, inner)
            return
        for value in self.loop_values(node.values, inner):
            inner.declare(node.name, node.type, converted(value, node.type))
            yield

    def loop_values(self, node: n.Expression, scope: Scope) -> list[Any]:
        if isinstance(node, n.Between):
            low = self.value(node.low, scope)
            high = self.value(node.high, scope)
            typed = low if low.width is not None else high
            return [
                Num(value, typed.width, typed.signed) for value in range(low.value, high.value + 1)
            ]
        return list(self.value(node, scope).fields.values())

    # Calls

    def call(self, node: n.Call, scope: Scope) -> Any:
        match node.target:
            case n.Name(name):
                try:
                    found = scope.find(name)
                except KeyError:
                    return self.extern(name, node, scope)
                assert isinstance(found, n.Function)
                return self.invoke(found, node.args, scope)
            case n.Member(base, name) if name in HEADERS:
                return self.header_method(self.read(base, scope), name, node, scope)
            case n.Member(n.Name(name), "apply"):
                return self.apply(scope.find(name), node.args, scope)
            case n.Member(base, name):
                return self.method(self.read(base, scope), name, node, scope)
        raise TypeError(f"{node} cannot be called")

    def header_method(self, base: Any, name: str, node: n.Call, scope: Scope) -> Any:
        match name, base:
            case "isValid", Header(valid=valid):
                return valid
            case "isValid", Union(members):
                return any(member.valid for member in members.values())
            case "setValid", Header():
                if not base.valid:
                    base.make_valid()
            case "setInvalid", Header():
                base.make_invalid()
            case _, Stack():
                shift(base, self.value(node.args[0], scope).value, forward=name == "push_front")
        return None

    def invoke(
        self, function: n.Function, args: tuple[n.Expression, ...], scope: Scope, data: Any = ()
    ) -> Any:
        """Call a function or action; `data` are what the control plane gives for the last ones."""
        home = self.home(function, scope)
        with self.bound(function.params, args, scope, home, data) as inner:
            try:
                for statement in function.body.body:
                    self.run(statement, inner)
            except ReturnSignal as signal:
                return signal.args[0]
        return None

    def home(self, function: n.Function, scope: Scope) -> Scope:
        """Return the scope in which a function is declared, which is what its body sees."""
        return scope.holder(function.name)

    @contextmanager
    def bound(
        self,
        params: tuple[n.Param, ...],
        args: tuple[n.Expression, ...],
        scope: Scope,
        home: Scope,
        data: tuple[Any, ...] = (),
    ) -> Iterator[Scope]:
        """Copy arguments in, and those of `out` and `inout` parameters back at the end."""
        inner = Scope(home)
        back: list[tuple[str, Place | Part]] = []
        given: list[tuple[n.Param, Any]] = []
        for param, arg in zip(params, args, strict=False):
            if param.direction in ("out", "inout"):
                place = self.place(arg, scope)
                back.append((param.name, place))
                value = fresh(param.type)
                if param.direction == "inout":
                    value = copied(place.get())
            else:
                value = converted(self.loose(arg, scope), param.type)
            given.append((param, value))
        given += zip(params[len(args) :], data, strict=True)
        for param, value in given:
            inner.declare(param.name, param.type, value)
        try:
            yield inner
        finally:
            # Also after `exit`: the copies are made before the program ends.
            for name, place in back:
                place.set(copied(inner.values[name]))

    # What packets, tables and externs do is in subclasses.

    def extern(self, name: str, node: n.Call, scope: Scope) -> Any:
        raise NotImplementedError

    def method(self, base: Any, name: str, node: n.Call, scope: Scope) -> Any:
        raise NotImplementedError

    def apply(self, found: Any, args: tuple[n.Expression, ...], scope: Scope) -> Any:
        raise NotImplementedError

    def applied(self, call: n.Call, what: str, scope: Scope) -> Any:
        raise NotImplementedError


def label(type_: n.Type, name: str) -> Any:
    """Return a member of an enum or an error."""
    match type_:
        case n.Enum(_, members, n.Bits(width, signed), values):
            return Num(values[members.index(name)], width, signed)
        case n.Enum(of):
            return Label(of, name)
    return Label("error", name)


def shift(stack: Stack, places: int, forward: bool) -> None:
    """`push_front` and `pop_front`."""
    size = len(stack.elements)
    old = [copied(element) for element in stack.elements]
    for at, element in enumerate(stack.elements):
        source = at - places if forward else at + places
        if 0 <= source < size:
            overwrite(element, old[source])
        elif isinstance(element, Union):
            for member in element.members.values():
                member.make_invalid()
        else:
            element.make_invalid()
    moved = stack.next + places if forward else stack.next - places
    stack.next = min(max(moved, 0), size)


__all__ = ["Evaluator", "ExitSignal", "ParserError", "Scope", "Varbits"]
