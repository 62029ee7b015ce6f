"""A v1model switch around the evaluator: parser, tables, externs, and where packets go.

After ingress a packet is cloned, sent round again, multicast, dropped or sent on, in this order;
egress begins with an `egress_spec` of 0, so that only a drop of its own drops there. Both are
documented behaviour of the target (behavioral-model, docs/simple_switch.md).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tests.language import tree as n
from tests.language.evaluating import (
    Evaluator,
    ExitSignal,
    ReturnSignal,
    Scope,
    binary,
    converted,
)
from tests.language.hashing import hashed
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
    copied,
    defined,
    equal,
    fresh,
    from_bits,
    pattern,
    to_bits,
    to_bytes,
    width_of,
    zero,
)

# Ports, each with what egress_rid is there, by the number of a group or session.
Ports = dict[int, tuple[tuple[int, int], ...]]

DROP = 511
NORMAL, INGRESS_CLONE, EGRESS_CLONE, RECIRCULATED, REPLICATED, RESUBMITTED = 0, 1, 2, 4, 5, 6
MOST_ROUNDS = 8
# What v1model does not say of clones.
UNKNOWN = {"ingress_port": UNDEFINED, "parser_error": UNDEFINED, "checksum_error": UNDEFINED}
METADATA = 2


@dataclass(frozen=True, slots=True)
class Entry:
    """`keys` are (value, 0) or (value, prefix length), (value, mask), (low, high) by match kind."""

    keys: tuple[tuple[int, int], ...]
    priority: int
    action: str
    args: tuple[int, ...]


@dataclass(slots=True)
class Cells:
    """A register, counter or meter."""

    kind: str
    element: n.Type | None
    cells: list[Any]


@dataclass(slots=True)
class Applied:
    hit: bool
    action: str


@dataclass(slots=True)
class Wishes:
    """What a pipeline asks for beside its packet."""

    clone: tuple[int, int] | None = None
    again: int | None = None
    digest: tuple[int, ...] | None = None
    truncate: int = 0


@dataclass(slots=True)
class Packet:
    data: bytes
    at: int = 0

    def left(self) -> int:
        """Return how many bits have not been parsed."""
        return 8 * len(self.data) - self.at

    def bits(self, count: int, move: bool) -> int:
        if count > self.left():
            raise ParserError("PacketTooShort")
        whole = int.from_bytes(self.data, "big")
        found = whole >> (8 * len(self.data) - self.at - count) & ((1 << count) - 1)
        if move:
            self.at += count
        return found


@dataclass(slots=True)
class Results:
    sent: list[tuple[int, bytes]] = field(default_factory=list)
    digests: list[tuple[int, ...]] = field(default_factory=list)
    logs: list[str] = field(default_factory=list)


class Judge(Evaluator):
    """A switch that runs a program; `groups` and `sessions` are the ports of copies."""

    def __init__(
        self,
        program: n.Program,
        entries: dict[str, list[Entry]],
        key_widths: dict[str, list[int]],
        groups: Ports | None = None,
        sessions: Ports | None = None,
    ) -> None:
        super().__init__(program)
        self.entries = entries
        self.key_widths = key_widths
        self.groups = groups or {}
        self.sessions = sessions or {}
        self.objects: dict[str, Cells] = {}
        self.path: list[str] = []
        self.packet = Packet(b"")
        self.emitted: list[Any] = []
        self.wishes = Wishes()
        self.results = Results()
        self.looked_up: dict[str, list[tuple[int, ...]]] = defaultdict(list)
        self.lists = self.field_lists()
        self.in_egress = False
        for instance in program.instances:
            self.root.values[instance.name] = self.instance(instance, self.root)

    # Packets

    def receive(self, port: int, data: bytes) -> Results:
        """Put a packet through the switch, with all its copies."""
        self.results = Results()
        self.steps = 0
        # An undefined packet may have ended anywhere.
        self.in_egress = False
        self.path = []
        self.ingress(port, data, NORMAL, {}, MOST_ROUNDS)
        return self.results

    def ingress(self, port: int, data: bytes, kind: int, kept: dict[str, Any], rounds: int) -> None:
        if rounds == 0:
            raise UndefinedError
        parser, verify, control, *_ = (self.program.blocks[name] for name in self.program.main)
        state, payload = self.parsed(parser, port, data, kind, kept)
        self.wishes = Wishes()
        self.block(verify, state[:2])
        self.block(control, state)
        wishes = self.wishes
        standard = state[2].fields
        # Nobody says what a copy keeps of a packet that is cut short.
        if wishes.truncate and (wishes.clone is not None or wishes.again is not None):
            raise UndefinedError

        if wishes.clone is not None:
            session, number = wishes.clone
            saved = self.saved(state[1], number)
            for copy_port, rid in self.sessions.get(session, ()):
                again, rest = self.parsed(parser, port, data, INGRESS_CLONE, saved)
                # What the parser has computed is gone, as with any clone.
                again[1] = zero(self.metadata_type())
                again[1].fields.update(copied(Struct(saved)).fields)
                again[2].fields.update(UNKNOWN)
                self.egress(again, rest, copy_port, rid, came=port, rounds=rounds)

        if wishes.digest is not None:
            self.results.digests.append(wishes.digest)

        if wishes.again is not None:
            saved = self.saved(state[1], wishes.again)
            self.ingress(port, data, RESUBMITTED, saved, rounds - 1)
            return

        group = defined(standard["mcast_grp"]).value
        if group:
            for copy_port, rid in self.groups.get(group, ()):
                again = [copied(part) for part in state]
                again[2].fields["instance_type"] = Num(REPLICATED, 32)
                self.egress(again, payload, copy_port, rid, port, rounds, wishes.truncate)
            return

        spec = defined(standard["egress_spec"]).value
        if spec != DROP:
            # The target marks what goes to one port as normal, also after another round.
            standard["instance_type"] = Num(NORMAL, 32)
            self.egress(state, payload, spec, 0, port, rounds, wishes.truncate)

    def parsed(
        self, parser: n.Parser | n.Control, port: int, data: bytes, kind: int, kept: dict[str, Any]
    ) -> tuple[list[Any], bytes]:
        """Return headers, metadata and standard metadata behind the parser, and the payload."""
        assert isinstance(parser, n.Parser)
        _, headers, metadata, standard = parser.params
        state = [fresh(headers.type), zero(metadata.type), zero(standard.type)]
        state[1].fields.update(copied(Struct(kept)).fields)
        state[2].fields.update(
            ingress_port=Num(port, 9),
            packet_length=Num(len(data), 32),
            instance_type=Num(kind, 32),
        )
        self.packet = Packet(data)
        try:
            self.parse(parser, state)
        except ParserError as error:
            state[2].fields["parser_error"] = Label("error", error.args[0])
        return state, data[(self.packet.at + 7) // 8 :]

    def saved(self, metadata: Struct, number: int) -> dict[str, Any]:
        return {name: copied(metadata.fields[name]) for name in self.lists.get(number, ())}

    def field_lists(self) -> dict[int, list[str]]:
        parser = self.program.blocks[self.program.main[0]]
        metadata = parser.params[METADATA].type
        found: dict[int, list[str]] = defaultdict(list)
        assert isinstance(metadata, n.Struct)
        for name, numbers in metadata.lists:
            for number in numbers:
                found[number].append(name)
        return found

    def egress(
        self,
        state: list[Any],
        payload: bytes,
        port: int,
        rid: int,
        came: int,
        rounds: int,
        truncate: int = 0,
    ) -> None:
        _, _, _, control, compute, deparser = (
            self.program.blocks[name] for name in self.program.main
        )
        standard = state[2].fields
        standard.update(egress_port=Num(port, 9), egress_rid=Num(rid, 16), egress_spec=Num(0, 9))
        self.wishes = Wishes(truncate=truncate)
        self.in_egress = True
        self.block(control, state)
        self.in_egress = False
        wishes = self.wishes
        metadata = copied(state[1])

        if wishes.truncate and wishes.clone is not None:
            raise UndefinedError
        if wishes.clone is not None:
            session, number = wishes.clone
            saved = self.saved(metadata, number)
            for copy_port, copy_rid in self.sessions.get(session, ()):
                again = [copied(part) for part in state]
                again[1] = zero(self.metadata_type())
                again[1].fields.update(copied(Struct(saved)).fields)
                again[2].fields.update(instance_type=Num(EGRESS_CLONE, 32), **UNKNOWN)
                if rounds == 0:
                    raise UndefinedError
                self.egress(again, payload, copy_port, copy_rid, came, rounds - 1)

        if defined(standard["egress_spec"]).value == DROP:
            return
        self.block(compute, state[:2])
        self.emitted = []
        assert isinstance(deparser, n.Control)
        inner = Scope(self.root)
        inner.declare(deparser.params[0].name, deparser.params[0].type, "packet")
        inner.declare(deparser.params[1].name, deparser.params[1].type, state[0])
        self.run(deparser.body, inner)
        frame = to_bytes(self.emitted) + payload
        if wishes.truncate:
            frame = frame[: wishes.truncate]
        if wishes.again is not None:
            saved = self.saved(metadata, wishes.again)
            self.ingress(came, frame, RECIRCULATED, saved, rounds - 1)
            return
        self.results.sent.append((port, frame))

    def metadata_type(self) -> n.Type:
        return self.program.blocks[self.program.main[0]].params[METADATA].type

    # Blocks

    def block(self, control: n.Control | n.Parser, state: Sequence[Any]) -> None:
        """Run a block of the package on the packet's own headers and metadata."""
        assert isinstance(control, n.Control)
        inner = Scope(self.root)
        for param, value in zip(control.params, state, strict=True):
            inner.declare(param.name, param.type, value)
        with suppress(ExitSignal):
            self.control(control, inner, control.name)

    def control(self, control: n.Control, scope: Scope, path: str) -> None:
        self.path.append(path)
        try:
            self.declare_locals(control.locals, scope)
            self.run(control.body, scope)
        except ReturnSignal:
            pass
        finally:
            self.path.pop()

    def declare_locals(self, items: tuple[n.Local, ...], scope: Scope) -> None:
        for item in items:
            match item:
                case n.Declare():
                    self.run(item, scope)
                case n.Instance():
                    scope.values[item.name] = self.instance(item, scope)
                case _:
                    scope.values[item.name] = item

    def instance(self, item: n.Instance, scope: Scope) -> Any:
        if not isinstance(item.type, n.Extern):
            return item
        path = ".".join((*self.path, item.name))
        if path not in self.objects:
            element = item.type.args[0] if item.type.args else None
            size = self.value(item.args[0], scope).value
            empty = 0 if element is None else zero(element)
            self.objects[path] = Cells(item.type.name, element, [empty] * size)
        return self.objects[path]

    def apply(self, found: Any, args: tuple[n.Expression, ...], scope: Scope) -> Any:
        if isinstance(found, n.Table):
            return self.look_up(found, scope)
        block = self.program.blocks[str(found.type)]
        with self.bound(block.params, args, scope, self.root) as inner:
            if isinstance(block, n.Control):
                self.control(block, inner, found.name)
                return None
            try:
                self.walk(block, inner)
            except ParserError as error:
                # What its arguments hold behind an error in it, nobody says.
                raise UndefinedError from error
        return None

    def applied(self, call: n.Call, what: str, scope: Scope) -> Any:
        outcome = self.call(call, scope)
        return {"hit": outcome.hit, "miss": not outcome.hit, "action_run": outcome.action}[what]

    # Parsers

    def parse(self, parser: n.Parser, state: Sequence[Any]) -> None:
        inner = Scope(self.root)
        for param, value in zip(parser.params, ("packet", *state), strict=True):
            inner.declare(param.name, param.type, value)
        self.walk(parser, inner)

    def walk(self, parser: n.Parser, scope: Scope) -> None:
        self.declare_locals(parser.locals, scope)
        states = {state.name: state for state in parser.states}
        current = "start"
        while current in states:
            inner = Scope(scope)
            state = states[current]
            for statement in state.body:
                self.run(statement, inner)
            current = self.transition(state, inner)
        if current == "reject":
            raise ParserError("NoError")

    def transition(self, state: n.State, scope: Scope) -> str:
        values = [copied(self.value(key, scope)) for key in state.keys]
        for written, target in state.cases:
            if len(written) < len(values) or all(
                self.matches(key, value, scope) for key, value in zip(written, values, strict=True)
            ):
                return target
        raise ParserError("NoMatch")

    def matches(self, written: n.Expression, value: Any, scope: Scope) -> bool:
        """Say whether a value is in the set that a case or an entry names."""
        match written:
            case n.Anything():
                return True
            case n.Masked(inner, mask):
                bits = binary("&", self.value(inner, scope), self.value(mask, scope))
                return equal(binary("&", value, self.value(mask, scope)), bits)
            case n.Between(low, high):
                return bool(
                    binary(">=", value, self.value(low, scope))
                    and binary("<=", value, self.value(high, scope))
                )
        wanted = self.value(written, scope)
        if isinstance(wanted, Num) and isinstance(value, Num):
            return bool(binary("==", converted(wanted, typed(value)), value))
        return equal(wanted, value)

    def method(self, base: Any, name: str, node: n.Call, scope: Scope) -> Any:
        if base == "packet":
            return getattr(self, name)(node, scope)
        return getattr(self, f"{base.kind}_{name}")(base, node, scope)

    def extract(self, node: n.Call, scope: Scope) -> None:
        target = node.args[0]
        if isinstance(target, n.Member) and target.name == "next":
            stack = self.read(target.base, scope)
            if stack.next >= len(stack.elements):
                raise ParserError("StackOutOfBounds")
            self.fill(stack.elements[stack.next], node, scope)
            stack.next += 1
        elif isinstance(target, n.Member) and self.is_next(target.base):
            # A member of the next union of a stack.
            assert isinstance(target.base, n.Member)
            stack = self.read(target.base.base, scope)
            if stack.next >= len(stack.elements):
                raise ParserError("StackOutOfBounds")
            self.fill(stack.elements[stack.next].members[target.name], node, scope)
            stack.next += 1
        else:
            self.fill(self.read(target, scope), node, scope)

    def is_next(self, node: n.Expression) -> bool:
        return isinstance(node, n.Member) and node.name == "next"

    def fill(self, header: Header, node: n.Call, scope: Scope) -> None:
        """Extract a header; a varbit takes as many bits as the call says."""
        length = self.value(node.args[1], scope).value if len(node.args) > 1 else 0
        most = sum(t.width for _, t in header.type.fields if isinstance(t, n.Varbit))
        if length > most:
            # The specification looks at the packet first, the target at the header.
            if self.packet.left() < width_of(header.type) + length:
                raise UndefinedError
            raise ParserError("HeaderTooShort")
        if length % 8:
            raise UndefinedError
        total = width_of(header.type) + length
        bits = self.packet.bits(total, move=True)
        header.make_valid()
        for name, type_ in header.type.fields:
            width = length if isinstance(type_, n.Varbit) else width_of(type_)
            total -= width
            part = bits >> total & ((1 << width) - 1)
            is_varbit = isinstance(type_, n.Varbit)
            header.fields[name] = Varbits(part, width) if is_varbit else from_bits(type_, part)

    def lookahead(self, node: n.Call, scope: Scope) -> Any:
        (type_,) = node.types
        return from_bits(type_, self.packet.bits(width_of(type_), move=False))

    def advance(self, node: n.Call, scope: Scope) -> None:
        self.packet.bits(self.value(node.args[0], scope).value, move=True)

    def emit(self, node: n.Call, scope: Scope) -> None:
        self.emit_value(self.read(node.args[0], scope))

    def emit_value(self, value: Any) -> None:
        match value:
            case Header(valid=True):
                self.emitted.append(value)
            case Struct(fields) | Union(fields):
                for inner in fields.values():
                    self.emit_value(inner)
            case Stack(elements):
                for inner in elements:
                    self.emit_value(inner)

    # Tables

    def look_up(self, table: n.Table, scope: Scope) -> Applied:
        values = [copied(self.value(key, scope)) for key, _ in table.keys]
        bits = tuple(key_bits(value) for value in values)
        self.looked_up[table.name].append(bits)
        found = self.best(table, bits)
        if found is not None:
            self.act(found.action, (), found.args, scope)
            return Applied(True, found.action)

        for entry in table.entries:
            if all(
                self.matches(written, value, scope)
                for written, value in zip(entry.keys, values, strict=True)
            ):
                self.act(entry.action.name, entry.action.args, (), scope)
                return Applied(True, entry.action.name)

        self.act(table.default.name, table.default.args, (), scope)
        return Applied(False, table.default.name)

    def best(self, table: n.Table, bits: tuple[int, ...]) -> Entry | None:
        """Return the entry of the control plane that matches: the longest prefix, or priority."""
        kinds = [kind for _, kind in table.keys]
        matching = [
            entry
            for entry in self.entries.get(table.name, ())
            if all(map(is_match, kinds, bits, entry.keys, self.key_widths[table.name]))
        ]
        has_priority = any(kind in ("ternary", "range", "optional") for kind in kinds)
        if not has_priority and "lpm" in kinds:
            at = kinds.index("lpm")
            return max(matching, key=lambda entry: entry.keys[at][1], default=None)
        return max(matching, key=lambda entry: entry.priority, default=None)

    def act(
        self, name: str, args: tuple[n.Expression, ...], data: tuple[int, ...], scope: Scope
    ) -> None:
        if name == "NoAction":
            return
        action = scope.find(name)
        assert isinstance(action, n.Function)
        given = [
            from_bits(param.type, value)
            for param, value in zip(action.params[len(args) :], data, strict=True)
        ]
        self.invoke(action, args, scope, tuple(given))

    # Externs

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
        place = self.place(node.args[0], scope)
        base = self.value(node.args[2], scope)
        data = copied(self.value(node.args[3], scope))
        most = self.value(node.args[4], scope)
        found = hashed(self.algorithm(node.args[1]), to_bytes([data]))
        offset = found % most.value if most.value else 0
        assert isinstance(place.type, n.Bits)
        total = Num(base.value + offset)
        place.set(converted(total, place.type))

    def algorithm(self, node: n.Expression) -> str:
        assert isinstance(node, n.OfType)
        return node.name

    def do_digest(self, node: n.Call, scope: Scope) -> None:
        _, data = self.numbers(node, scope)
        # The target learns behind ingress only.
        if self.in_egress:
            return
        # Of several calls the last one counts.
        self.wishes.digest = tuple(to_bits(value)[0] for value in leaves(data))

    def do_log_msg(self, node: n.Call, scope: Scope) -> None:
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
        wanted = self.value(node.args[0], scope)
        if not wanted:
            return False, Num(0)
        data = self.value(node.args[1], scope)
        found = hashed(self.algorithm(node.args[3]), to_bytes([data]))
        return True, Num(found)

    def do_update_checksum(self, node: n.Call, scope: Scope) -> None:
        wanted, found = self.checksum(node, scope)
        if wanted:
            place = self.place(node.args[2], scope)
            place.set(converted(found, place.type))

    def register_read(self, base: Cells, node: n.Call, scope: Scope) -> None:
        place = self.place(node.args[0], scope)
        at = self.value(node.args[1], scope).value
        if at >= len(base.cells):
            raise UndefinedError
        place.set(base.cells[at])

    def register_write(self, base: Cells, node: n.Call, scope: Scope) -> None:
        at, value = (copied(part) for part in self.numbers(node, scope))
        assert base.element is not None
        if at.value < len(base.cells):
            base.cells[at.value] = converted(value, base.element)

    def counter_count(self, base: Cells, node: n.Call, scope: Scope) -> None:
        at = self.value(node.args[0], scope).value
        if at < len(base.cells):
            base.cells[at] += 1


def typed(value: Num) -> n.Bits:
    assert value.width is not None
    return n.Bits(value.width, value.signed)


def key_bits(value: Any) -> int:
    """Return a key as tables see it: errors and enums by their number are not judged."""
    match value:
        case bool():
            return int(value)
        case Num():
            return pattern(value)
    raise ValueError(f"{value} is no key")


def is_match(kind: str, value: int, key: tuple[int, int], width: int) -> bool:
    first, second = key
    match kind:
        case "exact":
            return value == first
        case "lpm":
            return value >> (width - second) == first >> (width - second)
        case "range":
            return first <= value <= second
    return value & second == first & second


def leaves(value: Any) -> list[Any]:
    """Return the single values of which a value is made."""
    match defined(value):
        case Struct(fields) | Header(fields=fields):
            return [leaf for inner in fields.values() for leaf in leaves(inner)]
        case single:
            return [single]
