"""Generated code: the sample in docs/ is true, and the legend has every name."""

from __future__ import annotations

import builtins
import json
import re
from pathlib import Path
from typing import Any

import pytest

import p4src
from ofan_p4.compiler import compile_file
from ofan_p4.softswitch.codegen import names
from ofan_p4.softswitch.codegen.assembly import assemble
from ofan_p4.softswitch.codegen.loading import load
from tests.emulation.softswitch.sample import COMMAND, PAGE, names_in, sample
from tests.emulation.softswitch.test_loader_fuzz import rich_program

CASES = Path(__file__).parents[1] / "compiler" / "cases"
TERMS = [term for terms in names.LEGEND.values() for term in terms]
TELLING_CASES = (
    "action_selector",
    "arithmetic_saturating",
    "checksum_payload",
    "digests",
    "hash_custom",
    "dropping_and_copies",
    "log_messages",
    "old_calls",
    "shifts",
    "stack_last_index",
    "tables",
    "unions_in_stacks",
    "value_set_masks",
    "versioned_indices",
)


def test_the_sample_is_what_ofan_becomes() -> None:
    assert PAGE.read_text(encoding="utf-8") == sample(), f"write it again with: {COMMAND}"


def names_of(source: bytes) -> set[str]:
    """Return the names that a program's code uses, with tracing and without."""
    used: set[str] = set()
    for is_traced in (False, True):
        used |= names_in(assemble(load(source), is_traced).source)

    return used - set(dir(builtins))


@pytest.fixture(scope="module")
def all_names() -> set[str]:
    paths = [
        *(CASES / f"{name}.p4" for name in TELLING_CASES),
        *map(p4src.path, ("ofan", "adaptive")),
    ]

    sources = [json.dumps(compile_file(path).json).encode() for path in paths]
    return set[str]().union(*map(names_of, sources))


def test_every_name_is_in_the_legend(all_names: set[str]) -> None:
    strangers = {
        name for name in all_names if not any(re.fullmatch(t.pattern, name) for t in TERMS)
    }
    assert not strangers


def test_every_term_of_the_legend_is_a_name(all_names: set[str], program: Any) -> None:
    rich_program(program)
    quotient, rest = (program.op(op, "h.a", "h.c") for op in "/%")
    divisions = [program.call("assign", "h.a", value) for value in (quotient, rest)]
    program.run("divide", divisions, pipeline="egress")
    used_names = all_names | names_of(program.source())
    unused = [
        term.name for term in TERMS if not any(re.fullmatch(term.pattern, n) for n in used_names)
    ]

    assert not unused


def test_the_legend_has_every_name_once() -> None:
    listed = [term.name for term in TERMS]
    assert len(listed) == len(set(listed))
