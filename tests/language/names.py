"""Parts of a random expression: names that may be used at a place, and pieces of source."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tests.language import tree as n

# The level of text that needs no parentheses anywhere.
ATOM = 14
Type = n.Bits | n.Plain | n.Enum | n.Struct


@dataclass(frozen=True, slots=True)
class Text:
    """Source of an expression, and how tight it binds."""

    source: str
    level: int = ATOM


@dataclass(frozen=True, slots=True)
class Variable:
    """`guard` is the header that must be valid where the variable is read."""

    source: str
    type: Type
    writable: bool = True
    guard: str = ""


@dataclass(frozen=True, slots=True)
class Callable_:
    """A function, action or control that can be called; `params` are directions and types."""

    name: str
    params: tuple[tuple[str, Type], ...]
    returns: Type | None
    param_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Indexed:
    """A stack with elements that are reached by a computed index."""

    source: str
    index: n.Bits
    fields: tuple[tuple[str, n.Type], ...]


@dataclass(slots=True)
class Names:
    """The names that can be used at a place in the program."""

    variables: list[Variable] = field(default_factory=list)
    functions: list[Callable_] = field(default_factory=list)
    headers: list[str] = field(default_factory=list)
    valid: set[str] = field(default_factory=set)
    errors: tuple[str, ...] = ()
    parser_error: str = ""
    # Structs as a whole, which can be written to.
    structs: list[str] = field(default_factory=list)
    stack: Indexed | None = None
    # A variable that is read and changed more often than others.
    favourite: str = ""

    def inner(self) -> Names:
        """Return the names of an inner block."""
        return replace(
            self,
            variables=list(self.variables),
            valid=set(self.valid),
            structs=list(self.structs),
            favourite="",
        )


def show(type_: n.Type) -> str:
    """Return a type as source."""
    match type_:
        case n.Bits(width, signed):
            return f"{'int' if signed else 'bit'}<{width}>"
        case n.Plain(name) | n.Enum(name=name) | n.Struct(name=name):
            return name
        case n.Stack(element, size):
            return f"{element.name}[{size}]"
        case n.Varbit(width):
            return f"varbit<{width}>"

    raise ValueError(type_)
