"""Headers, structs and enums of a random program, and which of their fields its code may name."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tests.language import tree as n
from tests.language.drawing import Drawing
from tests.language.drawing_pieces import BOOL, WIDTHS
from tests.language.inputs import TableSpec
from tests.language.names import Callable_, Indexed, Names, Variable, show
from tests.language.values import width_of

PLAIN_ENUM = n.Enum("color_t", ("RED", "GREEN", "BLUE"))
ERRORS = ("NoError", "PacketTooShort", "NoMatch", "StackOutOfBounds", "HeaderTooShort", "Own")


class TypeMaker:
    """A maker of a program's types; its subclasses make the code that uses them."""

    def __init__(self, draw: Random, widths: Sequence[int] = WIDTHS, for_p4c: bool = False) -> None:
        self.draw = draw
        self.for_p4c = for_p4c
        serial_members = draw.sample(range(16), 3)
        self.serial = n.Enum("kind_t", ("ONE", "TWO", "SIX"), n.Bits(4), tuple(serial_members))
        self.enums = (PLAIN_ENUM, self.serial)
        self.expressions = Drawing(draw, self.enums, widths, for_p4c)
        self.tables: list[TableSpec] = []
        self.registers: list[tuple[str, n.Bits, int]] = []
        self.counters: list[tuple[str, int]] = []
        self.functions: list[Callable_] = []
        self.numbers = 0
        self.first_bytes: list[int] = []
        self.inner_control: Callable_ | None = None

    def chance(self, share: float) -> bool:
        return self.draw.random() < share

    def name(self, prefix: str) -> str:
        self.numbers += 1
        return f"{prefix}{self.numbers}"

    def fields(self, count: int, prefix: str, start: int = 0) -> list[tuple[str, n.Type]]:
        """Return fields of a header that fill whole bytes."""
        made: list[tuple[str, n.Type]] = []
        total = start
        for i in range(count):
            roll = self.draw.random()
            type_: n.Type = self.expressions.bits()
            if roll < 0.08:
                type_ = BOOL
            elif roll < 0.16:
                type_ = self.serial
            made.append((f"{prefix}{i}", type_))
            total += width_of(type_)

        if total % 8:
            made.append((f"{prefix}_rest", n.Bits(8 - total % 8)))
        return made

    def types(self) -> None:
        """Draw all types of the program."""
        count = self.draw.randrange(4, 9)
        main = [("first", n.Bits(8)), ("ways", n.Bits(2)), ("low", n.Bits(6))]
        self.main = n.Struct("header", "main_t", (*main, *self.fields(count, "m")))
        # The type of most parameters, so that many arguments fit them.
        numbers = [type_ for _, type_ in self.main.fields if isinstance(type_, n.Bits)]
        self.common = self.draw.choice(numbers)
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
        inner: list[tuple[str, n.Type]] = [(f"n{i}", self.expressions.type()) for i in range(2)]
        self.inner = n.Struct("struct", "inner_t", tuple(inner))
        metadata: list[tuple[str, n.Type]] = [(f"x{i}", self.expressions.type()) for i in range(3)]
        metadata += [("nest", self.inner), ("nest2", self.inner)]
        kept: list[tuple[str, n.Type]] = [("kept", self.expressions.bits())]
        self.metadata = n.Struct("struct", "metadata_t", (*metadata, *kept))

    def type_source(self) -> str:
        """Return the declarations of all types."""
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

    def of(self, source: str, struct: n.Struct, guard: str = "") -> list[Variable]:
        """Return the fields of a struct or header as variables."""
        variables = []
        for name, type_ in struct.fields:
            match type_:
                case n.Bits() | n.Enum() | n.Plain():
                    variables.append(Variable(f"{source}.{name}", type_, guard=guard))
                case n.Struct(kind="struct"):
                    variables += self.of(f"{source}.{name}", type_, guard)

        return variables

    def indexed(self, names: Names) -> None:
        """Add the elements of the stack by an index that is computed."""
        index = "h.main.ways" if self.items.size == 4 else "h.main.low[3:3]"
        names.headers.append(f"h.items[{index}]")
        names.variables += self.of(f"h.items[{index}]", self.item, f"h.items[{index}]")
        bits = (self.items.size - 1).bit_length()
        names.stack = Indexed("h.items", n.Bits(bits), self.item.fields)

    def control_names(self, is_egress: bool) -> Names:
        """Return the names that the code of a control may use."""
        names = Names(functions=self.functions, errors=ERRORS, parser_error="s.parser_error")
        names.variables += self.of("h.main", self.main)
        names.variables += self.of("m", self.metadata)
        names.headers = ["h.option", "h.either.one", "h.either.two", "h.either", "h.vary"]
        names.variables += self.of("h.option", self.option, "h.option")
        names.variables += self.of("h.either.one", self.option, "h.either.one")
        names.variables += self.of("h.either.two", self.other, "h.either.two")
        for i in range(self.items.size):
            names.headers.append(f"h.items[{i}]")
            names.variables += self.of(f"h.items[{i}]", self.item, f"h.items[{i}]")

        # p4c's JSON names such an element by an expression, which our switch does not take.
        if not self.for_p4c:
            self.indexed(names)
        names.structs = ["m.nest", "m.nest2"]
        # Clones know no ingress port.
        if not is_egress:
            names.variables.append(Variable("s.ingress_port", n.Bits(9), writable=False))
        else:
            names.variables.append(Variable("s.egress_port", n.Bits(9), writable=False))
            names.variables.append(Variable("s.egress_rid", n.Bits(16), writable=False))

        names.variables.append(Variable("s.instance_type", n.Bits(32), writable=False))

        return names
