"""Where keys stand: tomllib, which keeps no lines, says which keys there are."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fattree.texts.toml_places import KeyPath, _tokens, lines_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

EXPERIMENTS = sorted((Path(__file__).parents[2] / "experiments").rglob("*.toml"))
ODD = '''\
"odd key" = "a # b = [c]"   # d = 1
[ "t\\u0061ble" . 'x y' ]
text = """
k = 1
[no.table]"""
literal = \'\'\'
"k = 2\'\'\'
here = [ [0, 1],
  [2, 3], { a.b = 1, c = [
    "]" ] } ]
escaped = "a\\"]"
number = -0.5e3
[[jobs]]
[jobs.collective]
matrix = "a"
[[jobs]]
name = 1979-05-27T07:32:00Z
'''


def paths(value: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    if path:
        yield path

    inner = dict(enumerate(value)) if isinstance(value, list) else value
    for key, leaf in inner.items() if isinstance(inner, dict) else ():
        yield from paths(leaf, (*path, key))


@pytest.mark.parametrize(
    "text", [ODD, *(file.read_text(encoding="utf-8") for file in EXPERIMENTS[::5])]
)
def test_every_key_has_a_line_and_nothing_else_has(text: str) -> None:
    assert set(lines_of(text)) == set(paths(tomllib.loads(text)))


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("odd key",), 1),
        (("table", "x y"), 2),
        (("table", "x y", "here", 1, 1), 9),
        (("table", "x y", "here", 2, "c", 0), 10),
        (("table", "x y", "escaped"), 11),
        (("jobs",), 13),
        (("jobs", 0, "collective", "matrix"), 15),
        (("jobs", 1, "name"), 17),
    ],
)
def test_a_key_has_its_line(path: KeyPath, line: int) -> None:
    assert lines_of(ODD)[path] == line


@pytest.mark.parametrize("key", ["a.b.c", "a . b\t.c", '"a".b.c', "a.b . 'c'", 'a."b".c'])
def test_points_part_a_key_with_and_without_spaces(key: str) -> None:
    text = f"\n{key} = -0.5 # d.e\nf = 1979-05-27 07:32:00.5\n[z.{key}]\nx.y = 1"

    assert set(lines_of(text)) == set(paths(tomllib.loads(text)))
    assert lines_of(text)["a", "b", "c"] == 2


def test_a_long_key_is_one_word() -> None:
    # A file may have a hundred thousand of them, and its error waits for all of them.
    assert len(list(_tokens("a.b.c.d.e.f.g.h = 1.5"))) == 3
