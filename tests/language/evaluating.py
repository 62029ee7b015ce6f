"""Expressions, statements and calls of P4_16, as plainly as in the specification.

Every value knows its type, so nothing is checked or inferred beforehand: an operator looks at its
operands. Calls copy their arguments in and out, always, as "Calling convention: call by copy
in/copy out" has it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.language import tree as n
from tests.language.operators import binary, cast, converted, label, shift, sliced, unary
from tests.language.scopes import Part, Place, Scope
from tests.language.values import (
    UNDEFINED,
    Header,
    Num,
    ParserError,
    Stack,
    Struct,
    UndefinedError,
    Union,
    copied,
    defined,
    equal,
    fresh,
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
            case n.Binary("&&", left_side, right_side):
                return self.value(left_side, scope) and self.value(right_side, scope)
            case n.Binary("||", left_side, right_side):
                return self.value(left_side, scope) or self.value(right_side, scope)
            case n.Binary(op, left_side, right_side):
                # A copy: the right side must not change the left.
                first = copied(self.value(left_side, scope))
                return binary(op, first, self.value(right_side, scope))
            case n.Choice(condition, then, otherwise):
                return self.value(then if self.value(condition, scope) else otherwise, scope)
            case n.Cast(type_, operand):
                return cast(self.value(operand, scope), type_)
            case n.Items(items, names):
                keys = names or tuple(str(i) for i in range(len(items)))
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
        """Return the value of an expression, defined or not."""
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
        """Return `base.name`."""
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
                i = following - (name == "last")
                if not 0 <= i < len(elements):
                    raise ParserError("StackOutOfBounds")
                return elements[i]

        raise TypeError(f"{base} has no {name}")

    def element(self, base: Any, index: Num) -> Any:
        """Return `base[index]`."""
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
                        i = following - (name == "last")
                        return Place(elements, i, n.Plain("void"))
            case n.Index(base, index):
                owner = self.read(base, scope)
                i = self.value(index, scope).value
                self.element(owner, Num(i))
                if isinstance(owner, Struct):
                    return Place(owner.fields, str(i), self.type_of(node, scope))
                return Place(owner.elements, i, self.type_of(node, scope))
            case n.Slice(base, high, low):
                return Part(self.place(base, scope), high, low)

        raise TypeError(f"{node} is not a place")

    def type_of(self, node: n.Expression, scope: Scope) -> n.Type:
        """Return the type of a variable, or of a part of a variable."""
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
        """Run one statement."""
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise EndlessError
        match node:
            case n.Block(body):
                inner = Scope(scope)
                for statement in body:
                    self.run(statement, inner)
            case n.Declare(type_, name, value):
                new_value = fresh(type_)
                if value is not None:
                    new_value = converted(self.loose(value, scope), type_)
                scope.declare(name, type_, new_value)
            case n.Assign(target, op, value):
                lvalue = self.place(target, scope)
                old = defined(lvalue.get()) if op else None
                new_value = self.loose(value, scope)
                made = binary(op, old, defined(new_value)) if op else new_value
                lvalue.set(converted(made, lvalue.type))
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
        """Run the case with the subject's value as its label."""
        subject = self.value(node.subject, scope)
        chosen = None
        for i, (written, _) in enumerate(node.cases):
            # `default` applies when no other label does, wherever it stands.
            if isinstance(written, n.Anything):
                chosen = i if chosen is None else chosen
            elif self.is_label(written, subject, scope):
                chosen = i
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
        """Yield once for each turn of a loop."""
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
        """Return the values that a `for ... in` goes through."""
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
        """Call whatever stands before the parentheses."""
        match node.target:
            case n.Name(name):
                try:
                    function = scope.find(name)
                except KeyError:
                    return self.extern(name, node, scope)
                assert isinstance(function, n.Function)
                return self.invoke(function, node.args, scope)
            case n.Member(base, name) if name in HEADERS:
                return self.header_method(self.read(base, scope), name, node, scope)
            case n.Member(n.Name(name), "apply"):
                return self.apply(scope.find(name), node.args, scope)
            case n.Member(base, name):
                return self.method(self.read(base, scope), name, node, scope)

        raise TypeError(f"{node} cannot be called")

    def header_method(self, base: Any, name: str, node: n.Call, scope: Scope) -> Any:
        """Call a method of a header, union or stack."""
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
        """Call a function or action; `data` are the last arguments, from the control plane."""
        home = self.home(function, scope)
        with self.bound(function.params, args, scope, home, data) as inner:
            try:
                for statement in function.body.body:
                    self.run(statement, inner)
            except ReturnSignal as signal:
                return signal.args[0]

        return None

    def home(self, function: n.Function, scope: Scope) -> Scope:
        """Return the scope in which a function is declared, which is the scope around its body."""
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
        bound_values: list[tuple[n.Param, Any]] = []
        by_name = {param.name: param for param in params}
        # In the order of the text: each argument sees the changes of those before it.
        for i, arg in enumerate(args):
            param = params[i]
            if isinstance(arg, n.Named):
                param, arg = by_name[arg.name], arg.value
            if param.direction in ("out", "inout"):
                lvalue = self.place(arg, scope)
                back.append((param.name, lvalue))
                value = fresh(param.type)
                if param.direction == "inout":
                    value = copied(lvalue.get())
            else:
                value = converted(self.loose(arg, scope), param.type)
            bound_values.append((param, value))

        bound_values += zip(params[len(args) :], data, strict=True)
        for param, value in bound_values:
            inner.declare(param.name, param.type, value)
        try:
            yield inner
        finally:
            # Also after `exit`: the copies are made before the program ends.
            for name, lvalue in back:
                lvalue.set(copied(inner.values[name]))

    # Packets, tables and externs are in subclasses.

    def extern(self, name: str, node: n.Call, scope: Scope) -> Any:
        raise NotImplementedError

    def method(self, base: Any, name: str, node: n.Call, scope: Scope) -> Any:
        raise NotImplementedError

    def apply(self, callee: Any, args: tuple[n.Expression, ...], scope: Scope) -> Any:
        raise NotImplementedError

    def applied(self, call: n.Call, member: str, scope: Scope) -> Any:
        raise NotImplementedError
