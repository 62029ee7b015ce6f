"""How many bytes of headers a program may put into a packet, which the next switch finds there."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from ofan_p4.softswitch.codegen.program import VALID, Header, Program
from ofan_p4.softswitch.native.reach import most_bytes

# A primitive call of BMv2's JSON.
Primitive: TypeAlias = Mapping[str, Any]
ADDS = ("add_header", "add_header_fast")
SETS = ("assign", "modify_field")
COPIES = ("assign_header", "copy_header")
# Whole stacks and unions: what becomes valid is not looked for.
ANY = ("push", "assign_header_stack", "assign_union", "assign_union_stack")


def added_bytes(program: Program) -> int | None:
    """Return so many bytes, None where there is no telling."""
    headers = {header.name: header for header in program.headers}
    added: dict[str, Header] = {}
    for action in program.actions.values():
        for primitive in action.primitives:
            name = _added(primitive, action.primitives)
            if name is None:
                continue
            if name not in headers:
                return None

            added[name] = headers[name]

    if any(header.is_variable and header.max_bytes == 0 for header in added.values()):
        return None

    return sum(map(most_bytes, added.values()))


def _added(primitive: Primitive, beside: Sequence[Primitive]) -> str | None:
    """Return the header that a primitive makes valid, None without one; "" where it may be any."""
    operation = primitive["op"]
    if operation in ANY:
        return ""
    if operation in ADDS:
        return _name(primitive, 0)
    if operation in SETS:
        target = primitive["parameters"][0].get("value")
        is_validity = isinstance(target, list) and target[-1] == VALID
        return str(target[0]) if is_validity else None
    if operation in COPIES and not _is_moved(_name(primitive, 1), beside):
        return _name(primitive, 0)

    return None


def _is_moved(source: str, beside: Sequence[Primitive]) -> bool:
    """Return whether the same action removes what it copies: a packet is no longer for that."""
    return any(each["op"] == "remove_header" and _name(each, 0) == source for each in beside)


def _name(primitive: Primitive, place: int) -> str:
    """Return the header that stands there, "" for an element of a stack."""
    value = primitive["parameters"][place].get("value")
    return value if isinstance(value, str) else ""
