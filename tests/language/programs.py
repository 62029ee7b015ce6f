"""Random v1model programs with the packets and table entries that exercise them.

A program is drawn from one number. Its parser reaches every header for some packets, its controls
use every kind of statement, and all that they compute ends in headers, so that it can be seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from tests.language import tree as n
from tests.language.drawing import (
    BOOL,
    ERROR,
    WIDTHS,
    Callable_,
    Drawing,
    Names,
    Type,
    Variable,
    show,
)
from tests.language.switching import Entry
from tests.language.values import width_of

PLAIN_ENUM = n.Enum("color_t", ("RED", "GREEN", "BLUE"))
ERRORS = ("NoError", "PacketTooShort", "NoMatch", "StackOutOfBounds", "HeaderTooShort", "Own")
PORTS = (1, 2, 3)


@dataclass(frozen=True, slots=True)
class KeySpec:
    kind: str
    width: int


@dataclass(slots=True)
class TableSpec:
    """What the control plane has to know of a table; `actions` are names and widths."""

    name: str
    keys: list[KeySpec]
    actions: list[tuple[str, list[int]]]
    is_const: bool = False


@dataclass(slots=True)
class Drawn:
    """A program, and what is needed to draw packets and entries for it."""

    source: str
    tables: list[TableSpec]
    first_bytes: tuple[int, ...]
    # Of the header that every packet has.
    main_bytes: int = 0
    registers: list[str] = field(default_factory=list)
    counters: list[str] = field(default_factory=list)


def drawn(seed: int, widths: Sequence[int] = WIDTHS) -> Drawn:
    """Return the program of a number, with fields of these widths."""
    return Maker(Random(seed), widths).program()


class Maker:
    def __init__(self, draw: Random, widths: Sequence[int] = WIDTHS) -> None:
        self.draw = draw
        serial_members = draw.sample(range(16), 3)
        self.serial = n.Enum("kind_t", ("ONE", "TWO", "SIX"), n.Bits(4), tuple(serial_members))
        self.enums = (PLAIN_ENUM, self.serial)
        self.expressions = Drawing(draw, self.enums, widths)
        self.tables: list[TableSpec] = []
        self.registers: list[tuple[str, n.Bits, int]] = []
        self.counters: list[tuple[str, int]] = []
        self.functions: list[Callable_] = []
        self.numbers = 0
        self.first_bytes: list[int] = []
        self.inner_params: list[Type] = []
        self.inner_control = False

    def chance(self, share: float) -> bool:
        return self.draw.random() < share

    def name(self, prefix: str) -> str:
        self.numbers += 1
        return f"{prefix}{self.numbers}"

    # Types

    def fields(self, count: int, prefix: str, start: int = 0) -> list[tuple[str, n.Type]]:
        """Return fields of a header that fill whole bytes."""
        made: list[tuple[str, n.Type]] = []
        total = start
        for at in range(count):
            roll = self.draw.random()
            type_: n.Type = self.expressions.bits()
            if roll < 0.08:
                type_ = BOOL
            elif roll < 0.16:
                type_ = self.serial
            made.append((f"{prefix}{at}", type_))
            total += width_of(type_)
        if total % 8:
            made.append((f"{prefix}_rest", n.Bits(8 - total % 8)))
        return made

    def types(self) -> None:
        count = self.draw.randrange(4, 9)
        main = [("first", n.Bits(8)), ("ways", n.Bits(2)), ("low", n.Bits(6))]
        self.main = n.Struct("header", "main_t", (*main, *self.fields(count, "m")))
        self.option = n.Struct("header", "option_t", tuple(self.fields(3, "o")))
        item = [("more", n.Bits(1)), ("tag", n.Bits(7)), *self.fields(1, "i")]
        self.item = n.Struct("header", "item_t", tuple(item))
        self.other = n.Struct("header", "other_t", tuple(self.fields(2, "u")))
        vary = (("size", n.Bits(8)), ("bytes", n.Varbit(64)))
        self.vary = n.Struct("header", "vary_t", vary)
        union = (("one", self.option), ("two", self.other))
        self.union = n.Struct("header_union", "union_t", union)
        self.items = n.Stack(self.item, self.draw.choice((2, 4)))
        headers: list[tuple[str, n.Type]] = [
            ("main", self.main),
            ("option", self.option),
            ("items", self.items),
            ("either", self.union),
            ("vary", self.vary),
        ]
        self.headers = n.Struct("struct", "headers_t", tuple(headers))
        inner: list[tuple[str, n.Type]] = [(f"n{at}", self.expressions.type()) for at in range(2)]
        self.inner = n.Struct("struct", "inner_t", tuple(inner))
        metadata: list[tuple[str, n.Type]] = [
            (f"x{at}", self.expressions.type()) for at in range(3)
        ]
        metadata += [("nest", self.inner), ("nest2", self.inner)]
        kept: list[tuple[str, n.Type]] = [("kept", self.expressions.bits())]
        self.metadata = n.Struct("struct", "metadata_t", (*metadata, *kept))

    def type_source(self) -> str:
        lines = [
            "#include <core.p4>",
            "#include <v1model.p4>",
            "error { Own }",
            f"enum {PLAIN_ENUM.name} {{ {', '.join(PLAIN_ENUM.members)} }}",
        ]
        pairs = zip(self.serial.members, self.serial.values, strict=True)
        members = ", ".join(f"{name} = {value}" for name, value in pairs)
        lines.append(f"enum bit<4> {self.serial.name} {{ {members} }}")
        shown = (
            self.main,
            self.option,
            self.item,
            self.other,
            self.vary,
            self.union,
            self.inner,
            self.headers,
            self.metadata,
        )
        for struct in shown:
            body = " ".join(
                f"{'@field_list(1) ' if name == 'kept' else ''}{show(type_)} {name};"
                for name, type_ in struct.fields
            )
            lines.append(f"{struct.kind} {struct.name} {{ {body} }}")
        return "\n".join(lines) + "\n"

    # Names

    def of(self, source: str, struct: n.Struct, guard: str = "") -> list[Variable]:
        """Return the fields of a struct or header as variables."""
        found = []
        for name, type_ in struct.fields:
            match type_:
                case n.Bits() | n.Enum() | n.Plain():
                    found.append(Variable(f"{source}.{name}", type_, guard=guard))
                case n.Struct(kind="struct"):
                    found += self.of(f"{source}.{name}", type_, guard)
        return found

    def control_names(self, is_egress: bool) -> Names:
        names = Names(functions=self.functions, errors=ERRORS, parser_error="s.parser_error")
        names.variables += self.of("h.main", self.main)
        names.variables += self.of("m", self.metadata)
        names.headers = ["h.option", "h.either.one", "h.either.two", "h.either", "h.vary"]
        names.variables += self.of("h.option", self.option, "h.option")
        names.variables += self.of("h.either.one", self.option, "h.either.one")
        names.variables += self.of("h.either.two", self.other, "h.either.two")
        for at in range(self.items.size):
            names.headers.append(f"h.items[{at}]")
            names.variables += self.of(f"h.items[{at}]", self.item, f"h.items[{at}]")
        index = "h.main.ways" if self.items.size == 4 else "h.main.low[3:3]"
        names.headers.append(f"h.items[{index}]")
        names.variables += self.of(f"h.items[{index}]", self.item, f"h.items[{index}]")
        # Clones know no ingress port.
        if not is_egress:
            names.variables.append(Variable("s.ingress_port", n.Bits(9), writable=False))
        else:
            names.variables.append(Variable("s.egress_port", n.Bits(9), writable=False))
            names.variables.append(Variable("s.egress_rid", n.Bits(16), writable=False))
        names.variables.append(Variable("s.instance_type", n.Bits(32), writable=False))
        return names

    # Functions

    def function(self) -> str:
        name = self.name("f")
        returns: Type | None = self.expressions.type() if self.chance(0.8) else None
        params: list[tuple[str, Type]] = []
        names = Names(functions=list(self.functions), errors=ERRORS)
        shown = []
        for at in range(self.draw.randrange(1, 4)):
            direction = self.draw.choice(("in", "in", "inout", "out"))
            type_ = self.type_with_variables()
            params.append((direction, type_))
            shown.append(f"{direction} {show(type_)} p{at}")
            names.variables.append(Variable(f"p{at}", type_, direction != "in"))
        body = [
            f"p{at} = {self.constant(type_)};"
            for at, (direction, type_) in enumerate(params)
            if direction == "out"
        ]
        body += self.statements(names, 3, Where(returns=returns, in_function=True))
        if returns is not None:
            body.append(f"return {self.expressions.expression(returns, names, 2).source};")
        self.functions.append(Callable_(name, tuple(params), returns))
        head = show(returns) if returns is not None else "void"
        return f"{head} {name}({', '.join(shown)}) {{ {' '.join(body)} }}\n"

    def type_with_variables(self) -> Type:
        """Return a type, mostly one that some variable has."""
        known = [
            type_
            for struct in (self.main, self.metadata, self.option)
            for _, type_ in struct.fields
            if isinstance(type_, n.Bits | n.Plain | n.Enum)
        ]
        return self.draw.choice(known) if self.chance(0.8) else self.expressions.type()

    def constant(self, type_: Type) -> str:
        return self.expressions.expression(type_, Names(errors=ERRORS), 0).source

    # Statements

    def statements(self, names: Names, count: int, where: Where) -> list[str]:
        return [self.statement(names, where) for _ in range(self.draw.randrange(1, count + 1))]

    def block(self, names: Names, where: Where, valid: str = "") -> str:
        inner = names.inner()
        if valid:
            inner.valid.add(valid)
        deeper = where.deeper()
        return f"{{ {' '.join(self.statements(inner, 2, deeper))} }}"

    def statement(self, names: Names, where: Where) -> str:
        choices = [self.assignment] * 6 + [self.declaration] * 2 + [self.call_statement]
        if where.depth < 3:
            choices += [self.conditional] * 2 + [self.switch, self.loop]
        if where.in_control and not where.in_function:
            choices += [self.header_statement] * 2
            if not where.in_parser:
                choices += [self.extern_statement] * 2
        if where.depth > 0 and where.can_jump:
            choices += [self.jump]
        return self.draw.choice(choices)(names, where)

    def assignment(self, names: Names, where: Where) -> str:
        roll = self.draw.random()
        if where.in_control and not where.in_function and roll < 0.12:
            return self.struct_assignment(names)
        writable = [item for item in names.variables if item.writable]
        if not writable:
            return self.declaration(names, where)
        item = self.draw.choice(writable)
        if not isinstance(item.type, n.Bits):
            value = self.expressions.expression(item.type, names, 3)
            return f"{item.source} = {value.source};"
        place = self.expressions.place(item.type, names) or item.source
        readable = not item.guard or item.guard in names.valid
        if roll > 0.85 and readable and place == item.source:
            op = self.draw.choice(("+", "-", "*", "&", "|", "^", "|+|", "|-|"))
            value = self.expressions.expression(item.type, names, 2)
            return f"{place} {op}= {value.source};"
        value = self.expressions.expression(item.type, names, self.draw.randrange(1, 5))
        return f"{place} = {value.source};"

    def struct_assignment(self, names: Names) -> str:
        """Assign something as a whole: structs and headers, or lists to them."""
        roll = self.draw.random()
        if roll < 0.2:
            return self.draw.choice(("m.nest = m.nest2;", "m.nest2 = m.nest;"))
        if roll < 0.35:
            return self.draw.choice(("h.option = h.either.one;", "h.either.one = h.option;"))
        if roll < 0.5:
            one, other = self.draw.sample(range(self.items.size), 2)
            return f"h.items[{one}] = h.items[{other}];"
        target, struct = self.draw.choice(
            (("m.nest", self.inner), ("h.option", self.option), ("h.either.two", self.other))
        )
        values = []
        for name, type_ in struct.fields:
            assert isinstance(type_, n.Bits | n.Plain | n.Enum)
            value = self.expressions.expression(type_, names, 2).source
            values.append((name, value))
        if self.chance(0.3):
            self.draw.shuffle(values)
            return f"{target} = {{ {', '.join(f'{name} = {value}' for name, value in values)} }};"
        return f"{target} = {{ {', '.join(value for _, value in values)} }};"

    def declaration(self, names: Names, where: Where) -> str:
        type_ = self.expressions.type()
        name = self.name("v")
        value = self.expressions.expression(type_, names, 3).source
        names.variables.append(Variable(name, type_))
        return f"{show(type_)} {name} = {value};"

    def call_statement(self, names: Names, where: Where) -> str:
        if names.functions:
            function = self.draw.choice(names.functions)
            made = self.expressions.call(function, names, 2)
            if made is not None:
                return f"{made.source};"
        return self.assignment(names, where)

    def conditional(self, names: Names, where: Where) -> str:
        if names.headers and self.chance(0.3):
            header = self.draw.choice(names.headers)
            then = self.block(names, where, valid=header)
            return f"if ({header}.isValid()) {then}"
        condition = self.expressions.truth(names, 3).source
        then = self.block(names, where)
        otherwise = f" else {self.block(names, where)}" if self.chance(0.6) else ""
        return f"if ({condition}) {then}{otherwise}"

    def switch(self, names: Names, where: Where) -> str:
        width = self.draw.choice((1, 2, 3, 4, 8))
        if self.chance(0.2):
            subject = self.expressions.expression(PLAIN_ENUM, names, 1).source
            labels = [f"{PLAIN_ENUM.name}.{member}" for member in PLAIN_ENUM.members[:2]]
        else:
            subject = self.expressions.numeric(n.Bits(width), names, 2).source
            most = min(1 << width, 6)
            labels = [f"{width}w{v}" for v in self.draw.sample(range(most), min(most, 3))]
        cases = []
        for at, written in enumerate(labels):
            falls = at + 1 < len(labels) and self.chance(0.2)
            cases.append(f"{written}:" + ("" if falls else f" {self.block(names, where)}"))
        if self.chance(0.6):
            cases.append(f"default: {self.block(names, where)}")
        return f"switch ({subject}) {{ {' '.join(cases)} }}"

    def loop(self, names: Names, where: Where) -> str:
        name = self.name("i")
        inner = names.inner()
        width = self.draw.choice((4, 8, 16))
        inner.variables.append(Variable(name, n.Bits(width), writable=False))
        deeper = where.deeper(in_loop=True)
        body = " ".join(self.statements(inner, 2, deeper))
        turns = self.draw.randrange(1, 4)
        if self.chance(0.5):
            return f"for (bit<{width}> {name} in {width}w1 .. {turns}) {{ {body} }}"
        head = f"bit<{width}> {name} = 0; {name} < {turns}; {name} = {name} + 1"
        return f"for ({head}) {{ {body} }}"

    def jump(self, names: Names, where: Where) -> str:
        choices = []
        if where.in_loop:
            choices += ["break;", "continue;"]
        if where.in_function:
            if where.returns is not None:
                value = self.expressions.expression(where.returns, names, 2).source
                choices.append(f"return {value};")
            else:
                choices.append("return;")
        elif where.in_control and not where.in_parser:
            choices += ["exit;", "return;"]
        return self.draw.choice(choices) if choices else self.assignment(names, where)

    def header_statement(self, names: Names, where: Where) -> str:
        roll = self.draw.random()
        if roll < 0.3:
            header, struct = self.draw.choice(
                (("h.option", self.option), ("h.either.two", self.other), ("h.items[0]", self.item))
            )
            return self.made_valid(header, struct, names)
        if roll < 0.5:
            headers = [name for name in names.headers if name not in ("h.either", "h.vary")]
            chosen = [name for name in headers if name not in names.valid]
            if chosen:
                return f"{self.draw.choice(chosen)}.setInvalid();"
        # Elements that are known to be valid would not be so any more.
        if roll < 0.65 and not any(name.startswith("h.items") for name in names.valid):
            way = self.draw.choice(("push_front", "pop_front"))
            return f"h.items.{way}({self.draw.randrange(1, self.items.size + 1)});"
        return self.assignment(names, where)

    def made_valid(self, header: str, struct: n.Struct, names: Names) -> str:
        """Make a header valid and give all of its fields a value."""
        parts = [f"{header}.setValid();"]
        # Its own fields have no values yet, whatever name reaches them.
        family = header.split("[", 1)[0]
        known = names.inner()
        known.variables = [v for v in known.variables if not v.guard.startswith(family)]
        for item in self.of(header, struct):
            value = self.expressions.expression(item.type, known, 1).source
            parts.append(f"{item.source} = {value};")
        return " ".join(parts)

    def extern_statement(self, names: Names, where: Where) -> str:
        roll = self.draw.random()
        bits = self.expressions
        if roll < 0.35 and self.registers:
            name, type_, size = self.draw.choice(self.registers)
            index = bits.numeric(n.Bits(size.bit_length() - 1), names, 2)
            at = bits.cast(n.Bits(32), index).source
            if self.chance(0.5):
                place = bits.place(type_, names)
                if place is not None:
                    return f"{name}.read({place}, {at});"
            return f"{name}.write({at}, {bits.numeric(type_, names, 2).source});"
        if roll < 0.45 and self.counters:
            name, _ = self.draw.choice(self.counters)
            return f"{name}.count({bits.cast(n.Bits(32), bits.any_bits(names, 1)[1]).source});"
        if roll < 0.7:
            return self.hash(names)
        if roll < 0.82:
            data = ", ".join(self.listed(names, whole=False))
            holes = " ".join("{}" for _ in data.split(", ")) if "," not in data else None
            if holes is None or "{" in data:
                value = bits.numeric(bits.bits(), names, 2).source
                return f'log_msg("x {{}}", {{ {value} }});'
            return f'log_msg("x {holes}", {{ {data} }});'
        if roll < 0.92:
            return f"digest(1, {{ {', '.join(self.listed(names))} }});"
        return self.draw.choice(
            ("mark_to_drop(s);", "truncate(32w20);", f"s.mcast_grp = {self.draw.randrange(3)};")
            if where.is_ingress
            else ("truncate(32w20);",)
        )

    def listed(self, names: Names, whole: bool = True) -> list[str]:
        """Return expressions for a list that is hashed or told: each with a width of its own."""
        count = self.draw.randrange(1, 4)
        return [
            self.expressions.numeric(self.expressions.bits(), names, 2).source for _ in range(count)
        ]

    def hash(self, names: Names) -> str:
        algorithm = self.draw.choice(("crc32", "crc16", "csum16", "xor16"))
        type_ = n.Bits(self.draw.choice((8, 16, 32, 48)))
        place = self.expressions.place(type_, names)
        if place is None:
            item = self.draw.choice(
                [
                    v
                    for v in names.variables
                    if v.writable and isinstance(v.type, n.Bits) and not v.guard
                ]
            )
            assert isinstance(item.type, n.Bits)
            type_, place = item.type, item.source
        base = f"{type_.width}{'s' if type_.signed else 'w'}{self.draw.choice((0, 1))}"
        if type_ == n.Bits(1, True):
            base = "1s0"
        most = self.draw.choice(("32w1", "32w16", "32w100", "64w0x100000000", "16w0xffff"))
        data = ", ".join(self.listed(names))
        call = f"HashAlgorithm.{algorithm}, {base}, {{ {data} }}, {most}"
        return f"hash({place}, {call});"

    # Actions and tables

    def action(self, names: Names, is_ingress: bool) -> tuple[str, str, list[int]]:
        """Return an action for tables: its source, its name and the widths of its arguments."""
        name = self.name("act")
        inner = names.inner()
        widths = []
        shown = []
        for at in range(self.draw.randrange(3)):
            type_ = self.expressions.bits()
            shown.append(f"{show(type_)} d{at}")
            widths.append(type_.width)
            inner.variables.append(Variable(f"d{at}", type_, writable=False))
        where = Where(in_control=True, in_action=True, is_ingress=is_ingress, can_jump=True)
        body = " ".join(self.statements(inner, 3, where))
        return f"action {name}({', '.join(shown)}) {{ {body} }}\n", name, widths

    def called_action(self, names: Names, is_ingress: bool) -> str:
        """Return an action that is called with arguments of every direction."""
        name = self.name("go")
        inner = names.inner()
        params: list[tuple[str, Type]] = []
        shown = []
        body = []
        for at in range(self.draw.randrange(1, 3)):
            direction = self.draw.choice(("in", "inout", "out"))
            type_ = self.type_with_variables()
            params.append((direction, type_))
            shown.append(f"{direction} {show(type_)} q{at}")
            inner.variables.append(Variable(f"q{at}", type_, direction != "in"))
            if direction == "out":
                body.append(f"q{at} = {self.constant(type_)};")
        where = Where(in_control=True, in_action=True, is_ingress=is_ingress)
        body += self.statements(inner, 3, where)
        names.functions = [*names.functions, Callable_(name, tuple(params), None)]
        return f"action {name}({', '.join(shown)}) {{ {' '.join(body)} }}\n"

    def table(self, names: Names, is_ingress: bool, path: str) -> tuple[str, str]:
        """Return the source of a table with its actions, and a statement that applies it."""
        name = self.name("t")
        text = ""
        actions: list[tuple[str, list[int]]] = []
        for _ in range(self.draw.randrange(1, 4)):
            source, action, widths = self.action(names, is_ingress)
            text += source
            actions.append((action, widths))
        spec = TableSpec(f"{path}.{name}", [], actions)
        keys = []
        has_others = False
        for at in range(self.draw.randrange(1, 4)):
            width = self.draw.choice((1, 2, 3, 4, 8, 8, 16, 33))
            kind = self.draw.choice(("exact", "exact", "ternary", "range", "optional", "lpm"))
            if kind == "lpm" and any(key.kind == "lpm" for key in spec.keys):
                kind = "exact"
            type_: Type = n.Bits(width)
            # Of other types only whole values are looked up.
            if kind == "exact" and self.chance(0.3):
                type_ = self.draw.choice((BOOL, self.serial, n.Bits(width, True)))
                width = width_of(type_)
                has_others = True
            value = self.expressions.expression(type_, names, 2).source
            keys.append(f'{value}: {kind} @name("k{at}");')
            spec.keys.append(KeySpec(kind, width))
        listed = " ".join(f"{action};" for action, _ in actions)
        default, widths = self.draw.choice(actions)
        given = ", ".join(self.argument(spec_width) for spec_width in self.types_of(text, default))
        entries = ""
        if not has_others and self.chance(0.3):
            entries = self.const_entries(spec, text)
        text += (
            f"table {name} {{ key = {{ {' '.join(keys)} }} actions = {{ {listed} NoAction; }} "
            f"default_action = {default}({given}); {entries} }}\n"
        )
        self.tables.append(spec)
        return text, self.application(name, spec, names, is_ingress)

    def types_of(self, text: str, action: str) -> list[str]:
        """Return the types of an action's parameters, read from its source."""
        inside = text.split(f"action {action}(", 1)[1].split(")", 1)[0]
        return [part.split()[0] for part in inside.split(", ") if part]

    def argument(self, type_: str) -> str:
        kind, width = type_.rstrip(">").split("<")
        return self.expressions.literal(n.Bits(int(width), kind == "int")).source

    def const_entries(self, spec: TableSpec, text: str) -> str:
        """Return entries of the program; the first that matches wins."""
        spec.is_const = True
        seen = set()
        lines = []
        simple = all(key.kind == "exact" for key in spec.keys)
        for _ in range(self.draw.randrange(1, 4)):
            keys = []
            for key in spec.keys:
                value = self.expressions.number(key.width)
                most = (1 << key.width) - 1
                match key.kind:
                    case "exact":
                        keys.append(f"{key.width}w{value}")
                    case "range":
                        high = max(value, self.expressions.number(key.width))
                        keys.append(f"{key.width}w{value} .. {key.width}w{high}")
                    case "lpm":
                        # One length, so that the longest prefix is the first, too.
                        mask = most ^ (most >> 1)
                        keys.append(f"{key.width}w{value & mask} &&& {key.width}w{mask}")
                    case "optional":
                        keys.append(self.draw.choice((f"{key.width}w{value}", "_")))
                    case _:
                        mask = self.expressions.number(key.width)
                        keys.append(f"{key.width}w{value & mask} &&& {key.width}w{mask}")
            written = ", ".join(keys)
            if written in seen or (simple and written in seen):
                continue
            seen.add(written)
            action, _ = self.draw.choice(spec.actions)
            given = ", ".join(self.argument(type_) for type_ in self.types_of(text, action))
            keyset = f"({written})" if len(keys) > 1 else written
            lines.append(f"{keyset}: {action}({given});")
        return f"const entries = {{ {' '.join(lines)} }}"

    def application(self, name: str, spec: TableSpec, names: Names, is_ingress: bool) -> str:
        where = Where(in_control=True, is_ingress=is_ingress, can_jump=True, depth=1)
        roll = self.draw.random()
        if roll < 0.3:
            return f"{name}.apply();"
        if roll < 0.6:
            what = self.draw.choice((".hit", ".miss"))
            negation = self.draw.choice(("", "!"))
            then = self.block(names, where)
            return f"if ({negation}{name}.apply(){what}) {then} else {self.block(names, where)}"
        cases = [
            f"{action}: {self.block(names, where)}"
            for action, _ in spec.actions
            if self.chance(0.6)
        ]
        cases.append(f"default: {self.block(names, where)}")
        return f"switch ({name}.apply().action_run) {{ {' '.join(cases)} }}"

    # Blocks

    def control(self, name: str, is_ingress: bool, count: int) -> str:
        names = self.control_names(not is_ingress)
        text = ""
        self.registers = []
        self.counters = []
        for _ in range(self.draw.randrange(2)):
            register = self.name("r")
            element = self.expressions.bits()
            size = self.draw.choice((2, 4, 16))
            text += f"register<{show(element)}>({size}) {register};\n"
            self.registers.append((register, element, size))
        if self.chance(0.3):
            counter = self.name("c")
            text += f"counter(64, CounterType.packets) {counter};\n"
            self.counters.append((counter, 64))
        for _ in range(self.draw.randrange(3)):
            item = self.declaration(names, Where())
            text += f"{item}\n"
        if self.chance(0.4):
            text += self.called_action(names, is_ingress)
        instance = ""
        if is_ingress and self.inner_control:
            text += "inner_block() nested;\n"
            places = [
                self.expressions.place(type_, names, whole=True) for type_ in self.inner_params
            ]
            if all(places):
                instance = f"nested.apply({', '.join(map(str, places))});"
        where = Where(in_control=True, is_ingress=is_ingress, can_jump=True)
        # Tables and actions see the variables of the control, not those of its body.
        applications = []
        for _ in range(self.draw.randrange(3)):
            before, application = self.table(names.inner(), is_ingress, name)
            text += before
            applications.append(application)
        body = self.statements(names.inner(), count, where)
        for application in applications:
            body.insert(self.draw.randrange(len(body) + 1), application)
        if instance:
            body.insert(self.draw.randrange(len(body) + 1), instance)
        return (
            f"control {name}(inout headers_t h, inout metadata_t m, "
            f"inout standard_metadata_t s) {{\n{text}apply {{\n"
            + "\n".join([*self.opening(is_ingress), *body])
            + "\n}\n}\n"
        )

    def opening(self, is_ingress: bool) -> list[str]:
        """Return where the packet goes, unless the rest of the program changes it."""
        if not is_ingress:
            if self.chance(0.15):
                return [
                    "if (s.instance_type == 0 && h.main.ways == 1) "
                    "{ recirculate_preserving_field_list(1); }"
                ]
            if self.chance(0.15):
                return [
                    "if (s.instance_type == 0) "
                    "{ clone_preserving_field_list(CloneType.E2E, 7, 1); }"
                ]
            return []
        lines = ["s.egress_spec = 1 + (bit<9>) h.main.low[0:0];"]
        if self.chance(0.2):
            lines.append(
                "if (h.main.ways == 2) { clone_preserving_field_list(CloneType.I2E, 5, 1); }"
            )
        if self.chance(0.2):
            lines.append(
                "if (s.instance_type == 0 && h.main.ways == 3) "
                "{ resubmit_preserving_field_list(1); }"
            )
        return lines

    def inner_block(self) -> str:
        """Return a control with parameters of its own, which ingress applies."""
        self.inner_control = self.chance(0.4)
        if not self.inner_control:
            return ""
        self.inner_params = [self.type_with_variables() for _ in range(2)]
        names = Names(functions=self.functions, errors=ERRORS)
        shown = []
        for at, type_ in enumerate(self.inner_params):
            shown.append(f"inout {show(type_)} a{at}")
            names.variables.append(Variable(f"a{at}", type_))
        # No `exit` here: with overlapping arguments the target refuses it.
        where = Where(in_control=False, can_jump=False)
        body = "\n".join(self.statements(names, 4, where))
        return f"control inner_block({', '.join(shown)}) {{ apply {{\n{body}\n}} }}\n"

    def parser(self) -> str:
        names = Names(functions=self.functions, errors=ERRORS)
        names.variables += self.of("h.main", self.main)
        names.variables += self.of("m", self.metadata)
        where = Where(in_control=True, in_parser=True)
        option = "p.extract(h.option);"
        before = instance = ""
        counted = self.expressions.place(n.Bits(8), names, whole=True)
        if counted is not None and self.chance(0.3):
            before = self.inner_parser()
            instance = "inner_parser() sub;\n"
            option = f"sub.apply(p, h.option, {counted});"
        places = {
            "option": option,
            "one": "p.extract(h.either.one);",
            "two": "p.extract(h.either.two);",
            "vary": "p.extract(h.vary, (bit<32>) (h.main.low[3:0] ++ 3w0));",
            "items": "p.extract(h.items.next);",
        }
        order = list(places)
        self.draw.shuffle(order)
        states = [self.start_state(names, order, where)]
        for at, name in enumerate(order):
            later = order[at + 1 :]
            inner = names.inner()
            body = [places[name], *self.parser_statements(inner, where)]
            if name == "items":
                go = "transition select(h.items.last.more) { 1: items; default: after_items; }"
                states.append(f"state items {{ {' '.join(body)} {go} }}")
                states.append(f"state after_items {{ {self.next_state(names.inner(), later)} }}")
            else:
                states.append(
                    f"state {name} {{ {' '.join(body)} {self.next_state(inner, later)} }}"
                )
        head = (
            "parser P(packet_in p, out headers_t h, inout metadata_t m, "
            "inout standard_metadata_t s) {\n"
        )
        return f"{before}{head}{instance}" + "\n".join(states) + "\n}\n"

    def inner_parser(self) -> str:
        """Return a parser of one header, which counts in an argument."""
        names = Names(functions=self.functions, errors=ERRORS)
        names.variables += self.of("o", self.option)
        names.variables.append(Variable("c", n.Bits(8)))
        body = " ".join(["p.extract(o);", *self.parser_statements(names, Where(in_parser=True))])
        value = self.expressions.numeric(n.Bits(8), names, 2).source
        return (
            f"parser inner_parser(packet_in p, out option_t o, inout bit<8> c) {{\n"
            f"state start {{ {body} c = {value}; transition accept; }}\n}}\n"
        )

    def parser_statements(self, names: Names, where: Where) -> list[str]:
        made = []
        if self.chance(0.5):
            made.append(self.assignment(names, Where(in_parser=True)))
        if self.chance(0.15):
            condition = self.expressions.truth(names, 2).source
            made.append(f"verify({condition}, error.{self.draw.choice(ERRORS[2:])});")
        if self.chance(0.2):
            width = self.draw.choice((1, 4, 8, 13))
            name = self.name("ahead")
            made.append(f"bit<{width}> {name} = p.lookahead<bit<{width}>>();")
            names.variables.append(Variable(name, n.Bits(width)))
        if self.chance(0.08):
            made.append("p.advance(8);")
        if self.chance(0.2):
            made.append(self.conditional(names, Where(in_parser=True, depth=2)))
        return made

    def start_state(self, names: Names, order: list[str], where: Where) -> str:
        inner = names.inner()
        values = self.draw.sample(range(256), len(order))
        self.first_bytes = values
        cases = " ".join(f"{value}: {name};" for value, name in zip(values, order, strict=True))
        body = " ".join(["p.extract(h.main);", *self.parser_statements(inner, where)])
        return (
            f"state start {{ {body} transition select(h.main.first) "
            f"{{ {cases} default: accept; }} }}"
        )

    def next_state(self, names: Names, later: list[str]) -> str:
        """Return a transition to some later state, by computed keys."""
        if not later or self.chance(0.2):
            return f"transition {later[0] if later and self.chance(0.5) else 'accept'};"
        keys = []
        widths = []
        for _ in range(self.draw.randrange(1, 3)):
            width = self.draw.choice((1, 2, 3, 4, 8, 9))
            keys.append(self.expressions.numeric(n.Bits(width), names, 2).source)
            widths.append(width)
        cases = []
        for name in self.draw.sample(later, min(len(later), 2)):
            written = [self.case_key(width) for width in widths]
            cases.append((f"({', '.join(written)})" if len(written) > 1 else written[0], name))
        lines = [f"{written}: {name};" for written, name in cases]
        if self.chance(0.7):
            lines.append(f"default: {self.draw.choice((*later, 'accept'))};")
        return f"transition select({', '.join(keys)}) {{ {' '.join(lines)} }}"

    def case_key(self, width: int) -> str:
        value = self.expressions.number(width)
        match self.draw.randrange(4):
            case 0:
                return f"{width}w{value}"
            case 1:
                return f"{width}w{value} &&& {width}w{self.expressions.number(width)}"
            case 2:
                high = max(value, self.expressions.number(width))
                return f"{width}w{value} .. {width}w{high}"
        return "_"

    def program(self) -> Drawn:
        self.types()
        parts = [self.type_source()]
        parts += [self.function() for _ in range(self.draw.randrange(3))]
        parts.append(self.inner_block())
        parts.append(self.parser())
        ingress = self.control("In", is_ingress=True, count=self.draw.choice((2, 4, 7)))
        registers = [f"In.{name}" for name, _, _ in self.registers]
        counters = [f"In.{name}" for name, _ in self.counters]
        parts.append(ingress)
        if self.chance(0.4):
            parts.append(self.control("Out", is_ingress=False, count=3))
            registers += [f"Out.{name}" for name, _, _ in self.registers]
            counters += [f"Out.{name}" for name, _ in self.counters]
        else:
            parts.append(
                "control Out(inout headers_t h, inout metadata_t m, "
                "inout standard_metadata_t s) { apply {} }\n"
            )
        parts.append("control Check(inout headers_t h, inout metadata_t m) { apply {} }\n")
        parts.append(self.compute())
        parts.append(
            "control Deparse(packet_out p, in headers_t h) { apply {\n"
            "p.emit(h.main); p.emit(h.option); p.emit(h.items); p.emit(h.either); p.emit(h.vary);\n"
            "} }\n"
        )
        parts.append("V1Switch(P(), Check(), In(), Out(), Compute(), Deparse()) main;\n")
        return Drawn(
            "".join(parts),
            tables=self.tables,
            first_bytes=tuple(self.first_bytes),
            main_bytes=width_of(self.main) // 8,
            registers=registers,
            counters=counters,
        )

    def compute(self) -> str:
        body = ""
        if self.chance(0.3):
            fields = [item for item in self.of("h.main", self.main) if item.type is not BOOL]
            targets = [
                item
                for item in fields
                if isinstance(item.type, n.Bits) and item.type.width >= 16 and not item.type.signed
            ]
            if targets:
                target = self.draw.choice(targets)
                inputs = [item for item in fields if item is not target]
                listed = []
                for item in self.draw.sample(inputs, min(3, len(inputs))):
                    text = item.source
                    if isinstance(item.type, n.Bits) and not item.type.signed and self.chance(0.5):
                        text = f"(bit<{item.type.width + self.draw.randrange(9)}>) {text}"
                    listed.append(text)
                data = ", ".join(listed)
                body = (
                    f"update_checksum(h.main.ways != 0, {{ {data} }}, {target.source}, "
                    "HashAlgorithm.csum16);"
                )
        return f"control Compute(inout headers_t h, inout metadata_t m) {{ apply {{ {body} }} }}\n"


@dataclass(frozen=True, slots=True)
class Where:
    """What may be said at a place."""

    in_control: bool = False
    in_parser: bool = False
    in_function: bool = False
    in_action: bool = False
    in_loop: bool = False
    is_ingress: bool = False
    can_jump: bool = False
    returns: Type | None = None
    depth: int = 0

    def deeper(self, in_loop: bool = False) -> Where:
        return Where(
            self.in_control,
            self.in_parser,
            self.in_function,
            self.in_action,
            self.in_loop or in_loop,
            self.is_ingress,
            self.can_jump or in_loop or self.in_function,
            self.returns,
            self.depth + 1,
        )


def packets(draw: Random, program: Drawn, count: int) -> list[tuple[int, bytes]]:
    """Return ports and packets: some too short, all with a first byte that the parser knows."""
    made = []
    for _ in range(count):
        first = draw.choice((*program.first_bytes, draw.randrange(256)))
        # Wide fields take more than the packets of most programs have.
        most = 120 if program.main_bytes < 120 else 3 * program.main_bytes
        size = draw.choice((most // 2, most, most, most, draw.randrange(1, 100)))
        filler = draw.choice((bytes(size), b"\xff" * size, *[draw.randbytes(size)] * 6))
        made.append((draw.choice((1, 2, 3, 200)), bytes([first]) + filler))
    return made


def entries(
    draw: Random, program: Drawn, seen: dict[str, list[tuple[int, ...]]]
) -> dict[str, list[Entry]]:
    """Return entries for the tables, made of keys that packets have looked up."""
    made: dict[str, list[Entry]] = {}
    for spec in program.tables:
        if spec.is_const:
            continue
        name = spec.name.split(".")[-1]
        found: dict[tuple[tuple[int, int], ...], Entry] = {}
        for priority in range(1, draw.randrange(2, 6)):
            known = seen.get(name) or [tuple(0 for _ in spec.keys)]
            keys = tuple(
                entry_key(draw, key, value)
                for key, value in zip(spec.keys, draw.choice(known), strict=True)
            )
            action, widths = draw.choice(spec.actions)
            args = tuple(draw.getrandbits(width) for width in widths)
            found.setdefault(keys, Entry(keys, priority, action, args))
        made[name] = list(found.values())
    return made


def entry_key(draw: Random, key: KeySpec, value: int) -> tuple[int, int]:
    most = (1 << key.width) - 1
    match key.kind:
        case "exact":
            return value, 0
        case "lpm":
            length = draw.randrange(key.width + 1)
            return value >> (key.width - length) << (key.width - length), length
        case "range":
            return max(value - draw.randrange(3), 0), min(value + draw.randrange(3), most)
        case "optional":
            return draw.choice(((value, most), (0, 0)))
    mask = draw.getrandbits(key.width)
    return value & mask, mask


__all__ = ["ERROR", "PORTS", "Drawn", "drawn", "entries", "packets"]
