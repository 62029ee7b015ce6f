"""Names as scripts write them: whole, or only their end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ofan_p4.stf.script import ScriptError


def find_named(line: int, kind: str, name: str, named: Iterable[tuple[str, Any]]) -> Any:
    """Return what has the name, or the only thing whose name ends with it."""
    pairs = list(named)
    # A whole name first, then whole components, then any end, as the format allows.
    exact = [item for known, item in pairs if known == name]
    suffix = [item for known, item in pairs if known.endswith(f".{name}")] or [
        item for known, item in pairs if known.endswith(name)
    ]
    found = exact or suffix

    if not found:
        known = ", ".join(known for known, _ in pairs) or "there is none"
        raise ScriptError(line, f"no {kind} is called '{name}' ({known})")

    if len(found) > 1:
        raise ScriptError(line, f"{kind} '{name}' is ambiguous")

    return found[0]


def key_name(line: int, names: list[str], name: str) -> str:
    """Return the key that a script means.

    `$0` is `[0]`, `valid` a validity bit, and leading parts may be left out.
    """
    head, mark, tail = name.partition("$")
    # `hdr$0.x` is `hdr[0].x`.
    digits = tail[: len(tail) - len(tail.lstrip("0123456789"))]
    wanted = f"{head}[{digits}]{tail[len(digits) :]}" if mark and digits else name
    spellings = [
        wanted,
        f"{wanted}.$valid$",
        f"{wanted}.isValid()",
        wanted.removesuffix("valid") + "$valid$",
    ]

    for spelling in spellings:
        if spelling in names:
            return spelling

    for spelling in (wanted, *spellings[3:], wanted.removesuffix("valid") + "isValid()"):
        for known in names:
            if known.endswith(f".{spelling}"):
                return known

    raise ScriptError(
        line, f"no key is called '{name}' ({', '.join(names) or 'the table has none'})"
    )
