"""Names and their meanings: scopes of blocks, and places that can be written to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.language import tree as n
from tests.language.operators import overwrite, sliced
from tests.language.values import (
    UNDEFINED,
    Header,
    Stack,
    Struct,
    Union,
    defined,
    pattern,
    wrapped,
)


@dataclass(slots=True)
class Scope:
    """Names of a block: variables with their types, and its other declarations."""

    parent: Scope | None
    values: dict[str, Any] = field(default_factory=dict)
    types: dict[str, n.Type] = field(default_factory=dict)

    def holder(self, name: str) -> Scope:
        """Return the scope that declares a name."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope
            scope = scope.parent

        raise KeyError(name)

    def find(self, name: str) -> Any:
        return self.holder(name).values[name]

    def declare(self, name: str, type_: n.Type, value: Any) -> None:
        self.values[name] = value
        self.types[name] = type_


@dataclass(slots=True)
class Place:
    """Something that can be written to: an entry of a dict or list, or of a header's fields."""

    container: Any
    key: Any
    type: n.Type
    header: Header | None = None

    def get(self) -> Any:
        if self.header is not None and not self.header.valid:
            return UNDEFINED
        return self.container[self.key]

    def set(self, value: Any) -> None:
        # A write to a field of an invalid header has no effect that can be seen.
        if self.header is not None and not self.header.valid:
            return
        if isinstance(value, Struct | Header | Union | Stack):
            overwrite(self.container[self.key], value)
        else:
            self.container[self.key] = value


@dataclass(slots=True)
class Part:
    """A slice of a place."""

    whole: Place | Part
    high: int
    low: int

    @property
    def type(self) -> n.Type:
        return n.Bits(self.high - self.low + 1)

    def get(self) -> Any:
        return sliced(defined(self.whole.get()), self.high, self.low)

    def set(self, value: Any) -> None:
        old = self.whole.get()
        if old is UNDEFINED:
            return
        mask = ((1 << (self.high - self.low + 1)) - 1) << self.low
        bits = pattern(old) & ~mask | defined(value).value << self.low
        self.whole.set(wrapped(bits, old.width, old.signed))
