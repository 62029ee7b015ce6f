"""Whatever the text, the compiler answers with a program or with one CompileError."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emulation.compiler import CompileError, Program, compile_source
from emulation.compiler.diagnostics import Source
from emulation.compiler.syntax.lexer import tokenize

FOLDER = Path(__file__).parent / "cases"
SOURCES = [path.read_text() for path in sorted(FOLDER.glob("*.p4"))]
PIECES = sorted({token.text for text in SOURCES for token in tokenize(Source(text.replace("#", " "), [("x", 1)]))[:-1]})
BOUNDED = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))


def outcome(text: str) -> Program | CompileError:
    try:
        return compile_source(text, str(FOLDER / "fuzz.p4"))
    except CompileError as error:
        assert str(error)
        return error


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A valid program with a few tokens removed, repeated, swapped for others or cut off."""
    text = draw(st.sampled_from(SOURCES))
    for _ in range(draw(st.integers(1, 4))):
        spans = [token.span for token in tokenize(Source(text.replace("#", " "), [("x", 1)]))[:-1]]
        if not spans:
            break
        _, start, end = draw(st.sampled_from(spans))
        text = text[:start] + draw(st.sampled_from(["", text[start:end] * 2, *PIECES])) + text[end:]
    return text


@BOUNDED
@given(st.text(max_size=200))
def test_any_text_is_answered(text: str) -> None:
    assert isinstance(outcome(text), CompileError)


@BOUNDED
@given(st.lists(st.sampled_from(PIECES), max_size=80))
def test_any_sequence_of_tokens_is_answered(pieces: list[str]) -> None:
    outcome('#include "include/begin.p4"\n' + " ".join(pieces) + '\n#include "include/end.p4"\n')


@settings(BOUNDED, max_examples=150)
@given(mutated())
def test_mutated_programs_are_answered(text: str) -> None:
    outcome(text)
