"""The STF format: one command per line, `#` begins a comment.

    packet PORT HEX...                        a frame comes in
    expect PORT [HEX...] [$]                  a frame goes out: `*` is any digit, `$` means that
                                              nothing follows it; without digits, at least one
                                              frame leaves through this port
    no_packet                                 nothing more is expected (an unexpected frame
                                              always fails)
    add TABLE [PRIORITY] KEY:MATCH... ACTION(NAME:VALUE, ...) [= ID]
    remove all | remove ID | remove TABLE [PRIORITY] KEY:MATCH...
    setdefault TABLE ACTION(NAME:VALUE, ...)
    check_counter NAME(INDEX | $ID) [packets|bytes CONDITION NUMBER]
    wait                                      one second passes
    mirroring_add SESSION PORT, mirroring_add_mc SESSION GROUP, mirroring_delete SESSION,
    mirroring_get SESSION
    mc_mgrp_create GROUP, mc_node_create RID PORT..., mc_node_update NODE PORT...,
    mc_node_associate GROUP NODE
    counter_read NAME INDEX, counter_write NAME INDEX PACKETS BYTES
    register_read NAME INDEX, register_write NAME INDEX VALUE, register_reset NAME
    meter_set_rates NAME INDEX RATE:BURST RATE:BURST, meter_array_set_rates NAME RATE:BURST
    RATE:BURST, meter_get_rates NAME INDEX

A MATCH is a number, `VALUE/LENGTH`, digits with `*`, and, unknown to the format's first users,
`VALUE&&&MASK` and `LOW->HIGH`. Also unknown to them: several actions in one `add` are the members
of a selector's group, `register_read` and `counter_read` end with `== VALUE` to check a cell,
`value_set NAME MATCH...` adds a member to a parser value set, and `expect_log TEXT` and
`expect_digest NAME VALUE...` name the program's log lines and its digests to the controller, in
order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

NAME = r'"[^"]+"|[A-Za-z_$][\w$]*(?:\[\d+(?::\d+)?\])?(?:\.[A-Za-z_$][\w$]*(?:\[\d+(?::\d+)?\])?)*'
NUMBER = r"0[xX][0-9a-fA-F*]+|0[bB][01*]+|0[oO][0-7*]+|\d+\.\d+|\d+"
TOKEN = re.compile(
    rf"\s*(?:(?P<name>{NAME})|(?P<number>{NUMBER})|(?P<mark>&&&|->|[=!<>]=|[-:,/()=<>]))"
)
HEX = re.compile(r"[0-9a-fA-F]*")
PATTERN = re.compile(r"[0-9a-fA-F*]*\$?")
CONDITIONS = ("==", "!=", "<=", "<", ">=", ">")


class ScriptError(Exception):
    """A line that cannot be read or done; the message begins with its number."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f"line {line}: {message}")
        self.line = line


class CheckFailed(Exception):
    """A failed check: the switch does something else than the script expects.

    The message is the reason.
    """


@dataclass(frozen=True, slots=True)
class Packet:
    """A frame that comes in."""

    line: int
    port: int
    frame: bytes


@dataclass(frozen=True, slots=True)
class Expect:
    """A frame that goes out.

    `digits` has `*` for any digit; None means that any frames leave through the port.
    """

    line: int
    port: int
    digits: str | None
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """An action and its arguments as written."""

    action: str
    arguments: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Add:
    """A table entry; several calls are the members of a group."""

    line: int
    table: str
    priority: int | None
    keys: tuple[tuple[str, str], ...]
    calls: tuple[Call, ...]
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Remove:
    """Removal of one entry, by id or by table and match, or (table None) of all."""

    line: int
    table: str | None
    priority: int | None = None
    keys: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class SetDefault:
    """A table's default action."""

    line: int
    table: str
    call: Call


@dataclass(frozen=True, slots=True)
class CheckCounter:
    """The expected count of a counter; `index` is a number or the id of an entry."""

    line: int
    name: str
    index: str
    unit: str
    condition: str
    value: int


@dataclass(frozen=True, slots=True)
class Direct:
    """A command of the switch's own command line: its word and its arguments as written."""

    line: int
    word: str
    arguments: tuple[str, ...]


Command = Packet | Expect | Add | Remove | SetDefault | CheckCounter | Direct


@dataclass(frozen=True, slots=True)
class Script:
    """The commands of one file."""

    commands: tuple[Command, ...]


class _Line:
    """The tokens of one line and a position among them."""

    def __init__(self, number: int, text: str) -> None:
        self.number = number
        self.tokens: list[tuple[str, str]] = []
        column = 0

        while column < len(text.rstrip()):
            matched = TOKEN.match(text, column)
            if matched is None:
                raise ScriptError(number, f"cannot read {text[column:].strip()!r}")

            kind = str(matched.lastgroup)
            self.tokens.append((kind, matched[kind].strip('"')))
            column = matched.end()

        self.position = 0

    def fail(self, expected: str) -> ScriptError:
        """Return the error for a token that stands here instead of the expected token."""
        return ScriptError(
            self.number, f"expected {expected}, found {self.peek()[1] or 'the end of the line'!r}"
        )

    def peek(self, ahead: int = 0) -> tuple[str, str]:
        """Return kind and text of a token without taking it."""
        index = self.position + ahead
        return self.tokens[index] if index < len(self.tokens) else ("end", "")

    def take(self, kind: str, expected: str) -> str:
        """Take a token of a kind."""
        next_kind, text = self.peek()
        if next_kind != kind:
            raise self.fail(expected)

        self.position += 1
        return text

    def accept(self, mark: str) -> bool:
        """Take a mark if it stands here."""
        if self.peek() != ("mark", mark):
            return False

        self.position += 1
        return True

    def expect(self, mark: str) -> None:
        """Take a mark that must stand here."""
        if not self.accept(mark):
            raise self.fail(repr(mark))

    def integer(self, expected: str) -> int:
        """Take a number without wildcards."""
        text = self.take("number", expected)
        try:
            return int(text, 0)
        except ValueError:
            raise ScriptError(self.number, f"expected {expected}, found {text!r}") from None

    def done(self) -> None:
        """Refuse further tokens."""
        if self.position < len(self.tokens):
            raise self.fail("the end of the line")


def parse_script(text: str) -> Script:
    """Read a script; raises ScriptError."""
    commands = []
    for number, raw in enumerate(text.splitlines(), 1):
        stripped = raw.strip()
        if stripped and not stripped.startswith("#"):
            commands.append(_command(number, stripped))

    return Script(tuple(commands))


def _command(number: int, text: str) -> Command:
    word, *rest = text.split(None, 1)
    word = word.lower()
    tail = rest[0] if rest else ""

    # Before the comment is cut off: a log line may have a `#`.
    if word == "expect_log":
        return Direct(number, word, (tail,))

    tail = tail.partition("#")[0]
    # Frames are digits with blanks anywhere, which the tokens of the others do not fit.
    if word in ("packet", "expect"):
        return _frame(number, word, tail)

    reader = READERS.get(word)
    line = _Line(number, tail)
    if reader is not None:
        command = reader(line)
        line.done()
        return command

    if word not in DIRECT:
        raise ScriptError(number, f"unknown command '{word}'")

    return _direct(word, line)


def _frame(number: int, word: str, tail: str) -> Command:
    """`packet PORT HEX...` or `expect PORT [HEX...] [$]`."""
    pieces = tail.split()
    port = "".join(pieces[:1])
    digits = "".join(pieces[1:])

    if not port.isdigit():
        raise ScriptError(number, f"expected a port, found {port or 'the end of the line'!r}")

    if word == "packet":
        if not HEX.fullmatch(digits) or len(digits) % 2:
            raise ScriptError(number, "a packet is an even number of hexadecimal digits")

        return Packet(number, int(port), bytes.fromhex(digits))

    if not PATTERN.fullmatch(digits):
        raise ScriptError(
            number,
            "an expected packet is hexadecimal digits and '*', with '$' at the end if it is whole",
        )

    if not digits:
        return Expect(number, int(port), None)

    return Expect(number, int(port), digits.rstrip("$").lower(), digits.endswith("$"))


def _keys(line: _Line) -> tuple[tuple[str, str], ...]:
    """`KEY:MATCH...`, as many as there are."""
    keys = []
    while line.peek()[0] == "name" and line.peek(1) == ("mark", ":"):
        name = line.take("name", "a key")
        line.expect(":")
        keys.append((name, _match(line)))

    return tuple(keys)


def _match(line: _Line) -> str:
    """`NUMBER`, `NUMBER/NUMBER`, `NUMBER&&&NUMBER` or `NUMBER->NUMBER`."""
    text = line.take("number", "a number")
    for mark in ("/", "&&&", "->"):
        if line.accept(mark):
            return f"{text}{mark}{line.take('number', 'a number')}"

    return text


def _priority(line: _Line) -> int | None:
    return line.integer("a priority") if line.peek()[0] == "number" else None


def _call(line: _Line) -> Call:
    """`ACTION(NAME:VALUE, ...)`."""
    action = line.take("name", "an action")
    line.expect("(")
    arguments: list[tuple[str, str]] = []

    while not line.accept(")"):
        if arguments:
            line.expect(",")

        name = line.take("name", "a parameter")
        line.expect(":")
        arguments.append((name, line.take("number", "a number")))

    return Call(action, tuple(arguments))


def _add(line: _Line) -> Command:
    table = line.take("name", "a table")
    priority = _priority(line)
    keys = _keys(line)
    calls = [_call(line)]

    while line.peek()[0] == "name":
        calls.append(_call(line))

    entry = line.take("name", "a name for the entry") if line.accept("=") else None
    return Add(line.number, table, priority, keys=keys, calls=tuple(calls), id=entry)


def _remove(line: _Line) -> Command:
    table = line.take("name", "'all', an entry or a table")
    if table == "all":
        return Remove(line.number, None)

    return Remove(line.number, table, _priority(line), _keys(line))


def _set_default(line: _Line) -> Command:
    return SetDefault(line.number, line.take("name", "a table"), _call(line))


def _check_counter(line: _Line) -> Command:
    name = line.take("name", "a counter")
    line.expect("(")
    index = line.take(
        line.peek()[0] if line.peek()[0] in ("name", "number") else "number",
        "an index or the name of an entry",
    )

    line.expect(")")
    if line.peek()[0] == "end":
        return CheckCounter(line.number, name, index, unit="packets", condition="==", value=0)

    unit = line.take("name", "'packets' or 'bytes'")
    condition = line.take("mark", "a comparison")
    if unit not in ("packets", "bytes") or condition not in CONDITIONS:
        raise ScriptError(
            line.number,
            f"expected 'packets' or 'bytes' and a comparison, found '{unit} {condition}'",
        )

    return CheckCounter(
        line.number, name, index, unit=unit, condition=condition, value=line.integer("a number")
    )


def _direct(word: str, line: _Line) -> Command:
    """Keep the arguments as they are written; `A:B`, `A&&&B` and the like are one argument."""
    arguments: list[str] = []
    while line.peek()[0] != "end":
        kind, text = line.peek()
        line.position += 1
        # `10:20` or `1&&&0xf` is one argument, although it is several tokens.
        joins = kind == "mark" and text != "=="

        if arguments and (joins or (len(arguments[-1]) > 0 and arguments[-1][-1] in ":/&>")):
            arguments[-1] += text
        else:
            arguments.append(text)

    if not DIRECT[word] <= len(arguments):
        raise ScriptError(
            line.number, f"'{word}' takes {DIRECT[word]} arguments or more, found {len(arguments)}"
        )

    return Direct(line.number, word, tuple(arguments))


READERS: dict[str, Callable[[_Line], Command]] = {
    "add": _add,
    "remove": _remove,
    "setdefault": _set_default,
    "check_counter": _check_counter,
}
# The least number of arguments of each other command.
DIRECT = {
    "wait": 0,
    "no_packet": 0,
    "mirroring_add": 2,
    "mirroring_add_mc": 2,
    "mirroring_delete": 1,
    "mirroring_get": 1,
    "mc_mgrp_create": 1,
    "mc_node_create": 2,
    "mc_node_update": 2,
    "mc_node_associate": 2,
    "counter_read": 2,
    "counter_write": 4,
    "register_read": 2,
    "register_write": 3,
    "register_reset": 1,
    "meter_get_rates": 2,
    "meter_set_rates": 4,
    "meter_array_set_rates": 3,
    "value_set": 2,
    "expect_digest": 1,
}


def numbers(line: int, arguments: Sequence[str]) -> list[int]:
    """Return arguments as integers; raises ScriptError."""
    try:
        return [int(argument, 0) for argument in arguments]
    except ValueError:
        raise ScriptError(line, f"expected numbers, found {' '.join(arguments)!r}") from None
