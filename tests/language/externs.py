"""The externs of v1model: registers, counters, hashes, and a pipeline's requests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.language import tree as n
from tests.language.evaluating import Evaluator
from tests.language.hashing import hashed
from tests.language.operators import converted
from tests.language.scopes import Scope
from tests.language.values import (
    Header,
    Num,
    ParserError,
    Struct,
    UndefinedError,
    copied,
    defined,
    to_bits,
    to_bytes,
    zero,
)

DROP = 511


@dataclass(slots=True)
class Cells:
    """A register, counter or meter."""

    kind: str
    element: n.Type | None
    cells: list[Any]


@dataclass(slots=True)
class Wishes:
    """A pipeline's requests beside its packet."""

    clone: tuple[int, int] | None = None
    again: int | None = None
    digest: tuple[int, ...] | None = None
    truncate: int = 0


@dataclass(slots=True)
class Results:
    sent: list[tuple[int, bytes]] = field(default_factory=list)
    digests: list[tuple[int, ...]] = field(default_factory=list)
    logs: list[str] = field(default_factory=list)


class ExternEvaluator(Evaluator):
    """Runs code that calls externs; `objects` are registers and counters by their path."""

    def __init__(self, program: n.Program) -> None:
        super().__init__(program)
        self.objects: dict[str, Cells] = {}
        self.path: list[str] = []
        self.wishes = Wishes()
        self.results = Results()
        self.in_egress = False

    def declare_locals(self, items: tuple[n.Local, ...], scope: Scope) -> None:
        """Declare variables, instances, actions and tables of a block."""
        for item in items:
            match item:
                case n.Declare():
                    self.run(item, scope)
                case n.Instance():
                    scope.values[item.name] = self.instance(item, scope)
                case _:
                    scope.values[item.name] = item

    def instance(self, item: n.Instance, scope: Scope) -> Any:
        """Return the object of an extern, which lives as long as the switch."""
        if not isinstance(item.type, n.Extern):
            return item
        path = ".".join((*self.path, item.name))
        if path not in self.objects:
            element = item.type.args[0] if item.type.args else None
            size = self.value(item.args[0], scope).value
            empty = 0 if element is None else zero(element)
            self.objects[path] = Cells(item.type.name, element, [empty] * size)

        return self.objects[path]

    def extern(self, name: str, node: n.Call, scope: Scope) -> Any:
        return getattr(self, f"do_{name}")(node, scope)

    def numbers(self, node: n.Call, scope: Scope) -> list[Any]:
        return [self.value(arg, scope) for arg in node.args]

    def do_mark_to_drop(self, node: n.Call, scope: Scope) -> None:
        standard = self.read(node.args[0], scope)
        standard.fields["egress_spec"] = Num(DROP, 9)
        standard.fields["mcast_grp"] = Num(0, 16)

    def do_verify(self, node: n.Call, scope: Scope) -> None:
        good, error = self.numbers(node, scope)
        if not good:
            raise ParserError(error.name)

    def do_hash(self, node: n.Call, scope: Scope) -> None:
        """`hash`: base + (hash mod max)."""
        lvalue = self.place(node.args[0], scope)
        base = self.value(node.args[2], scope)
        data = copied(self.value(node.args[3], scope))
        modulus = self.value(node.args[4], scope)
        hash_value = hashed(self.algorithm(node.args[1]), to_bytes([data]))
        offset = hash_value % modulus.value if modulus.value else 0
        assert isinstance(lvalue.type, n.Bits)
        total = Num(base.value + offset)
        lvalue.set(converted(total, lvalue.type))

    def algorithm(self, node: n.Expression) -> str:
        assert isinstance(node, n.OfType)

        return node.name

    def do_digest(self, node: n.Call, scope: Scope) -> None:
        """`digest`: a message to the controller."""
        _, data = self.numbers(node, scope)
        # The target learns behind ingress only.
        if self.in_egress:
            return
        # Of several calls the last one counts.
        self.wishes.digest = tuple(to_bits(value)[0] for value in leaves(data))

    def do_log_msg(self, node: n.Call, scope: Scope) -> None:
        """`log_msg`: a line of the log."""
        text, data = self.numbers(node, scope)
        for value in leaves(data):
            text = text.replace(
                "{}", str(int(value) if isinstance(value, bool) else value.value), 1
            )

        self.results.logs.append(text)

    def do_truncate(self, node: n.Call, scope: Scope) -> None:
        self.wishes.truncate = self.numbers(node, scope)[0].value

    def do_clone_preserving_field_list(self, node: n.Call, scope: Scope) -> None:
        _, session, number = self.numbers(node, scope)
        self.wishes.clone = session.value, number.value

    def do_resubmit_preserving_field_list(self, node: n.Call, scope: Scope) -> None:
        self.wishes.again = self.numbers(node, scope)[0].value

    do_recirculate_preserving_field_list = do_resubmit_preserving_field_list

    def checksum(self, node: n.Call, scope: Scope) -> tuple[bool, Num]:
        """Return whether a checksum is wanted, and its value."""
        condition = self.value(node.args[0], scope)
        if not condition:
            return False, Num(0)
        data = self.value(node.args[1], scope)
        hash_value = hashed(self.algorithm(node.args[3]), to_bytes([data]))

        return True, Num(hash_value)

    def do_update_checksum(self, node: n.Call, scope: Scope) -> None:
        condition, checksum = self.checksum(node, scope)
        if condition:
            lvalue = self.place(node.args[2], scope)
            lvalue.set(converted(checksum, lvalue.type))

    def register_read(self, base: Cells, node: n.Call, scope: Scope) -> None:
        """`register.read`; beyond the end the result is undefined."""
        lvalue = self.place(node.args[0], scope)
        i = self.value(node.args[1], scope).value
        if i >= len(base.cells):
            raise UndefinedError
        lvalue.set(base.cells[i])

    def register_write(self, base: Cells, node: n.Call, scope: Scope) -> None:
        """`register.write`; beyond the end nothing happens."""
        i, value = (copied(part) for part in self.numbers(node, scope))
        assert base.element is not None
        if i.value < len(base.cells):
            base.cells[i.value] = converted(value, base.element)

    def counter_count(self, base: Cells, node: n.Call, scope: Scope) -> None:
        i = self.value(node.args[0], scope).value
        if i < len(base.cells):
            base.cells[i] += 1


def leaves(value: Any) -> list[Any]:
    """Return the single values of which a value is made."""
    match defined(value):
        case Struct(fields) | Header(fields=fields):
            return [leaf for inner in fields.values() for leaf in leaves(inner)]
        case single:
            return [single]
