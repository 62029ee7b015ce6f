"""P4 source to the judge's tree: statements and declarations, by the specification's grammar.

Only constructs that the judge evaluates are read.
"""

from __future__ import annotations

from tests.language import tree as n
from tests.language.reading_expressions import EXTERNS, ExpressionReader

ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "|+|=", "|-|="}
ERRORS = [
    "NoError",
    "PacketTooShort",
    "NoMatch",
    "StackOutOfBounds",
    "HeaderTooShort",
    "ParserTimeout",
    "ParserInvalidArgument",
]


def read(source: str) -> n.Program:
    """Return the tree of a program; raises ValueError for source that the judge does not know."""
    return Reader(source).program()


class Reader(ExpressionReader):
    """Reads a whole program."""

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self.errors = list(ERRORS)

    def block(self) -> n.Block:
        """Read `{ ... }`."""
        self.expect("{")
        body = []
        while not self.accept("}"):
            body.append(self.statement())

        return n.Block(tuple(body))

    def statement(self) -> n.Statement:
        """Read one statement."""
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
        """Read an `if`."""
        self.expect("if")
        self.expect("(")
        condition = self.expression()
        self.expect(")")
        then = self.statement()

        return n.If(condition, then, self.statement() if self.accept("else") else None)

    def switch(self) -> n.Switch:
        """Read a `switch`."""
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
        """Read a `for`, of either kind."""
        self.expect("for")
        self.expect("(")
        start = self.position
        if self.starts_type():
            type_ = self.type()
            name = self.take()
            if self.accept("in"):
                low = self.expression()
                values = n.Between(low, self.expression()) if self.accept("..") else low
                self.expect(")")
                return n.ForIn(type_, name, values, self.statement())

        self.position = start
        init = self.listed(self.simple, ";")
        condition = self.expression()
        self.expect(";")
        update = self.listed(self.simple, ")")

        return n.For(init, condition, update, self.statement())

    def program(self) -> n.Program:
        """Read a whole source."""
        made = n.Program(self.types, self.errors)
        while self.kind() != "end":
            self.top(made)

        return made

    def top(self, made: n.Program) -> None:
        """Read one declaration outside of all blocks."""
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
        """Read a struct, header or header_union."""
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
        """Read an enum, with or without an underlying type."""
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
        """Read a declaration that begins with a type."""
        type_ = self.type()
        if self.peek() == "(":
            made.instances.append(self.instance(type_))
            return

        name = self.take()
        made.functions[name] = n.Function(name, self.params(), self.block(), is_action=False)

    def instance(self, type_: n.Type | str) -> n.Instance:
        """Read `type(args) name;`, behind the type."""
        self.expect("(")
        args = self.listed(self.expression, ")")
        name = self.take()
        self.expect(";")

        return n.Instance(type_, args, name)

    def local(self) -> n.Local:
        """Read a declaration in front of an `apply` block or of the states."""
        self.annotations()
        if self.peek() == "action":
            return self.action()
        if self.peek() == "table":
            return self.table()
        if self.peek() not in EXTERNS and self.kind() == "name" and self.peek(1) == "(":
            return self.instance(self.take())
        start = self.position
        if self.peek() != "const":
            type_ = self.type()
            if self.peek() == "(":
                return self.instance(type_)
            self.position = start

        declared = self.simple()
        assert isinstance(declared, n.Declare)
        self.expect(";")

        return declared

    def control(self) -> n.Control:
        """Read a control."""
        self.expect("control")
        name = self.take()
        params = self.params()
        self.expect("{")
        local_items = []
        while self.peek() != "apply":
            local_items.append(self.local())

        self.expect("apply")
        body = self.block()
        self.expect("}")

        return n.Control(name, params, tuple(local_items), body)

    def parser(self) -> n.Parser:
        """Read a parser."""
        self.expect("parser")
        name = self.take()
        params = self.params()
        self.expect("{")
        local_items = []
        while self.peek() != "state":
            local_items.append(self.local())

        states = []
        while not self.accept("}"):
            states.append(self.state())

        return n.Parser(name, params, tuple(local_items), tuple(states))

    def state(self) -> n.State:
        """Read a state of a parser."""
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
        """Read a table; properties that change no result are skipped."""
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
        """Read `expression: match kind;`."""
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
        """Read `keys: action;`."""
        keys = self.keys()
        self.expect(":")
        call = self.action_call()
        self.expect(";")

        return n.ConstEntry(keys, call)

    def main(self) -> tuple[str, ...]:
        """Read the package; return the names of its blocks."""
        self.expect("V1Switch")
        self.expect("(")
        names = self.listed(self.block_name, ")")
        self.expect("main")
        self.expect(";")

        return names

    def block_name(self) -> str:
        """Read `Name()`."""
        name = self.take()
        self.expect("(")
        self.expect(")")

        return name
