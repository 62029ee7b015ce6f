"""Random actions and tables of a program, with its constant entries."""

from __future__ import annotations

from tests.language import tree as n
from tests.language.drawing_pieces import BOOL
from tests.language.drawing_statements import StatementMaker, Where
from tests.language.inputs import KeySpec, TableSpec
from tests.language.names import Callable_, Names, Type, Variable, show
from tests.language.values import width_of


class TableMaker(StatementMaker):
    """Draws actions and tables, and statements that apply these."""

    def action(self, names: Names, is_ingress: bool) -> tuple[str, str, list[int]]:
        """Return an action for tables: its source, its name and the widths of its arguments."""
        name = self.name("act")
        inner = names.inner()
        widths = []
        shown = []
        for i in range(self.draw.randrange(3)):
            type_ = self.expressions.bits()
            shown.append(f"{show(type_)} d{i}")
            widths.append(type_.width)
            inner.variables.append(Variable(f"d{i}", type_, writable=False))

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
        for i in range(self.draw.randrange(1, 4)):
            direction = self.draw.choice(("in", "inout", "out"))
            type_ = self.type_with_variables()
            params.append((direction, type_))
            shown.append(f"{direction} {show(type_)} q{i}")
            self.parameter(f"q{i}", direction, type_, inner)
            if direction == "out":
                body.append(f"q{i} = {self.constant(type_)};")

        jumps = not self.for_p4c
        where = Where(in_control=True, in_action=True, is_ingress=is_ingress, can_jump=jumps)
        body += self.statements(inner, 3, where)
        if self.chance(0.4) and not self.for_p4c:
            body += [self.leaving(inner), self.statement(inner, where)]
        param_names = tuple(f"q{i}" for i in range(len(params)))
        made = Callable_(name, tuple(params), None, param_names)
        names.functions = [*names.functions, made]

        return f"action {name}({', '.join(shown)}) {{ {' '.join(body)} }}\n"

    def leaving(self, names: Names) -> str:
        """Return a statement that ends everything for some packets."""
        return f"if ({self.expressions.comparison(names, 1).source}) {{ exit; }}"

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
        if self.chance(0.3):
            names = self.expressions.entangled(names)
        keys = []
        has_others = False
        for i in range(self.draw.randrange(1, 4)):
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
            value = self.expressions.argument("in", type_, names, 2)
            keys.append(f'{value}: {kind} @name("k{i}");')
            spec.keys.append(KeySpec(kind, width))

        listed = " ".join(f"{action};" for action, _ in actions)
        default, widths = self.draw.choice(actions)
        arguments = ", ".join(
            self.argument(spec_width) for spec_width in self.types_of(text, default)
        )
        entries = ""
        if not has_others and self.chance(0.3):
            entries = self.const_entries(spec, text)
        text += (
            f"table {name} {{ key = {{ {' '.join(keys)} }} actions = {{ {listed} NoAction; }} "
            f"default_action = {default}({arguments}); {entries} }}\n"
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
                all_ones = (1 << key.width) - 1
                match key.kind:
                    case "exact":
                        keys.append(f"{key.width}w{value}")
                    case "range":
                        high = max(value, self.expressions.number(key.width))
                        keys.append(f"{key.width}w{value} .. {key.width}w{high}")
                    case "lpm":
                        # One length, so that the longest prefix is the first, too.
                        mask = all_ones ^ (all_ones >> 1)
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
            arguments = ", ".join(self.argument(type_) for type_ in self.types_of(text, action))
            keyset = f"({written})" if len(keys) > 1 else written
            lines.append(f"{keyset}: {action}({arguments});")

        return f"const entries = {{ {' '.join(lines)} }}"

    def application(self, name: str, spec: TableSpec, names: Names, is_ingress: bool) -> str:
        """Return a statement that applies a table and goes on by the result."""
        where = Where(in_control=True, is_ingress=is_ingress, can_jump=True, depth=1)
        roll = self.draw.random()
        if roll < 0.3:
            return f"{name}.apply();"
        if roll < 0.6:
            outcome = self.draw.choice((".hit", ".miss"))
            negation = self.draw.choice(("", "!"))
            then = self.block(names, where)
            return f"if ({negation}{name}.apply(){outcome}) {then} else {self.block(names, where)}"

        cases = [
            f"{action}: {self.block(names, where)}"
            for action, _ in spec.actions
            if self.chance(0.6)
        ]
        cases.append(f"default: {self.block(names, where)}")

        return f"switch ({name}.apply().action_run) {{ {' '.join(cases)} }}"
