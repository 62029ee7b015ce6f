"""Counts of vague words, the gate on them, and changes of words beside changes of code."""

from collections import Counter
from pathlib import Path

import pytest

from tests.words.__main__ import COUNTS, kept, risen, summary, today, write
from tests.words.counting import KINDS, count, rooms
from tests.words.trees import difference

PLAIN = '''"""Routes of a switch."""


def shortest(routes, limit):
    """Return the shortest route below the limit."""
    # The first of equals, so that runs are the same.
    best = min(routes)
    for route in routes:
        if route < limit:
            best = min(best, route)

    return best
'''


def test_plain_words_are_not_counted() -> None:
    counts = count(PLAIN)
    assert {kind: counts[kind] for kind in KINDS} == dict.fromkeys(KINDS, 0)
    # routes, limit, best twice, route
    assert counts["bindings"] == 5


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("best = min(routes)", "found = min(routes)", "names"),
        ("for route in routes", "for each in routes", "names"),
        ("(routes, limit)", "(routes, most)", "names"),
        ("Return the shortest route", "Return what is the shortest route", "what"),
        ("The first of equals", "What is first of equals", "what"),
        ("Return the shortest route", "Return the route that a table tells", "says"),
        ("Return the shortest route", "Return a route whose way is short", "who"),
        ("Return the shortest route", "Return the short one of routes", "one"),
        ("Return the shortest route", "How to find the shortest route", "openings"),
    ],
)
def test_a_vague_word_is_counted(old: str, new: str, kind: str) -> None:
    assert old in PLAIN
    assert count(PLAIN.replace(old, new, 1))[kind] == 1


@pytest.mark.parametrize(
    "text",
    ["Return one route.", "Return `what` as it is.", "Whatsoever is here.", "Return at most 3."],
)
def test_words_that_are_right_are_not_counted(text: str) -> None:
    counts = count(PLAIN.replace("Return the shortest route below the limit.", text))
    assert sum(counts[kind] for kind in KINDS) == 0


def test_a_count_that_rises_is_named_by_room_and_kind() -> None:
    before = {"sim": dict.fromkeys(KINDS, 2)}
    assert risen(before, {"sim": Counter(names=2, what=1)}) == []
    assert risen(before, {"sim": Counter(names=3)}) == ["sim: names 2 -> 3"]
    # A new room begins with none.
    assert risen(before, {"new": Counter(one=1)}) == ["new: one 0 -> 1"]


def test_counts_are_kept_by_folder(tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "a.py").write_text(PLAIN.replace("best", "found"))
    (tmp_path / "room" / "b.py").write_text(PLAIN.replace("best", "found"))
    counts = rooms(tmp_path, ["room/a.py", "room/b.py", "room/gone.py"])
    write(counts, tmp_path / "counts.csv")

    assert kept(tmp_path / "counts.csv") == {"room": {**dict.fromkeys(KINDS, 0), "names": 4}}


# `make check` counts them, too.
@pytest.mark.slow
def test_the_project_has_no_more_vague_words_than_it_had() -> None:
    now = today()
    assert risen(kept(), now) == []
    assert "product: names" in summary(now)
    assert COUNTS.stat().st_size < 10_000


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("best", "shortest_yet"),
        ("Return the shortest route below the limit.", "Return it."),
        ("    # The first of equals, so that runs are the same.\n", ""),
        ("for route in routes:\n        if route < limit:\n            best = min(best, route)",
         "for way in routes:\n        if way < limit:\n            best = min(best, way)"),
    ],
)  # fmt: skip
def test_other_words_are_no_difference(old: str, new: str) -> None:
    assert old in PLAIN
    assert difference(PLAIN, PLAIN.replace(old, new)) == ""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("best = min(best, route)", "best = min(best, limit)"),
        ("route < limit", "route <= limit"),
        # Callers may name a parameter.
        ("limit", "bound"),
        ("shortest(", "least("),
        ("    return best\n", "    return best + 0\n"),
        ("    return best\n", "    return route\n"),
        ("min(routes)", "max(routes)"),
        ("            best = min(best, route)", "            other = min(best, route)"),
    ],
)
def test_other_code_is_a_difference(old: str, new: str) -> None:
    assert old in PLAIN
    assert difference(PLAIN, PLAIN.replace(old, new)) != ""


def test_names_of_inner_functions_and_captures_are_own_variables() -> None:
    before = "def f(a):\n match a:\n  case [x, *y]:\n   return [z for z in y if z is x]\n"
    assert difference(before, before.replace("z", "item").replace("x", "first")) == ""
    assert difference(before, before.replace("z is x", "x is x")) != ""


def test_a_variable_that_hides_another_is_a_difference() -> None:
    before = "def f(a):\n b = a\n c = b\n return b, c\n"
    assert difference(before, before.replace("c", "b")) != ""
