"""Objects that generated code refers to by a short name."""

from __future__ import annotations

from typing import Any

from ofan_p4.softswitch.codegen import names


class Constants:
    """Hands out one name per object; the names are the parameters of the generated module."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self._names: dict[int, str] = {}

    def add(self, value: Any) -> str:
        """Return the name under which generated code finds `value`."""
        # By identity, because points of a program are equal only to themselves. The dictionary of
        # values keeps them alive, so that no id is given twice.
        name = self._names.get(id(value))
        if name is None:
            name = names.constant(len(self.values))
            self._names[id(value)] = name
            self.values[name] = value

        return name
