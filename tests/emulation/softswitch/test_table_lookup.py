"""Lookups of generated code against a search through all entries."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

SETTINGS = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60
)
BYTE = st.integers(0, 255)
Pair = tuple[int, int]


def lookup_program(p: Any, *kinds: str) -> Any:
    """A table over one header field per kind; the action's number becomes the first byte."""
    names = [f"k{i}" for i in range(len(kinds))]
    p.header("h", out=8, **dict.fromkeys(names, 8))
    p.state("start", [p.extract("h")])
    action = p.action("found", [p.call("assign", "h.out", p.argument(0))], number=8)
    p.table(
        "t",
        {f"h.{name}": kind for name, kind in zip(names, kinds, strict=True)},
        [action],
        action,
        [0],
    )

    return p


def matches(kind: str, pair: Pair, value: int) -> bool:
    first, second = pair
    match kind:
        case "exact":
            return value == first
        case "lpm":
            return value >> 8 - second == first >> 8 - second
        case "range":
            return first <= value <= second
        case _:
            return value & second == first & second


def install(
    run: Any, entries: list[tuple[tuple[Pair, ...], int]]
) -> dict[int, tuple[tuple[Pair, ...], int]]:
    """Insert entries that are not duplicates; entry i answers i + 1."""
    table = run.switch.pipeline.tables[0]
    installed: dict[int, tuple[tuple[Pair, ...], int]] = {}
    for i, (match, priority) in enumerate(entries):
        if (match, priority) not in installed.values():
            table.insert(match, priority, 0, (i + 1,))
            installed[i + 1] = (match, priority)

    return installed


def answer(run: Any, *values: int) -> int:
    return int(run.send(bytes([0, *values]))[0][1][0])


PREFIX = st.integers(0, 8).flatmap(
    lambda length: BYTE.map(lambda v: (v >> 8 - length << 8 - length, length))
)


@SETTINGS
@given(
    entries=st.lists(
        st.tuples(st.tuples(BYTE.map(lambda v: (v % 2, 0)), PREFIX), st.just(0)), max_size=20
    ),
    probes=st.lists(st.tuples(st.integers(0, 2), BYTE), min_size=1, max_size=20),
    gone=st.sets(st.integers(1, 20)),
)
def test_exact_and_prefix(
    new_program: Any, bench: Any, entries: Any, probes: Any, gone: set[int]
) -> None:
    run = bench(lookup_program(new_program(), "exact", "lpm"))
    installed = install(run, entries)
    for number in gone & installed.keys():
        run.switch.pipeline.tables[0].delete(*installed.pop(number))
    for first, second in probes:
        hits = [
            (match[1][1], number)
            for number, (match, _) in installed.items()
            if matches("exact", match[0], first) and matches("lpm", match[1], second)
        ]
        assert answer(run, first, second) == max(hits, default=(0, 0))[1]


MASKED = st.tuples(BYTE, st.sampled_from([0, 0xFF, 0xF0, 0x81])).map(lambda p: (p[0] & p[1], p[1]))
RANGE = st.tuples(BYTE, BYTE).map(lambda p: (min(p), max(p)))


@SETTINGS
@given(
    keys=st.lists(st.tuples(MASKED, RANGE, PREFIX), max_size=15, unique=True),
    probes=st.lists(st.tuples(BYTE, BYTE, BYTE), min_size=1, max_size=20),
    order=st.randoms(use_true_random=False),
    gone=st.sets(st.integers(1, 15)),
)
def test_ternary_range_and_prefix_by_priority(
    new_program: Any, bench: Any, keys: Any, probes: Any, order: Any, gone: set[int]
) -> None:
    run = bench(lookup_program(new_program(), "ternary", "range", "lpm"))
    priorities = [*range(1, len(keys) + 1)]
    order.shuffle(priorities)
    installed = install(run, [*zip(keys, priorities, strict=True)])
    for number in gone & installed.keys():
        run.switch.pipeline.tables[0].delete(*installed.pop(number))
    for values in probes:
        hits = [
            (priority, number)
            for number, (match, priority) in installed.items()
            if all(map(matches, ("ternary", "range", "lpm"), match, values))
        ]
        assert answer(run, *values) == max(hits, default=(0, 0))[1]


@SETTINGS
@given(
    keys=st.lists(st.tuples(MASKED, MASKED, st.integers(1, 4)), max_size=20, unique=True),
    probes=st.lists(st.tuples(BYTE, BYTE), min_size=1, max_size=20),
    gone=st.sets(st.integers(1, 20)),
    changed=st.sets(st.integers(1, 20)),
)
def test_ternary_by_priority_and_age(
    new_program: Any, bench: Any, keys: Any, probes: Any, gone: set[int], changed: set[int]
) -> None:
    run = bench(lookup_program(new_program(), "ternary", "ternary"))
    table = run.switch.pipeline.tables[0]
    installed = install(run, [(key[:2], key[2]) for key in keys])
    for number in gone & installed.keys():
        table.delete(*installed.pop(number))
    for number in changed & installed.keys():
        action, _, _ = table.find(*installed[number])
        table.modify(*installed[number], action, (number + 100,))

    for values in probes:
        hits = [
            (-priority, number)
            for number, (match, priority) in installed.items()
            if all(map(matches, ("ternary", "ternary"), match, values))
        ]
        _, best = min(hits, default=(0, 0))
        assert answer(run, *values) == best + (100 if best in changed else 0)
