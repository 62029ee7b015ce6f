"""The bytes of headers that a program may put into a packet, which the next switch receives."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from ofan_p4.softswitch.codegen.program import VALID, Header, Program
from ofan_p4.softswitch.native.reach import most_bytes

# A primitive call of BMv2's JSON.
Primitive: TypeAlias = Mapping[str, Any]
ADDS = ("add_header", "add_header_fast")
SETS = ("assign", "modify_field")
COPIES = ("assign_header", "copy_header")
# Whole stacks and unions: which headers become valid is not examined.
ANY = ("push", "assign_header_stack", "assign_union", "assign_union_stack")


def added_bytes(program: Program) -> int | None:
    """Return so many bytes, None where the program does not determine them."""
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
    """Return the header that a primitive makes valid, None without any; "" where it may be any."""
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
    """Return whether the same action removes the copied header: the packet does not grow."""
    return any(call["op"] == "remove_header" and _name(call, 0) == source for call in beside)


def _name(primitive: Primitive, parameter: int) -> str:
    """Return the header that stands there, "" for an element of a stack."""
    value = primitive["parameters"][parameter].get("value")
    return value if isinstance(value, str) else ""
