"""Random v1model programs, drawn from one number each.

The parser of a program reaches every header for some packets, its controls use every kind of
statement, and all that they compute ends in headers, so that it can be seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from tests.language import tree as n
from tests.language.drawing_pieces import BOOL, WIDTHS
from tests.language.drawing_statements import Where
from tests.language.drawing_tables import TableMaker
from tests.language.drawing_types import ERRORS
from tests.language.inputs import Drawn
from tests.language.names import Callable_, Names, Type, Variable, show
from tests.language.values import width_of


def drawn(seed: int, widths: Sequence[int] = WIDTHS, for_p4c: bool = False) -> Drawn:
    """Return the program of a number, with fields of these widths.

    With `for_p4c`, without constructs that p4c's back end for BMv2 does not take.
    """
    maker = Maker(Random(seed), widths, for_p4c)
    # Not drawn, so that the other programs stay as they were.
    maker.has_indexes = seed % 4 == 3
    return maker.program()


# A call with a second argument that changes the index of the first.
INDEX_FUNCTIONS = """bit<1> turned(inout bit<1> p0) { p0 = ~p0; return p0; }
void stepped(inout bit<7> p0, in bit<1> p1) { p0 = p0 + 5 + (bit<7>) p1; }
"""
INDEX_CALL = """if (h.items[0].isValid() && h.items[1].isValid()) {
bit<1> index = h.main.low[0:0]; stepped(h.items[index].tag, turned(index)); }"""


class Maker(TableMaker):
    """Draws the parser and the controls, and puts a program together."""

    has_indexes = False

    def control(self, name: str, is_ingress: bool, count: int) -> str:
        """Return the ingress or the egress control."""
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
            applied = self.expressions.call(self.inner_control, names, 2)
            instance = f"{applied.source};" if applied is not None else ""

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
        if is_ingress and self.has_indexes:
            body.insert(0, INDEX_CALL)
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
        self.inner_control = None
        if not self.chance(0.4):
            return ""
        names = Names(functions=self.functions, errors=ERRORS)
        params: list[tuple[str, Type]] = []
        shown = []
        body = []
        for i, direction in enumerate(("inout", self.draw.choice(("in", "out")), "inout")):
            type_ = self.type_with_variables()
            params.append((direction, type_))
            shown.append(f"{direction} {show(type_)} a{i}")
            self.parameter(f"a{i}", direction, type_, names)
            if direction == "out":
                body.append(f"a{i} = {self.constant(type_)};")

        param_names = tuple(f"a{i}" for i in range(len(params)))
        self.inner_control = Callable_("nested.apply", tuple(params), None, param_names)
        body += self.statements(names, 3, Where(is_nested=True, can_jump=not self.for_p4c))
        # p4c's exit forgets the results of the calls that it ends.
        if self.chance(0.5) and not self.for_p4c:
            body.append(self.leaving(names))
            body += self.statements(names, 1, Where(is_nested=True, can_jump=not self.for_p4c))

        return (
            f"control inner_block({', '.join(shown)}) {{ apply {{\n" + "\n".join(body) + "\n} }\n"
        )

    def parser(self) -> str:
        """Return the parser, with its states in a drawn order."""
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
            # In front of and behind the counted argument, arguments that may change it.
            entangled = replace(names, favourite=counted)
            before_it, behind = (
                self.expressions.argument("in", n.Bits(8), entangled, 2) for _ in range(2)
            )
            option = f"sub.apply(p, h.option, {before_it}, {counted}, {behind});"

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
        for i, name in enumerate(order):
            later = order[i + 1 :]
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
        names.variables += [Variable(name, n.Bits(8), writable=False) for name in ("b", "d")]
        body = " ".join(["p.extract(o);", *self.parser_statements(names, Where(in_parser=True))])
        value = self.expressions.numeric(n.Bits(8), names, 2).source

        return (
            f"parser inner_parser(packet_in p, out option_t o, in bit<8> b, inout bit<8> c, "
            f"in bit<8> d) {{\n"
            f"state start {{ {body} c = {value}; transition accept; }}\n}}\n"
        )

    def parser_statements(self, names: Names, where: Where) -> list[str]:
        """Return the statements of a state beside its extraction."""
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
        if self.chance(0.2) and not self.for_p4c:
            made.append(self.conditional(names, Where(in_parser=True, depth=2)))
        return made

    def start_state(self, names: Names, order: list[str], where: Where) -> str:
        """Return the first state, which goes on by the packet's first byte."""
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
        if self.chance(0.3):
            names = self.expressions.entangled(names)
        keys = []
        widths = []
        for _ in range(self.draw.randrange(1, 3)):
            width = self.draw.choice((1, 2, 3, 4, 8, 9))
            keys.append(str(self.expressions.argument("in", n.Bits(width), names, 2)))
            widths.append(width)

        cases = []
        for name in self.draw.sample(later, min(len(later), 2)):
            written = [self.case_key(width) for width in widths]
            cases.append((f"({', '.join(written)})" if len(written) > 1 else written[0], name))

        lines = [f"{written}: {name};" for written, name in cases]
        # p4c's parsers accept where no case fits.
        if self.for_p4c or self.chance(0.7):
            lines.append(f"default: {self.draw.choice((*later, 'accept'))};")
        return f"transition select({', '.join(keys)}) {{ {' '.join(lines)} }}"

    def case_key(self, width: int) -> str:
        """Return the key of a case of a `select`."""
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
        """Return the whole program."""
        self.types()
        parts = [self.type_source()]
        if self.chance(0.7):
            parts += [self.touching_function(), self.blending_function()]
        parts += [self.function() for _ in range(self.draw.randrange(4))]
        if self.has_indexes:
            parts.append(INDEX_FUNCTIONS)
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
        """Return the control that updates checksums."""
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
                    if (
                        isinstance(item.type, n.Bits)
                        and not item.type.signed
                        and not self.for_p4c
                        and self.chance(0.5)
                    ):
                        text = f"(bit<{item.type.width + self.draw.randrange(9)}>) {text}"
                    listed.append(text)
                data = ", ".join(listed)
                body = (
                    f"update_checksum(h.main.ways != 0, {{ {data} }}, {target.source}, "
                    "HashAlgorithm.csum16);"
                )

        return f"control Compute(inout headers_t h, inout metadata_t m) {{ apply {{ {body} }} }}\n"
