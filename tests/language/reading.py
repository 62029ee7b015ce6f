"""P4 source to the judge's tree: the grammar of the specification, for what the judge evaluates.

Types are declared before they are used, so a name is known to be a type when it is met, which is
how `(name) -x` is told from a subtraction.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from tests.language import tree as n

Item = TypeVar("Item")

TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/|\#[^\n]*)
    |(?P<number>(?:\d+[ws])?0[xX][0-9a-fA-F_]+|(?:\d+[ws])?0[bB][01_]+|(?:\d+[ws])?\d[\d_]*)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<text>"(?:[^"\\]|\\.)*")
    |(?P<mark>\|\+\|=?|\|-\|=?|<<=|&&&|&&|\|\||\+\+|==|!=|<=|>=|<<|\.\.|[-+*/%&|^]=|.)""",
    re.VERBOSE | re.DOTALL,
)
# From the loosest to the tightest; `>>` is read as two marks, since `a<b<8>>` has them, too.
PRECEDENCE = {
    "||": 2,
    "&&": 3,
    **dict.fromkeys(("==", "!="), 4),
    **dict.fromkeys(("<", ">", "<=", ">="), 5),
    "|": 6,
    "^": 7,
    "&": 8,
    **dict.fromkeys(("<<", ">>"), 9),
    **dict.fromkeys(("+", "-", "++", "|+|", "|-|"), 10),
    **dict.fromkeys(("*", "/", "%"), 11),
}
ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "|+|=", "|-|="}
PLAIN = ("bool", "error", "int", "string", "void")
EXTERNS = ("register", "counter", "meter", "direct_counter", "direct_meter")
ERRORS = [
    "NoError",
    "PacketTooShort",
    "NoMatch",
    "StackOutOfBounds",
    "HeaderTooShort",
    "ParserTimeout",
    "ParserInvalidArgument",
]
STANDARD = n.Struct(
    "struct",
    "standard_metadata_t",
    (
        ("ingress_port", n.Bits(9)),
        ("egress_spec", n.Bits(9)),
        ("egress_port", n.Bits(9)),
        ("instance_type", n.Bits(32)),
        ("packet_length", n.Bits(32)),
        ("mcast_grp", n.Bits(16)),
        ("egress_rid", n.Bits(16)),
        ("checksum_error", n.Bits(1)),
        ("parser_error", n.Plain("error")),
        ("priority", n.Bits(3)),
    ),
)


def built_in() -> dict[str, n.Type]:
    """Return the types of core.p4 and v1model."""
    enums = {
        "HashAlgorithm": ("crc32", "crc16", "identity", "csum16", "xor16"),
        "CounterType": ("packets", "bytes", "packets_and_bytes"),
        "MeterType": ("packets", "bytes"),
        "CloneType": ("I2E", "E2E"),
    }
    return {
        STANDARD.name: STANDARD,
        "packet_in": n.Plain("packet"),
        "packet_out": n.Plain("packet"),
        **{name: n.Enum(name, members) for name, members in enums.items()},
    }


def read(source: str) -> n.Program:
    """Return the tree of a program; raises ValueError for what the judge does not know."""
    return Reader(source).program()


class Reader:
    def __init__(self, source: str) -> None:
        self.tokens = [
            (str(found.lastgroup), found.group(), found.start())
            for found in TOKEN.finditer(source)
            if found.lastgroup != "skip"
        ]
        self.tokens.append(("end", "", len(source)))
        self.at = 0
        self.types = built_in()
        self.errors = list(ERRORS)

    # Tokens

    def peek(self, ahead: int = 0) -> str:
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)][1]

    def kind(self, ahead: int = 0) -> str:
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)][0]

    def take(self) -> str:
        text = self.peek()
        self.at += 1
        return text

    def accept(self, text: str) -> bool:
        if self.peek() != text:
            return False
        self.at += 1
        return True

    def expect(self, text: str) -> None:
        if not self.accept(text):
            around = " ".join(token[1] for token in self.tokens[self.at - 8 : self.at + 4])
            raise ValueError(f"expected {text}, found {self.peek()!r} in: {around}")

    def listed(self, item: Callable[[], Item], end: str) -> tuple[Item, ...]:
        """Read items between commas up to `end`, which is consumed."""
        found: list[Item] = []
        while not self.accept(end):
            found.append(item())
            if not self.accept(","):
                self.expect(end)
                break
        return tuple(found)

    def annotations(self) -> list[tuple[str, list[str]]]:
        """Read annotations; return their names with the tokens in their parentheses."""
        found = []
        while self.accept("@"):
            name = self.take()
            inside: list[str] = []
            if self.accept("("):
                while not self.accept(")"):
                    inside.append(self.take())
            found.append((name, inside))
        return found

    # Types

    def starts_type(self) -> bool:
        return self.peek() in ("bit", "varbit", "tuple", *PLAIN, *EXTERNS) or (
            self.peek() in self.types
        )

    def type(self) -> n.Type:
        made = self.base_type()
        if isinstance(made, n.Struct) and made.kind != "struct" and self.peek() == "[":
            self.expect("[")
            size = int(self.take())
            self.expect("]")
            return n.Stack(made, size)
        return made

    def base_type(self) -> n.Type:
        name = self.take()
        if name in ("bit", "varbit", "int") and self.accept("<"):
            width = int(self.take())
            self.expect(">")
            return n.Varbit(width) if name == "varbit" else n.Bits(width, name == "int")
        if name == "bit":
            return n.Bits(1)
        if name == "tuple":
            self.expect("<")
            return n.Tuple(self.listed(self.type, ">"))
        if name in EXTERNS:
            return n.Extern(name, self.listed(self.type, ">") if self.accept("<") else ())
        if name in PLAIN:
            return n.Plain(name)
        if name not in self.types:
            raise ValueError(f"{name} is no type")
        return self.types[name]

    # Expressions

    def expression(self, least: int = 1) -> n.Expression:
        left = self.prefix()
        while True:
            op = self.operator()
            if op == "?" and least <= 1:
                self.take()
                then = self.expression()
                self.expect(":")
                left = n.Choice(left, then, self.expression())
                continue
            level = PRECEDENCE.get(op, 0)
            if level < least or level == 0:
                return left
            self.at += 2 if op == ">>" else 1
            left = n.Binary(op, left, self.expression(level + 1))

    def operator(self) -> str:
        """Return the operator that comes next; two `>` side by side are one."""
        if self.peek() != ">" or self.peek(1) != ">":
            return self.peek()
        return ">>" if self.tokens[self.at + 1][2] == self.tokens[self.at][2] + 1 else ">"

    def prefix(self) -> n.Expression:
        if self.peek() in ("!", "~", "-", "+"):
            op = self.take()
            return n.Unary(op, self.prefix())
        if self.peek() == "(":
            self.take()
            if self.starts_type() and self.peek(1) != ".":
                target = self.type()
                self.expect(")")
                return n.Cast(target, self.prefix())
            inner = self.expression()
            self.expect(")")
            return self.postfix(inner)
        return self.postfix(self.primary())

    def primary(self) -> n.Expression:
        kind, text, _ = self.tokens[self.at]
        if kind == "number":
            return number(self.take())
        if kind == "text":
            return n.Text(self.take()[1:-1])
        if text in ("true", "false"):
            return n.Truth(self.take() == "true")
        if text in ("_", "default"):
            self.take()
            return n.Anything()
        if self.accept("{"):
            return self.items()
        if self.starts_type() and self.peek(1) == ".":
            type_ = self.type()
            self.expect(".")
            return n.OfType(type_, self.take())
        if kind != "name":
            raise ValueError(f"expected an expression, found {text!r}")
        return n.Name(self.take())

    def items(self) -> n.Items:
        if self.kind() == "name" and self.peek(1) == "=":
            pairs = self.listed(self.named, "}")
            return n.Items(tuple(pair[1] for pair in pairs), tuple(pair[0] for pair in pairs))
        return n.Items(self.listed(self.expression, "}"))

    def named(self) -> tuple[str, n.Expression]:
        name = self.take()
        self.expect("=")
        return name, self.expression()

    def postfix(self, base: n.Expression) -> n.Expression:
        while True:
            if self.accept("."):
                base = n.Member(base, self.take())
            elif self.accept("["):
                base = self.element(base)
            elif self.accept("("):
                base = n.Call(base, (), self.listed(self.expression, ")"))
            elif self.peek() == "<" and isinstance(base, n.Member) and base.name == "lookahead":
                self.take()
                types = self.listed(self.type, ">")
                self.expect("(")
                base = n.Call(base, types, self.listed(self.expression, ")"))
            else:
                return base

    def element(self, base: n.Expression) -> n.Expression:
        index = self.expression()
        if self.accept("]"):
            return n.Index(base, index)
        self.expect(":")
        low = self.expression()
        self.expect("]")
        assert isinstance(index, n.Number) and isinstance(low, n.Number)
        return n.Slice(base, index.value, low.value)

    def key(self) -> n.Expression:
        """Read what a case or an entry matches."""
        value = self.expression()
        if self.accept("&&&"):
            return n.Masked(value, self.expression())
        return n.Between(value, self.expression()) if self.accept("..") else value

    def keys(self) -> tuple[n.Expression, ...]:
        # `(a, b)` are several keys; `(a)` and `(bit<8>) a` are one.
        start = self.at
        if self.accept("("):
            try:
                found = self.listed(self.key, ")")
            except ValueError:
                found = ()
            if len(found) > 1 or (found and self.peek() == ":"):
                return found
            self.at = start
        return (self.key(),)

    # Statements

    def block(self) -> n.Block:
        self.expect("{")
        body = []
        while not self.accept("}"):
            body.append(self.statement())
        return n.Block(tuple(body))

    def statement(self) -> n.Statement:
        self.annotations()
        match self.peek():
            case "{":
                return self.block()
            case ";":
                self.take()
                return n.Block(())
            case "if":
                return self.conditional()
            case "switch":
                return self.switch()
            case "for":
                return self.loop()
            case "return":
                self.take()
                value = None if self.peek() == ";" else self.expression()
                self.expect(";")
                return n.Return(value)
            case "exit" | "break" | "continue":
                jump = n.Jump(self.take())
                self.expect(";")
                return jump
        made = self.simple()
        self.expect(";")
        return made

    def simple(self) -> n.Statement:
        """Read a declaration, an assignment or a call, without the semicolon."""
        self.accept("const")
        if self.starts_type() and self.peek(1) != ".":
            type_ = self.type()
            name = self.take()
            return n.Declare(type_, name, self.expression() if self.accept("=") else None)
        target = self.postfix(self.primary())
        if self.peek() == ">" and self.peek(1) == ">=":
            self.take()
            self.take()
            return n.Assign(target, ">>", self.expression())
        if self.peek() in ASSIGNMENTS:
            op = self.take()[:-1]
            return n.Assign(target, op, self.expression())
        return n.Do(target)

    def conditional(self) -> n.If:
        self.expect("if")
        self.expect("(")
        condition = self.expression()
        self.expect(")")
        then = self.statement()
        return n.If(condition, then, self.statement() if self.accept("else") else None)

    def switch(self) -> n.Switch:
        self.expect("switch")
        self.expect("(")
        subject = self.expression()
        self.expect(")")
        self.expect("{")
        cases: list[tuple[n.Expression, n.Block | None]] = []
        while not self.accept("}"):
            label = self.expression()
            self.expect(":")
            cases.append((label, self.block() if self.peek() == "{" else None))
        return n.Switch(subject, tuple(cases))

    def loop(self) -> n.Statement:
        self.expect("for")
        self.expect("(")
        start = self.at
        if self.starts_type():
            type_ = self.type()
            name = self.take()
            if self.accept("in"):
                low = self.expression()
                values = n.Between(low, self.expression()) if self.accept("..") else low
                self.expect(")")
                return n.ForIn(type_, name, values, self.statement())
        self.at = start
        init = self.listed(self.simple, ";")
        condition = self.expression()
        self.expect(";")
        update = self.listed(self.simple, ")")
        return n.For(init, condition, update, self.statement())

    # Declarations

    def program(self) -> n.Program:
        made = n.Program(self.types, self.errors)
        while self.kind() != "end":
            self.top(made)
        return made

    def top(self, made: n.Program) -> None:
        self.annotations()
        match self.peek():
            case "header" | "struct" | "header_union":
                self.struct()
            case "enum":
                self.enum()
            case "error" if self.peek(1) == "{":
                self.take()
                self.expect("{")
                self.errors.extend(self.listed(self.take, "}"))
            case "typedef" | "type":
                self.take()
                type_ = self.type()
                self.types[self.take()] = type_
                self.expect(";")
            case "const":
                declared = self.simple()
                assert isinstance(declared, n.Declare)
                made.constants.append(declared)
                self.expect(";")
            case "action":
                action = self.action()
                made.functions[action.name] = action
            case "control":
                control = self.control()
                made.blocks[control.name] = control
            case "parser":
                parser = self.parser()
                made.blocks[parser.name] = parser
            case "V1Switch":
                made.main = self.main()
            case _:
                self.function_or_instance(made)

    def struct(self) -> None:
        kind = self.take()
        name = self.take()
        self.expect("{")
        fields = []
        lists = []
        while not self.accept("}"):
            notes = self.annotations()
            type_ = self.type()
            field = self.take()
            fields.append((field, type_))
            for note, inside in notes:
                if note == "field_list":
                    lists.append((field, tuple(int(text) for text in inside if text != ",")))
            self.expect(";")
        self.types[name] = n.Struct(kind, name, tuple(fields), tuple(lists))

    def enum(self) -> None:
        self.expect("enum")
        below = None
        if self.starts_type():
            below = self.type()
        name = self.take()
        self.expect("{")
        if below is None:
            self.types[name] = n.Enum(name, self.listed(self.take, "}"))
            return
        assert isinstance(below, n.Bits)
        pairs = self.listed(self.named, "}")
        values = []
        for _, value in pairs:
            assert isinstance(value, n.Number)
            values.append(value.value)
        self.types[name] = n.Enum(name, tuple(pair[0] for pair in pairs), below, tuple(values))

    def params(self) -> tuple[n.Param, ...]:
        self.expect("(")
        return self.listed(self.param, ")")

    def param(self) -> n.Param:
        self.annotations()
        direction = self.take() if self.peek() in ("in", "out", "inout") else ""
        return n.Param(direction, self.type(), self.take())

    def action(self) -> n.Function:
        self.expect("action")
        name = self.take()
        return n.Function(name, self.params(), self.block(), is_action=True)

    def function_or_instance(self, made: n.Program) -> None:
        type_ = self.type()
        if self.peek() == "(":
            made.instances.append(self.instance(type_))
            return
        name = self.take()
        made.functions[name] = n.Function(name, self.params(), self.block(), is_action=False)

    def instance(self, type_: n.Type | str) -> n.Instance:
        self.expect("(")
        args = self.listed(self.expression, ")")
        name = self.take()
        self.expect(";")
        return n.Instance(type_, args, name)

    def local(self) -> n.Local:
        self.annotations()
        if self.peek() == "action":
            return self.action()
        if self.peek() == "table":
            return self.table()
        if self.peek() not in EXTERNS and self.kind() == "name" and self.peek(1) == "(":
            return self.instance(self.take())
        start = self.at
        if self.peek() != "const":
            type_ = self.type()
            if self.peek() == "(":
                return self.instance(type_)
            self.at = start
        declared = self.simple()
        assert isinstance(declared, n.Declare)
        self.expect(";")
        return declared

    def control(self) -> n.Control:
        self.expect("control")
        name = self.take()
        params = self.params()
        self.expect("{")
        found = []
        while self.peek() != "apply":
            found.append(self.local())
        self.expect("apply")
        body = self.block()
        self.expect("}")
        return n.Control(name, params, tuple(found), body)

    def parser(self) -> n.Parser:
        self.expect("parser")
        name = self.take()
        params = self.params()
        self.expect("{")
        found = []
        while self.peek() != "state":
            found.append(self.local())
        states = []
        while not self.accept("}"):
            states.append(self.state())
        return n.Parser(name, params, tuple(found), tuple(states))

    def state(self) -> n.State:
        self.expect("state")
        name = self.take()
        self.expect("{")
        body = []
        while self.peek() != "transition":
            body.append(self.statement())
        self.expect("transition")
        keys: tuple[n.Expression, ...] = ()
        cases: list[tuple[tuple[n.Expression, ...], str]] = []
        if self.accept("select"):
            self.expect("(")
            keys = self.listed(self.expression, ")")
            self.expect("{")
            while not self.accept("}"):
                matched = self.keys()
                self.expect(":")
                cases.append((matched, self.take()))
                self.expect(";")
        else:
            cases.append(((), self.take()))
            self.expect(";")
        self.expect("}")
        return n.State(name, tuple(body), keys, tuple(cases))

    def table(self) -> n.Table:
        self.expect("table")
        name = self.take()
        self.expect("{")
        keys: list[tuple[n.Expression, str]] = []
        actions: list[str] = []
        entries: list[n.ConstEntry] = []
        default = n.ActionCall("NoAction", ())
        while not self.accept("}"):
            self.accept("const")
            match self.take():
                case "key":
                    self.expect("=")
                    self.expect("{")
                    while not self.accept("}"):
                        keys.append(self.table_key())
                case "actions":
                    self.expect("=")
                    self.expect("{")
                    while not self.accept("}"):
                        self.annotations()
                        actions.append(self.take())
                        self.expect(";")
                case "default_action":
                    self.expect("=")
                    default = self.action_call()
                    self.expect(";")
                case "entries":
                    self.expect("=")
                    self.expect("{")
                    while not self.accept("}"):
                        entries.append(self.entry())
                case _:
                    while not self.accept(";"):
                        self.take()
        return n.Table(name, tuple(keys), tuple(actions), default, tuple(entries))

    def table_key(self) -> tuple[n.Expression, str]:
        value = self.expression()
        self.expect(":")
        kind = self.take()
        self.annotations()
        self.expect(";")
        return value, kind

    def action_call(self) -> n.ActionCall:
        name = self.take()
        args = self.listed(self.expression, ")") if self.accept("(") else ()
        return n.ActionCall(name, args)

    def entry(self) -> n.ConstEntry:
        keys = self.keys()
        self.expect(":")
        call = self.action_call()
        self.expect(";")
        return n.ConstEntry(keys, call)

    def main(self) -> tuple[str, ...]:
        self.expect("V1Switch")
        self.expect("(")
        names = self.listed(self.block_name, ")")
        self.expect("main")
        self.expect(";")
        return names

    def block_name(self) -> str:
        name = self.take()
        self.expect("(")
        self.expect(")")
        return name


def number(text: str) -> n.Number:
    """Return a literal: `8w0x1f`, `4s7`, `0b11`, `12`."""
    found = re.fullmatch(r"(?:(\d+)([ws]))?(.*)", text)
    assert found is not None
    width, sign, digits = found.groups()
    value = int(digits.replace("_", ""), 0 if digits[:1] == "0" and len(digits) > 1 else 10)
    if width is None:
        return n.Number(value)
    if sign == "s" and value >= 1 << int(width) - 1:
        value -= 1 << int(width)
    return n.Number(value, int(width), sign == "s")
