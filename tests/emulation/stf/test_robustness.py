"""Scripts with any content are run or refused; nothing else happens."""

from __future__ import annotations

from contextlib import suppress
from functools import cache

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ofan_p4.compiler import compile_source
from ofan_p4.stf.bench import Bench
from ofan_p4.stf.script import DIRECT, READERS, CheckFailed, ScriptError, parse_script
from tests.emulation.stf.conftest import PROGRAM

WORDS = [*DIRECT, *READERS, "packet", "expect"]
PIECES = [
    "ports",
    "seen",
    "cells",
    "sm.ingress_port",
    "to",
    "port",
    "all",
    "packets",
    "bytes",
    "==",
    ":",
    "(",
    ")",
    "/",
    "&&&",
    "->",
    ",",
    "=",
]
NUMBERS = [
    "0",
    "1",
    "2",
    "511",
    "0x1*",
    "1.5",
    "0b11",
    "99999999999999999999",
    "0xff",
    "4294967296",
]
LINE = st.builds(
    lambda word, rest, glue: word + " " + glue.join(rest),
    st.sampled_from(WORDS),
    st.lists(st.sampled_from(PIECES + NUMBERS), max_size=9),
    st.sampled_from(["", " "]),
)
BOUNDED = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@cache
def program() -> dict[str, object]:
    return compile_source(PROGRAM.replace("BODY", "")).json


@BOUNDED
@given(st.lists(LINE, max_size=6))
def test_any_commands_are_done_or_refused(lines: list[str]) -> None:
    bench = Bench(program())
    for line in lines:
        with suppress(ScriptError, CheckFailed):
            for command in parse_script(line).commands:
                bench.run(command)


@BOUNDED
@given(st.text(max_size=120))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_script(text)
    except ScriptError as error:
        assert str(error).startswith("line ")
