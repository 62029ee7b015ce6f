"""Random expressions of P4_16, right in their types, with as few parentheses as the grammar allows.

Nothing is drawn that the language leaves undefined, but rarely: fields of headers that may be
invalid stand behind `isValid()`, shifts and divisions have sides that the target can do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tests.language import tree as n
from tests.language.drawing_pieces import BOOL, ERROR, LOOSEST, POSTFIX, Pieces
from tests.language.names import Callable_, Names, Text, Type, Variable


class Drawing(Pieces):
    """Draws expressions from the names of a place."""

    # Expressions

    def expression(self, type_: Type, names: Names, depth: int) -> Text:
        """Return an expression of a type, at most so many operators deep."""
        match type_:
            case n.Bits():
                return self.numeric(type_, names, depth)
            case n.Plain("bool"):
                return self.truth(names, depth)
            case n.Struct():
                return self.items(type_, names, depth)

        return self.member(type_, names, depth)

    def items(self, struct: n.Struct, names: Names, depth: int) -> Text:
        """Return a struct: a variable, or a list of its fields by their order or names."""
        if names.structs and self.draw.random() < 0.3:
            return Text(self.draw.choice(names.structs), POSTFIX)

        if not names.favourite and self.draw.random() < 0.5:
            names = self.entangled(names)
        values = []
        for name, type_ in struct.fields:
            assert isinstance(type_, n.Bits | n.Plain | n.Enum)
            values.append((name, str(self.argument("in", type_, names, depth))))

        if self.draw.random() < 0.4:
            self.draw.shuffle(values)
            return Text(f"{{ {', '.join(f'{name} = {value}' for name, value in values)} }}")
        return Text(f"{{ {', '.join(value for _, value in values)} }}")

    def member(self, type_: Type, names: Names, depth: int) -> Text:
        """Return a value of an enum, or an error."""
        if depth > 0 and self.draw.random() < 0.2:
            return self.choice(type_, names, depth)
        variable = self.variable(type_, names)
        if variable is not None and self.draw.random() < 0.6:
            return variable
        if isinstance(type_, n.Enum):
            return Text(f"{type_.name}.{self.draw.choice(type_.members)}", POSTFIX)
        return Text(f"error.{self.draw.choice(names.errors)}", POSTFIX)

    def variable(self, type_: Type, names: Names) -> Text | None:
        fitting = [item for item in names.variables if item.type == type_]
        favourites = [item for item in fitting if item.source == names.favourite]
        if favourites and self.draw.random() < 0.6:
            return self.read(favourites[0], names)
        return self.read(self.draw.choice(fitting), names) if fitting else None

    def read(self, item: Variable, names: Names) -> Text:
        """Return a variable, behind a test of its header unless this is known to be valid."""
        if not item.guard or item.guard in names.valid or self.draw.random() < 0.001:
            return Text(item.source, POSTFIX)
        # Behind a test of its header, an expression of nothing else.
        bare = Names(errors=names.errors)
        opposite = self.expression(item.type, bare, 0)
        whole = f"{item.guard}.isValid() ? {item.source} : {self.inside(opposite, LOOSEST + 1)}"

        return Text(whole, LOOSEST)

    def any_bits(self, names: Names, depth: int, least: int = 1) -> tuple[n.Bits, Text]:
        """Return an unsigned expression of any width, often that of a variable."""
        wide = [
            item.type
            for item in names.variables
            if isinstance(item.type, n.Bits) and not item.type.signed and item.type.width >= least
        ]
        type_ = n.Bits(max(self.width(), least))
        if wide and self.draw.random() < 0.8:
            type_ = self.draw.choice(wide)
        return type_, self.numeric(type_, names, depth)

    def leaf(self, type_: n.Bits, names: Names) -> Text:
        """Return an expression without operators, but for slices and casts."""
        variable = self.variable(type_, names)
        if variable is not None and self.draw.random() < 0.85:
            return variable
        # Made of a variable of another type, so that few expressions are constant.
        if self.draw.random() < 0.6:
            wider = [
                item
                for item in names.variables
                if isinstance(item.type, n.Bits) and item.type.width > type_.width
            ]
            if wider and not type_.signed:
                item = self.draw.choice(wider)
                assert isinstance(item.type, n.Bits)
                low = self.draw.randrange(item.type.width - type_.width + 1)
                return self.sliced(self.read(item, names), low + type_.width - 1, low)
            same = [
                item
                for item in names.variables
                if isinstance(item.type, n.Bits) and item.type.signed == type_.signed
            ]
            if same:
                return self.cast(type_, self.read(self.draw.choice(same), names))

        return self.literal(type_)

    def numeric(self, type_: n.Bits, names: Names, depth: int) -> Text:
        if depth <= 0:
            return self.leaf(type_, names)
        made = self.draw.choice(self.MADE)
        return made(self, type_, names, depth - 1) or self.leaf(type_, names)

    def two(self, type_: n.Bits, names: Names, depth: int) -> tuple[Text, Text]:
        """Return both sides of an operator."""
        left_side = self.numeric(type_, names, depth)
        # An `int` takes the other side's type.
        if self.draw.random() < 0.1:
            value = self.number(min(type_.width - type_.signed, 31) or 1)
            if not type_.signed or type_.width > 1:
                return left_side, Text(str(value))

        return left_side, self.numeric(type_, names, depth)

    def arithmetic(self, type_: n.Bits, names: Names, depth: int) -> Text:
        op = self.draw.choice(("+", "-", "*", "&", "|", "^", "|+|", "|-|"))
        return self.binary(op, *self.two(type_, names, depth))

    def shift(self, type_: n.Bits, names: Names, depth: int) -> Text:
        """Return a shift, mostly by few places."""
        operand = self.numeric(type_, names, depth)
        roll = self.draw.random()
        if roll < 0.4:
            places = Text(str(self.draw.choice((0, 1, type_.width - 1, type_.width, 3, 200))))
        elif roll < 0.8 or self.for_p4c:
            places = self.numeric(n.Bits(self.draw.choice((1, 2, 3, 4, 8))), names, depth - 1)
        else:
            places = self.numeric(n.Bits(self.draw.choice((9, 16, 32))), names, depth - 1)

        return self.binary(self.draw.choice(("<<", ">>")), operand, places)

    def division(self, type_: n.Bits, names: Names, depth: int) -> Text | None:
        """Return a division by a power of two, which is all that the target can do."""
        if type_.signed or type_.width < 2:
            return None
        power = 1 << self.draw.randrange(type_.width)
        right = Text(f"{type_.width}w{power}")

        return self.binary(self.draw.choice(("/", "%")), self.numeric(type_, names, depth), right)

    def unary(self, type_: n.Bits, names: Names, depth: int) -> Text:
        return self.prefix(self.draw.choice(("~", "-")), self.numeric(type_, names, depth))

    def slice(self, type_: n.Bits, names: Names, depth: int) -> Text | None:
        """Return some bits of a wider expression."""
        if type_.signed:
            return None
        if not self.for_p4c and self.draw.random() < 0.3:
            source: n.Bits = n.Bits(max(self.width(), type_.width), True)
            inner = self.numeric(source, names, depth)
        else:
            source, inner = self.any_bits(names, depth, least=type_.width)

        spare = source.width - type_.width
        low = self.draw.choice((0, spare, self.draw.randrange(spare + 1)))

        return self.sliced(inner, low + type_.width - 1, low)

    def concatenation(self, type_: n.Bits, names: Names, depth: int) -> Text | None:
        """Return two expressions side by side."""
        if type_.width < 2:
            return None
        low = self.draw.randrange(1, type_.width)
        # The left side decides whether the result has a sign.
        high_part = self.numeric(n.Bits(type_.width - low, type_.signed), names, depth)
        low_part = self.numeric(n.Bits(low, type_.signed), names, depth)

        return self.binary("++", high_part, low_part)

    def conversion(self, type_: n.Bits, names: Names, depth: int) -> Text:
        """Return a cast from another type."""
        roll = self.draw.random()
        if roll < 0.25 and not self.for_p4c:
            # The same bits with the other sign.
            opposite = n.Bits(type_.width, not type_.signed)
            return self.cast(type_, self.numeric(opposite, names, depth))

        if type_ == n.Bits(1) and roll < 0.6:
            return self.cast(type_, self.truth(names, depth))
        serial = [enum for enum in self.enums if enum.below is not None]
        if roll < 0.35 and serial and not type_.signed:
            enum = self.draw.choice(serial)
            assert enum.below is not None
            below = self.cast(enum.below, self.member(enum, names, depth))
            return below if enum.below == type_ else self.cast(type_, below)

        if type_.signed:
            return self.cast(type_, self.numeric(n.Bits(self.width(), True), names, depth))
        return self.cast(type_, self.any_bits(names, depth)[1])

    def choice(self, type_: Type, names: Names, depth: int) -> Text:
        """Return `condition ? a : b`."""
        condition = self.truth(names, depth - 1)
        then = self.expression(type_, names, depth - 1)
        otherwise = self.expression(type_, names, depth - 1)
        whole = (
            f"{self.inside(condition, LOOSEST + 1)} ? {self.inside(then, LOOSEST + 1)} : "
            f"{self.inside(otherwise, LOOSEST + 1)}"
        )

        return Text(whole, LOOSEST)

    def called(self, type_: Type, names: Names, depth: int) -> Text | None:
        fitting = [item for item in names.functions if item.returns == type_]
        return self.call(self.draw.choice(fitting), names, depth) if fitting else None

    def call(self, function: Callable_, names: Names, depth: int) -> Text | None:
        """Return a call; None where no variable fits an `out` parameter."""
        if not names.favourite and self.draw.random() < 0.7:
            names = self.entangled(names, [type_ for _, type_ in function.params])

        args = [self.argument(*param, names, depth) for param in function.params]
        if None in args:
            return None

        shown = list(map(str, args))
        # By name, in any order.
        if function.param_names and self.draw.random() < 0.25:
            pairs = zip(function.param_names, args, strict=True)
            shown = [f"{name} = {arg}" for name, arg in pairs]
            self.draw.shuffle(shown)

        return Text(f"{function.name}({', '.join(shown)})", POSTFIX)

    def argument(self, direction: str, type_: Type, names: Names, depth: int) -> str | None:
        if direction in ("out", "inout"):
            return self.place(type_, names, whole=direction == "inout", depth=depth - 1)

        touching = None
        if names.favourite and depth > 0 and self.draw.random() < 0.5:
            touching = self.touching(type_, names, depth - 1)
        # The variable itself, or an expression of it.
        if touching is None and names.favourite:
            depth = min(depth, self.draw.randrange(3))

        return (touching or self.expression(type_, names, depth)).source

    def entangled(self, names: Names, types: Sequence[Type] = ()) -> Names:
        """Return names of which one variable is read and changed more often than others."""
        fitting = [
            item
            for item in names.variables
            if item.writable
            and (not types or item.type in types)
            and (not item.guard or item.guard in names.valid)
        ]
        return replace(names, favourite=self.draw.choice(fitting).source) if fitting else names

    def touching(self, type_: Type, names: Names, depth: int) -> Text | None:
        """Return an expression of a type, with a call that changes the favourite variable."""
        kinds = [item.type for item in names.variables if item.source == names.favourite]
        fitting = [
            item
            for item in names.functions
            if isinstance(item.returns, n.Bits)
            and any(way in ("out", "inout") and kind in kinds for way, kind in item.params)
        ]
        made = self.call(self.draw.choice(fitting), names, depth) if fitting else None
        if made is None:
            return None

        function = next(item for item in fitting if made.source.startswith(f"{item.name}("))
        assert isinstance(function.returns, n.Bits)
        return self.turned(made, function.returns, type_)

    def effect(self, type_: n.Bits, names: Names, depth: int) -> Text | None:
        """Return `v op f(v)`, where the call changes the operand on its left."""
        fitting = [
            item
            for item in names.functions
            if item.returns == type_ and any(way in ("out", "inout") for way, _ in item.params)
        ]
        made = self.call(self.draw.choice(fitting), names, depth - 1) if fitting else None
        if made is None:
            return None
        inside = made.source.split("(", 1)[1]
        changed = [
            item
            for item in names.variables
            if isinstance(item.type, n.Bits)
            and item.type.signed == type_.signed
            and (not item.guard or item.guard in names.valid)
            and item.source in inside
        ]
        if not changed:
            return made
        operand = self.cast(type_, Text(self.draw.choice(changed).source, POSTFIX))
        pair = (operand, made) if self.draw.random() < 0.8 else (made, operand)

        return self.binary(self.draw.choice(("+", "-", "^", "|")), *pair)

    def place(self, type_: Type, names: Names, whole: bool = False, depth: int = 0) -> str | None:
        """Return a left-value: a variable, or a slice of a variable."""
        if isinstance(type_, n.Struct):
            return self.draw.choice(names.structs) if names.structs else None

        fitting = [
            item.source
            for item in names.variables
            if item.writable
            and item.type == type_
            and (not whole or not item.guard or item.guard in names.valid)
        ]
        if names.favourite in fitting and self.draw.random() < 0.7:
            return names.favourite
        if self.draw.random() < 0.15:
            lvalue = self.element(type_, names, depth)
            if lvalue is not None:
                return lvalue

        if isinstance(type_, n.Bits) and not type_.signed and self.draw.random() < 0.3:
            lvalue = self.part(type_, names)
            if lvalue is not None:
                return lvalue

        return self.draw.choice(fitting) if fitting else None

    def part(self, type_: n.Bits, names: Names) -> str | None:
        """Return a slice of a wider variable."""
        wider = [
            item
            for item in names.variables
            if item.writable
            and isinstance(item.type, n.Bits)
            and item.type.width > type_.width
            and (not item.guard or item.guard in names.valid)
        ]
        if not wider:
            return None
        favourites = [item for item in wider if item.source == names.favourite]
        item = self.draw.choice(favourites or wider)
        assert isinstance(item.type, n.Bits)
        low = self.draw.randrange(item.type.width - type_.width + 1)

        return f"{item.source}[{low + type_.width - 1}:{low}]"

    def element(self, type_: Type, names: Names, depth: int) -> str | None:
        """Return a field of an element with a computed index, often with effects."""
        if names.stack is None:
            return None
        fields = [name for name, kind in names.stack.fields if kind == type_]
        if not fields:
            return None

        stack = names.stack
        index = None
        if depth > 0 and self.draw.random() < 0.7:
            names = names if names.favourite else self.entangled(names)
            index = self.touching(stack.index, names, depth - 1)
        index = index or self.numeric(stack.index, names, depth)

        return f"{stack.source}[{index.source}].{self.draw.choice(fields)}"

    MADE: tuple[Callable[..., Text | None], ...] = (
        arithmetic,
        arithmetic,
        arithmetic,
        shift,
        division,
        unary,
        slice,
        slice,
        concatenation,
        concatenation,
        conversion,
        conversion,
        conversion,
        choice,
        called,
        effect,
    )

    # Truth

    def truth(self, names: Names, depth: int) -> Text:
        """Return a boolean expression."""
        if depth <= 0:
            term = self.variable(BOOL, names)
            if term is not None and self.draw.random() < 0.5:
                return term
            return self.comparison(names, 0)

        roll = self.draw.random()
        if roll < 0.5:
            return self.comparison(names, depth - 1)
        if roll < 0.7:
            op = self.draw.choice(("&&", "||"))
            return self.binary(op, self.truth(names, depth - 1), self.truth(names, depth - 1))

        if roll < 0.78:
            return self.prefix("!", self.truth(names, depth - 1))
        if roll < 0.84 and names.headers:
            return Text(f"{self.draw.choice(names.headers)}.isValid()", POSTFIX)
        if roll < 0.88:
            return self.cast(BOOL, self.numeric(n.Bits(1), names, depth - 1))
        if roll < 0.92:
            return self.choice(BOOL, names, depth)
        if roll < 0.95 and names.parser_error:
            received = Text(names.parser_error, POSTFIX)
            return self.binary(
                self.draw.choice(("==", "!=")), received, self.member(ERROR, names, 0)
            )

        term = self.called(BOOL, names, depth - 1)

        return term or Text(self.draw.choice(("true", "false")))

    def comparison(self, names: Names, depth: int) -> Text:
        """Return two sides of one type, compared."""
        if self.draw.random() < 0.15:
            kinds: tuple[Type, ...] = (BOOL, *self.enums)
            type_ = self.draw.choice(kinds)
            op = self.draw.choice(("==", "!="))
            first = self.expression(type_, names, depth)
            return self.binary(op, first, self.expression(type_, names, depth))

        numbers = [item.type for item in names.variables if isinstance(item.type, n.Bits)]
        compared_type = self.draw.choice(numbers) if numbers else self.bits()
        op = self.draw.choice(("==", "!=", "<", "<=", ">", ">="))

        return self.binary(op, *self.two(compared_type, names, depth))
