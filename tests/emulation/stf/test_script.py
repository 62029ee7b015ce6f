"""The STF format: the meaning of each line, and the errors for lines that mean nothing."""

from __future__ import annotations

import pytest

from ofan_p4.stf.script import (
    Add,
    Call,
    CheckCounter,
    Direct,
    Expect,
    Packet,
    Remove,
    ScriptError,
    SetDefault,
    parse_script,
)


def only(line: str) -> object:
    [command] = parse_script(line).commands
    return command


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("packet 3 00 0aBc", Packet(1, 3, b"\x00\x0a\xbc")),
        ("expect 3 00** AB", Expect(1, 3, "00**ab")),
        ("expect 3 00 $", Expect(1, 3, "00", is_whole=True)),
        ("expect 3", Expect(1, 3, None)),
        ("add t x:1 a()", Add(1, "t", None, (("x", "1"),), (Call("a", ()),))),
        (
            "add in.t 7 h.x:0x1*/4 y[3:0]:1->2 c.a(p:1, q:0b1) = $id",
            Add(
                1,
                "in.t",
                7,
                (("h.x", "0x1*/4"), ("y[3:0]", "1->2")),
                (Call("c.a", (("p", "1"), ("q", "0b1"))),),
                "$id",
            ),
        ),
        (
            'add t "odd name":1&&&2 a() b()',
            Add(1, "t", None, (("odd name", "1&&&2"),), (Call("a", ()), Call("b", ()))),
        ),
        ("remove all", Remove(1, None)),
        ("remove t 3 x:1", Remove(1, "t", 3, (("x", "1"),))),
        ("setdefault t a(x:1)", SetDefault(1, "t", Call("a", (("x", "1"),)))),
        ("check_counter c(3) bytes >= 0x10", CheckCounter(1, "c", "3", "bytes", ">=", 16)),
        ("check_counter c($id)", CheckCounter(1, "c", "$id", "packets", "==", 0)),
        ("meter_set_rates m 2 0.5:4 1:5", Direct(1, "meter_set_rates", ("m", "2", "0.5:4", "1:5"))),
        ("register_read r 2 == 7 # comment", Direct(1, "register_read", ("r", "2", "==", "7"))),
        ("value_set v 1&&&2 3", Direct(1, "value_set", ("v", "1&&&2", "3"))),
        ("expect_log x = # not a comment", Direct(1, "expect_log", ("x = # not a comment",))),
        ("WAIT", Direct(1, "wait", ())),
    ],
)
def test_a_line_is_read(line: str, command: object) -> None:
    assert only(line) == command


def test_blank_lines_and_comments_are_skipped_and_counted() -> None:
    [command] = parse_script("# first\n\n  # third\n  packet 1 aa\n").commands
    assert command == Packet(4, 1, b"\xaa")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("packet", "expected a port, found 'the end of the line'"),
        ("packet x 00", "expected a port, found 'x'"),
        ("packet 1 0", "an even number of hexadecimal digits"),
        ("packet 1 0*", "an even number of hexadecimal digits"),
        ("expect 1 0g", "an expected packet is hexadecimal digits"),
        ("expect 1 $00", "an expected packet is hexadecimal digits"),
        ("add t x:1", "expected an action, found 'the end of the line'"),
        ("add t x:1 a", "expected '(', found 'the end of the line'"),
        ("add t x:1 a(y 1)", "expected ':', found '1'"),
        ("add t x:? a()", "cannot read '? a()'"),
        ("add t a() = x y", "expected the end of the line, found 'y'"),
        ("setdefault", "expected a table"),
        ("check_counter c(1) octets == 3", "expected 'packets' or 'bytes'"),
        ("register_write r 1", "'register_write' takes 3 arguments or more, found 2"),
        ("frobnicate", "unknown command 'frobnicate'"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(line: str, message: str) -> None:
    with pytest.raises(ScriptError, match="line 2: ") as caught:
        parse_script(f"\n{line}\n")

    assert message in str(caught.value)
