"""Names as scripts write them: whole, or only their end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ofan_p4.stf.script import ScriptError


def find_named(line: int, kind: str, name: str, named: Iterable[tuple[str, Any]]) -> Any:
    """Return the item of this name, or the only item with a name that ends with it."""
    pairs = list(named)
    # A whole name first, then whole components, then any end, as the format allows.
    exact = [item for offered, item in pairs if offered == name]
    suffix = [item for offered, item in pairs if offered.endswith(f".{name}")] or [
        item for offered, item in pairs if offered.endswith(name)
    ]
    matches = exact or suffix

    if not matches:
        offered = ", ".join(offered for offered, _ in pairs) or "there is none"
        raise ScriptError(line, f"no {kind} is called '{name}' ({offered})")

    if len(matches) > 1:
        raise ScriptError(line, f"{kind} '{name}' is ambiguous")

    return matches[0]


def key_name(line: int, names: list[str], name: str) -> str:
    """Return the key that a script means.

    `$0` is `[0]`, `valid` a validity bit, and leading parts may be left out.
    """
    head, mark, tail = name.partition("$")
    # `hdr$0.x` is `hdr[0].x`.
    digits = tail[: len(tail) - len(tail.lstrip("0123456789"))]
    normalized = f"{head}[{digits}]{tail[len(digits) :]}" if mark and digits else name
    spellings = [
        normalized,
        f"{normalized}.$valid$",
        f"{normalized}.isValid()",
        normalized.removesuffix("valid") + "$valid$",
    ]

    for spelling in spellings:
        if spelling in names:
            return spelling

    for spelling in (normalized, *spellings[3:], normalized.removesuffix("valid") + "isValid()"):
        for key in names:
            if key.endswith(f".{spelling}"):
                return key

    raise ScriptError(
        line, f"no key is called '{name}' ({', '.join(names) or 'the table has none'})"
    )
