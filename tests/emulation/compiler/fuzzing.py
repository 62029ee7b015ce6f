"""Texts that no programmer wrote, and the answers of the compiler and the switch.

python tests/emulation/compiler/fuzzing.py --seconds 300 --seed 1

tries random bytes, token soup and mutated programs, and prints the count of each answer. A
text must be answered by a program or by one CompileError, in time; a program must load in the
switch and survive packets.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType

from ofan_p4.compiler import CompileError, compile_source
from ofan_p4.softswitch.base.errors import PipelineError
from ofan_p4.softswitch.control.switch import Switch

HERE = Path(__file__).parent
CASES = HERE / "cases"
P4SRC = HERE.parents[2] / "p4src"
INCLUDES = (CASES / "include", CASES, P4SRC)
SECONDS = 20.0
TOKEN = re.compile(r'"[^"\n]*"|[A-Za-z_]\w*|\d\w*|[^\s\w]|\s+')
NUMBERS = (
    "0",
    "1",
    "-1",
    "8w255",
    "4294967296",
    "65535",
    "0x7fffffff",
    "1 << 200",
    "2s1",
    "8s-1",
    "0xffffffffffffffff",
    "2047",
)


class TooSlow(Exception):
    """The compiler took longer than any program of this size deserves."""


@cache
def sources() -> tuple[str, ...]:
    """Return the programs that are mutated: the cases, good and bad, and our own."""
    paths = [*sorted(CASES.glob("*.p4")), *sorted((CASES / "errors").glob("*.p4"))]
    own_texts = [path.read_text() for path in sorted(P4SRC.glob("*.p4"))]
    return tuple(
        [path.read_text().replace('"../include/', '"include/') for path in paths] + own_texts
    )


@cache
def pieces() -> tuple[str, ...]:
    """Return every token that the programs use."""
    return tuple(
        sorted(
            {token for text in sources() for token in TOKEN.findall(text) if not token.isspace()}
        )
    )


def random_bytes(rng: random.Random) -> str:
    """Return bytes as text, as a file with any content would be read."""
    return rng.randbytes(rng.randrange(400)).decode("latin-1")


def token_soup(rng: random.Random) -> str:
    """Return tokens of real programs in any order, with or without the frame of a real program."""
    soup = " ".join(rng.choice(pieces()) for _ in range(rng.randrange(120)))
    if rng.random() < 0.5:
        return soup

    head = (
        "control CaseIngress(inout headers_t hdr, inout metadata_t meta, "
        "inout standard_metadata_t standard) {\napply {"
    )

    return f'#include "include/begin.p4"\n{head}\n{soup}\n}} }}\n#include "include/end.p4"\n'


def mutated(rng: random.Random) -> str:
    """Return a real program with a few changes: characters, tokens, lines, numbers or parts."""
    text = rng.choice(sources())
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 6))):
        text = rng.choice((_tokens, _tokens, _numbers, _lines, _characters, _splice))(rng, text)

    return text


def _tokens(rng: random.Random, text: str) -> str:
    tokens = list(TOKEN.finditer(text))
    if not tokens:
        return text

    target = rng.choice(tokens)
    donor = rng.choice(tokens)
    new = rng.choice(("", target[0] * 2, donor[0], rng.choice(pieces())))

    return text[: target.start()] + new + text[target.end() :]


def _numbers(rng: random.Random, text: str) -> str:
    numbers = list(re.finditer(r"\b\d\w*\b", text))
    if not numbers:
        return text

    number = rng.choice(numbers)

    return text[: number.start()] + rng.choice(NUMBERS) + text[number.end() :]


def _lines(rng: random.Random, text: str) -> str:
    lines = text.split("\n")
    first = rng.randrange(len(lines))
    second = rng.randrange(len(lines))
    match rng.randrange(3):
        case 0:
            del lines[first]
        case 1:
            lines.insert(second, lines[first])
        case _:
            lines[first], lines[second] = lines[second], lines[first]

    return "\n".join(lines)


def _characters(rng: random.Random, text: str) -> str:
    index = rng.randrange(len(text) + 1)
    return (
        text[:index]
        + rng.choice(("", chr(rng.randrange(1, 0x250)), "\\", '"', "#", "\n#", "/*", "{", "}", "("))
        + text[index + rng.randrange(2) :]
    )


def _splice(rng: random.Random, text: str) -> str:
    donor_lines = rng.choice(sources()).split("\n")
    start = rng.randrange(len(donor_lines))
    lines = text.split("\n")
    index = rng.randrange(len(lines) + 1)

    return "\n".join(lines[:index] + donor_lines[start : start + rng.randint(1, 8)] + lines[index:])


KINDS = {"bytes": random_bytes, "tokens": token_soup, "mutated": mutated}


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise TooSlow where the body takes more processor time."""

    def late(_signal: int, _frame: FrameType | None) -> None:
        raise TooSlow(f"more than {seconds:g} s")

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)

    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def answer(text: str, rng: random.Random) -> str:
    """Return `program` or `diagnostic`; anything else is raised."""
    with limited(SECONDS):
        try:
            program = compile_source(text, str(CASES / "fuzz.p4"), INCLUDES)
        except CompileError as error:
            assert str(error).splitlines()[0]
            return "diagnostic"

        try:
            _survive(json.dumps(program.json).encode(), rng)
        except PipelineError as error:
            # The language knows no limit to a register array; memory does.
            if "is too large" not in str(error):
                raise

    return "program"


def _survive(source: bytes, rng: random.Random) -> None:
    """Load a program into the switch and send it random packets."""
    switch = Switch(0, lambda: 0, lambda low, _high: low, range(16))
    switch.load(source)
    for length in (0, 9, 80):
        waiting = switch.ingress(rng.randrange(16), rng.randbytes(length))
        for _ in range(50):
            if not waiting:
                break

            switch.egress(waiting.pop(0))
            waiting += switch.take_requeued()


def fuzz(seconds: float, seed: int, kind: str | None = None) -> Iterator[tuple[str, str, str]]:
    """Yield (kind, answer, text) until so much processor time is used; wrong is a traceback."""
    end = time.process_time() + seconds
    for number in range(1 << 62):
        if time.process_time() > end:
            return

        rng = random.Random(f"{seed}/{number}")
        chosen = kind or rng.choices(tuple(KINDS), (1, 2, 7))[0]
        text = KINDS[chosen](rng)

        try:
            yield chosen, answer(text, rng), text
        except Exception:
            yield chosen, traceback.format_exc(), text


def main() -> None:
    """Fuzz for a while, print the counts and every wrong answer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", choices=KINDS)
    options = parser.parse_args()
    counts: Counter[tuple[str, str]] = Counter()

    for kind, outcome, text in fuzz(options.seconds, options.seed, options.kind):
        good = outcome in ("program", "diagnostic")
        counts[kind, outcome if good else "WRONG"] += 1
        if not good:
            sys.stdout.write(f"--- {kind}\n{text}\n--- {outcome}\n")

    for (kind, outcome), count in sorted(counts.items()):
        sys.stdout.write(f"{kind:8} {outcome:10} {count}\n")


if __name__ == "__main__":
    main()
