"""Random statements and functions of a program, and random calls of externs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tests.language import tree as n
from tests.language.drawing_types import ERRORS, PLAIN_ENUM, TypeMaker
from tests.language.names import Callable_, Names, Type, Variable, show


@dataclass(frozen=True, slots=True)
class Where:
    """The conditions of a place, which decide the statements allowed there."""

    in_control: bool = False
    in_parser: bool = False
    in_function: bool = False
    in_action: bool = False
    in_loop: bool = False
    is_ingress: bool = False
    # In a control that another one applies.
    is_nested: bool = False
    can_jump: bool = False
    returns: Type | None = None
    depth: int = 0

    def deeper(self, in_loop: bool = False) -> Where:
        """Return the conditions in a block inside."""
        return replace(
            self,
            in_loop=self.in_loop or in_loop,
            can_jump=self.can_jump or in_loop or self.in_function,
            depth=self.depth + 1,
        )


class StatementMaker(TypeMaker):
    """A maker of statements that are allowed at their place."""

    def function(self) -> str:
        """Return a function, which later code may call."""
        name = self.name("f")
        returns: Type | None = self.expressions.type() if self.chance(0.8) else None
        params: list[tuple[str, Type]] = []
        names = Names(functions=list(self.functions), errors=ERRORS)
        shown = []
        for i in range(self.draw.randrange(1, 4)):
            direction = self.draw.choice(("in", "in", "inout", "inout", "out"))
            type_ = self.inner if self.chance(0.1) else self.type_with_variables()
            params.append((direction, type_))
            shown.append(f"{direction} {show(type_)} p{i}")
            self.parameter(f"p{i}", direction, type_, names)

        body = [
            f"p{i} = {self.constant(type_)};"
            for i, (direction, type_) in enumerate(params)
            if direction == "out"
        ]
        body += self.statements(names, 3, Where(returns=returns, in_function=True))
        if returns is not None:
            body.append(f"return {self.expressions.expression(returns, names, 2).source};")
        param_names = tuple(f"p{i}" for i in range(len(params)))
        self.functions.append(Callable_(name, tuple(params), returns, param_names))
        head = show(returns) if returns is not None else "void"

        return f"{head} {name}({', '.join(shown)}) {{ {' '.join(body)} }}\n"

    def touching_function(self) -> str:
        """Return a function that changes its argument and returns a number."""
        name = self.name("f")
        kind = show(self.common)
        names = Names(variables=[Variable("p0", self.common)])
        changed = self.expressions.arithmetic(self.common, names, 1).source
        result = self.expressions.arithmetic(self.common, names, 0).source
        self.functions.append(Callable_(name, (("inout", self.common),), self.common, ("p0",)))

        return f"{kind} {name}(inout {kind} p0) {{ p0 = {changed}; return {result}; }}\n"

    def blending_function(self) -> str:
        """Return a function with results that depend on all of its arguments."""
        name = self.name("f")
        kind = show(self.common)
        params = tuple((way, self.common) for way in ("in", "inout", "in"))
        self.functions.append(Callable_(name, params, self.common, ("p0", "p1", "p2")))
        head = f"{kind} {name}(in {kind} p0, inout {kind} p1, in {kind} p2)"

        return f"{head} {{ p1 = p1 ^ p0; return p0 + p2; }}\n"

    def parameter(self, source: str, direction: str, type_: Type, names: Names) -> None:
        """Make the name of a parameter known."""
        if not isinstance(type_, n.Struct):
            names.variables.append(Variable(source, type_, direction != "in"))
            return

        for name, below in type_.fields:
            assert isinstance(below, n.Bits | n.Plain | n.Enum)
            names.variables.append(Variable(f"{source}.{name}", below, direction != "in"))
        if direction != "in":
            names.structs.append(source)

    def type_with_variables(self) -> Type:
        """Return a type, mostly the type of some variable."""
        if self.chance(0.4):
            return self.common
        types = [
            type_
            for struct in (self.main, self.metadata, self.option)
            for _, type_ in struct.fields
            if isinstance(type_, n.Bits | n.Plain | n.Enum)
        ]
        return self.draw.choice(types) if self.chance(0.8) else self.expressions.type()

    def constant(self, type_: Type) -> str:
        return self.expressions.expression(type_, Names(errors=ERRORS), 0).source

    def statements(self, names: Names, count: int, where: Where) -> list[str]:
        return [self.statement(names, where) for _ in range(self.draw.randrange(1, count + 1))]

    def block(self, names: Names, where: Where, valid: str = "") -> str:
        """Return a block, in which the header `valid` is known to be valid."""
        inner = names.inner()
        if valid:
            inner.valid.add(valid)
        deeper = where.deeper()

        return f"{{ {' '.join(self.statements(inner, 2, deeper))} }}"

    def statement(self, names: Names, where: Where) -> str:
        """Return one statement of those that are allowed here."""
        choices = [self.assignment] * 6 + [self.declaration] * 2 + [self.call_statement] * 2
        if where.depth < 3:
            choices += [self.conditional] * 2
            if not self.for_p4c:
                choices += [self.switch, self.loop]
        if where.in_control and not where.in_function:
            choices += [self.header_statement] * 2
            if not where.in_parser:
                choices += [self.extern_statement] * 2

        if where.depth > 0 and where.can_jump:
            choices += [self.jump]
        return self.draw.choice(choices)(names, where)

    def assignment(self, names: Names, where: Where) -> str:
        """Return an assignment to a variable, or to something whole."""
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

        lvalue = self.expressions.place(item.type, names) or item.source
        readable = not item.guard or item.guard in names.valid
        if roll > 0.85 and readable and lvalue == item.source:
            op = self.draw.choice(("+", "-", "*", "&", "|", "^", "|+|", "|-|"))
            right = self.expressions.expression(item.type, names, 2).source
            # p4c reads the left side behind a call on the right, which may have changed it.
            if self.for_p4c and any(f"{function.name}(" in right for function in names.functions):
                return f"{lvalue} = {lvalue} {op} ({right});"
            return f"{lvalue} {op}= {right};"

        value = self.expressions.expression(item.type, names, self.draw.randrange(1, 5))

        return f"{lvalue} = {value.source};"

    def struct_assignment(self, names: Names) -> str:
        """Assign something as a whole: structs and headers, or lists to them."""
        roll = self.draw.random()
        if roll < 0.2:
            return self.draw.choice(("m.nest = m.nest2;", "m.nest2 = m.nest;"))
        if roll < 0.35:
            return self.draw.choice(("h.option = h.either.one;", "h.either.one = h.option;"))
        if roll < 0.5:
            to_index, from_index = self.draw.sample(range(self.items.size), 2)
            return f"h.items[{to_index}] = h.items[{from_index}];"

        headers = (("h.option", self.option), ("h.either.two", self.other))
        # p4c loses a header that is assigned a list of its own fields.
        targets = (("m.nest", self.inner), *(() if self.for_p4c else headers))
        target, struct = self.draw.choice(targets)
        return f"{target} = {self.expressions.items(struct, replace(names, structs=[]), 2).source};"

    def declaration(self, names: Names, where: Where) -> str:
        """Return a declaration, and make its name known."""
        type_ = self.expressions.type()
        name = self.name("v")
        value = self.expressions.expression(type_, names, 3).source
        names.variables.append(Variable(name, type_))

        return f"{show(type_)} {name} = {value};"

    def call_statement(self, names: Names, where: Where) -> str:
        """Return a call for its effect, or an assignment where no function fits."""
        # Of several arguments, an argument can change another.
        several = [item for item in names.functions if len(item.params) > 1]
        functions = several if several and self.chance(0.7) else names.functions
        if functions:
            function = self.draw.choice(functions)
            made = self.expressions.call(function, names, 2)
            lvalue = None
            if made is not None and function.returns is not None and self.chance(0.5):
                lvalue = self.expressions.place(function.returns, names)
            if made is not None:
                return f"{lvalue} = {made.source};" if lvalue else f"{made.source};"

        return self.assignment(names, where)

    def conditional(self, names: Names, where: Where) -> str:
        """Return an `if`, on a header's validity or on any condition."""
        if names.headers and self.chance(0.3):
            header = self.draw.choice(names.headers)
            then = self.block(names, where, valid=header)
            return f"if ({header}.isValid()) {then}"

        condition = self.expressions.truth(names, 3).source
        then = self.block(names, where)
        otherwise = f" else {self.block(names, where)}" if self.chance(0.6) else ""

        return f"if ({condition}) {then}{otherwise}"

    def switch(self, names: Names, where: Where) -> str:
        """Return a `switch` over a number or an enum; some cases fall through."""
        width = self.draw.choice((1, 2, 3, 4, 8))
        if self.chance(0.2):
            subject = self.expressions.expression(PLAIN_ENUM, names, 1).source
            labels = [f"{PLAIN_ENUM.name}.{member}" for member in PLAIN_ENUM.members[:2]]
        else:
            subject = self.expressions.numeric(n.Bits(width), names, 2).source
            value_count = min(1 << width, 6)
            labels = [
                f"{width}w{v}" for v in self.draw.sample(range(value_count), min(value_count, 3))
            ]

        cases = []
        for i, written in enumerate(labels):
            falls = i + 1 < len(labels) and self.chance(0.2)
            cases.append(f"{written}:" + ("" if falls else f" {self.block(names, where)}"))

        if self.chance(0.6):
            cases.append(f"default: {self.block(names, where)}")
        return f"switch ({subject}) {{ {' '.join(cases)} }}"

    def loop(self, names: Names, where: Where) -> str:
        """Return a loop of few turns."""
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
        """Return a statement that leaves a loop, a function or the control."""
        choices = []
        if where.in_loop:
            choices += ["break;", "continue;"]
        if where.in_function:
            if where.returns is not None:
                value = self.expressions.expression(where.returns, names, 2).source
                choices.append(f"return {value};")
            else:
                choices.append("return;")
        elif where.is_nested or (where.in_control and not where.in_parser):
            choices += ["exit;", "return;"]

        return self.draw.choice(choices) if choices else self.assignment(names, where)

    def header_statement(self, names: Names, where: Where) -> str:
        """Return a statement that makes a header valid or invalid, or shifts the stack."""
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
        inner_names = names.inner()
        inner_names.variables = [v for v in inner_names.variables if not v.guard.startswith(family)]
        for item in self.of(header, struct):
            value = self.expressions.expression(item.type, inner_names, 1).source
            parts.append(f"{item.source} = {value};")

        return " ".join(parts)

    def extern_statement(self, names: Names, where: Where) -> str:
        """Return a statement that uses an extern of v1model."""
        roll = self.draw.random()
        bits = self.expressions
        if roll < 0.35 and self.registers:
            name, type_, size = self.draw.choice(self.registers)
            index = bits.numeric(n.Bits(size.bit_length() - 1), names, 2)
            i = bits.cast(n.Bits(32), index).source
            if self.chance(0.5):
                lvalue = bits.place(type_, names)
                if lvalue is not None:
                    return f"{name}.read({lvalue}, {i});"
            return f"{name}.write({i}, {bits.numeric(type_, names, 2).source});"

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
        """Return expressions for a list to hash, log or digest: each with a width of its own."""
        count = self.draw.randrange(1, 4)
        return [
            self.expressions.numeric(self.expressions.bits(), names, 2).source for _ in range(count)
        ]

    def hash(self, names: Names) -> str:
        """Return a call of hash()."""
        algorithm = self.draw.choice(("crc32", "crc16", "csum16", "xor16"))
        type_ = n.Bits(self.draw.choice((8, 16, 32, 48)))
        lvalue = self.expressions.place(type_, names)
        if lvalue is None:
            item = self.draw.choice(
                [
                    v
                    for v in names.variables
                    if v.writable and isinstance(v.type, n.Bits) and not v.guard
                ]
            )
            assert isinstance(item.type, n.Bits)
            type_, lvalue = item.type, item.source

        base = f"{type_.width}{'s' if type_.signed else 'w'}{self.draw.choice((0, 1))}"
        if type_ == n.Bits(1, True):
            base = "1s0"
        modulus = self.draw.choice(("32w1", "32w16", "32w100", "64w0x100000000", "16w0xffff"))
        data = ", ".join(self.listed(names))
        call = f"HashAlgorithm.{algorithm}, {base}, {{ {data} }}, {modulus}"

        return f"hash({lvalue}, {call});"
