"""Sections 9.3, 9.4 and 9.7 of the P4Runtime specification 1.4: array cells, direct ones."""

from __future__ import annotations

import pytest

from tests.emulation.softswitch.conformance.peer import action, entry, exact
from tests.emulation.softswitch.conformance.rules import (
    INVALID,
    KNOWN,
    NOT_FOUND,
    OK,
    OUT_OF_RANGE,
    Rule,
    delete,
    insert,
    modify,
    outcome,
    section,
)

DATA = "data { packet_count: 1 byte_count: 2 }"
CONFIG = "config { cir: 1 cburst: 2 pir: 3 pburst: 4 }"
BITS = "data { bitstring: '\\017' }"


def cell(kind: str, name: str, rest: str = "") -> str:
    """A counter, meter or register entry."""
    return f"{kind}_entry {{ {kind}_id: {name} {rest} }}"


def array(kind: str, name: str, data: str) -> list[Rule]:
    """Return the rules that hold for every array: `kind` of resource, its `name` and its `data`."""

    def at(index: int) -> str:
        return cell(kind, name, f"index {{ index: {index} }} {data}")

    return [
        modify(f"{kind}: MODIFY of a cell", at(3), OK),
        modify(f"{kind}: MODIFY of all cells", cell(kind, name, data), OK),
        insert(f"{kind}: no INSERT", at(3), INVALID),
        delete(f"{kind}: no DELETE", at(3), INVALID),
        modify(f"{kind}: a negative index", at(-1), INVALID),
        modify(f"{kind}: an index beyond the array", at(4), OUT_OF_RANGE),
        modify(f"{kind}: of the P4Info", cell(kind, "9", data), NOT_FOUND),
    ]


OF_KNOWN = "table_entry { table_id: $exact_table " + exact(5) + " }"
COUNTER = f"direct_counter_entry {{ {OF_KNOWN} {DATA} }}"

METERED = entry("metered_table", exact(5), action("police"))
OF_METERED = "table_entry { table_id: $metered_table " + exact(5) + " }"
METER = f"direct_meter_entry {{ {OF_METERED} {CONFIG} }}"

COUNTERS = section(
    "9.3",
    *array("counter", "$counted", DATA),
    modify("direct counter: of an existing entry", COUNTER, OK, given=[KNOWN]),
    modify("direct counter: no such entry", COUNTER, NOT_FOUND),
    insert("direct counter: no INSERT", COUNTER, INVALID, given=[KNOWN]),
    delete("direct counter: no DELETE", COUNTER, INVALID, given=[KNOWN]),
)

METERS = section(
    "9.4",
    *array("meter", "$metered", CONFIG),
    modify("direct meter: of an existing entry", METER, OK, given=[METERED]),
    modify("direct meter: no such entry", METER, NOT_FOUND),
    insert("direct meter: no INSERT", METER, INVALID, given=[METERED]),
    modify(
        "direct meter: a table without",
        f"direct_meter_entry {{ {OF_KNOWN} {CONFIG} }}",
        INVALID,
        given=[KNOWN],
    ),
    modify(
        "a two-rate meter has no eburst",
        cell("meter", "$metered", "config { cir: 1 pir: 1 eburst: 1 }"),
        INVALID,
    ),
    modify(
        "the committed rate is not above the peak",
        cell("meter", "$metered", "config { cir: 2 pir: 1 }"),
        INVALID,
    ),
    modify(
        "colour counters can only be cleared",
        cell("meter", "$metered", "counter_data { red { byte_count: 1 } }"),
        INVALID,
    ),
    modify(
        "direct meter: colour counters can only be cleared",
        f"direct_meter_entry {{ {OF_METERED} counter_data {{ red {{ byte_count: 1 }} }} }}",
        INVALID,
        given=[METERED],
    ),
)

REGISTERS = section(
    "9.7",
    *array("register", "$cells", BITS),
    modify(
        "register data in the format of its type",
        cell("register", "$cells", "data { bool: true }"),
        INVALID,
    ),
    modify(
        "register data within its width",
        cell("register", "$cells", "data { bitstring: '\\020\\000' }"),
        OUT_OF_RANGE,
    ),
)


@pytest.mark.parametrize("rule", [*COUNTERS, *METERS, *REGISTERS], ids=Rule.name)
def test_an_update_of_a_counter_meter_or_register(rule: Rule) -> None:
    """An update of a cell or direct resource ends with the code of its rule."""
    assert outcome(rule) == rule.code
