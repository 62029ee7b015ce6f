"""Types and expressions of P4 source to the judge's tree.

Types are declared before they are used, so a name is known to be a type when it is met. So
`(name) -x` is distinguished from a subtraction.
"""

from __future__ import annotations

import re

from tests.language import tree as n
from tests.language.tokens import Tokens

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
PLAIN = ("bool", "error", "int", "string", "void")
EXTERNS = ("register", "counter", "meter", "direct_counter", "direct_meter")
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


class ExpressionReader(Tokens):
    """Reads types and expressions; `types` are those declared so far."""

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self.types = built_in()

    def starts_type(self) -> bool:
        return self.peek() in ("bit", "varbit", "tuple", *PLAIN, *EXTERNS) or (
            self.peek() in self.types
        )

    def type(self) -> n.Type:
        """Read a type, with the size of a stack."""
        made = self.base_type()
        if isinstance(made, n.Struct) and made.kind != "struct" and self.peek() == "[":
            self.expect("[")
            size = int(self.take())
            self.expect("]")
            return n.Stack(made, size)

        return made

    def base_type(self) -> n.Type:
        """Read a type without the size of a stack."""
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

    def expression(self, least: int = 1) -> n.Expression:
        """Read an expression with operators that bind at least so tight."""
        node = self.prefix()
        while True:
            op = self.operator()
            if op == "?" and least <= 1:
                self.take()
                then = self.expression()
                self.expect(":")
                node = n.Choice(node, then, self.expression())
                continue
            level = PRECEDENCE.get(op, 0)
            if level < least or level == 0:
                return node
            self.position += 2 if op == ">>" else 1
            node = n.Binary(op, node, self.expression(level + 1))

    def operator(self) -> str:
        """Return the next operator; two `>` side by side are a single operator."""
        if self.peek() != ">" or self.peek(1) != ">":
            return self.peek()
        return (
            ">>" if self.tokens[self.position + 1][2] == self.tokens[self.position][2] + 1 else ">"
        )

    def prefix(self) -> n.Expression:
        """Read `!x`, `(type) x` and the like."""
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
        """Read a literal, a name, a list or a member of an enum."""
        kind, text, _ = self.tokens[self.position]
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
        """Read `a, b}` or `x = a, y = b}`."""
        if self.kind() == "name" and self.peek(1) == "=":
            pairs = self.listed(self.named, "}")
            return n.Items(tuple(pair[1] for pair in pairs), tuple(pair[0] for pair in pairs))

        return n.Items(self.listed(self.expression, "}"))

    def argument(self) -> n.Expression:
        """Read `value` or `name = value`."""
        if self.kind() == "name" and self.peek(1) == "=":
            return n.Named(*self.named())
        return self.expression()

    def named(self) -> tuple[str, n.Expression]:
        name = self.take()
        self.expect("=")
        return name, self.expression()

    def postfix(self, base: n.Expression) -> n.Expression:
        """Read members, indices and calls behind an expression."""
        while True:
            if self.accept("."):
                base = n.Member(base, self.take())
            elif self.accept("["):
                base = self.element(base)
            elif self.accept("("):
                base = n.Call(base, (), self.listed(self.argument, ")"))
            elif self.peek() == "<" and isinstance(base, n.Member) and base.name == "lookahead":
                self.take()
                types = self.listed(self.type, ">")
                self.expect("(")
                base = n.Call(base, types, self.listed(self.expression, ")"))
            else:
                return base

    def element(self, base: n.Expression) -> n.Expression:
        """Read `index]` or `high:low]`."""
        index = self.expression()
        if self.accept("]"):
            return n.Index(base, index)
        self.expect(":")
        low = self.expression()
        self.expect("]")
        assert isinstance(index, n.Number) and isinstance(low, n.Number)
        return n.Slice(base, index.value, low.value)

    def key(self) -> n.Expression:
        """Read the key of a case or an entry."""
        value = self.expression()
        if self.accept("&&&"):
            return n.Masked(value, self.expression())
        return n.Between(value, self.expression()) if self.accept("..") else value

    def keys(self) -> tuple[n.Expression, ...]:
        """Read the keys of a case or an entry."""
        # `(a, b)` are several keys; `(a)` and `(bit<8>) a` are a single key.
        start = self.position
        if self.accept("("):
            try:
                case_keys = self.listed(self.key, ")")
            except ValueError:
                case_keys = ()
            if len(case_keys) > 1 or (case_keys and self.peek() == ":"):
                return case_keys
            self.position = start

        return (self.key(),)


def number(text: str) -> n.Number:
    """Return a literal: `8w0x1f`, `4s7`, `0b11`, `12`."""
    literal = re.fullmatch(r"(?:(\d+)([ws]))?(.*)", text)
    assert literal is not None
    width, sign, digits = literal.groups()
    value = int(digits.replace("_", ""), 0 if digits[:1] == "0" and len(digits) > 1 else 10)
    if width is None:
        return n.Number(value)
    if sign == "s" and value >= 1 << int(width) - 1:
        value -= 1 << int(width)
    return n.Number(value, int(width), sign == "s")
