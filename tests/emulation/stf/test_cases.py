"""One test and its verdict: the difference, its place, and why a script cannot be run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ofan_p4.stf import run_case

Case = Callable[..., tuple[Path, Path]]
FRAME = "000000000001 000000000002 1234 1f0001 0fbeef 77"


def test_expected_packets_pass(case: Case) -> None:
    script = (
        "add ports standard_metadata.ingress_port:1 to(port:2)\n"
        f"packet 1 {FRAME}\n"
        "expect 2 ************ 000000000002 1234\n"
    )
    assert run_case(*case(script.replace("standard_metadata", "sm"))).status == "passed"


@pytest.mark.parametrize(
    ("expected", "detail"),
    [
        (
            "000000000001 000000000002 1234 1f0002",
            "line 3: packet 0 on port 2 differs at byte 16, in notes[0].sum (bits 120 to 135): "
            "expected 0002, found 0001",
        ),
        (
            "000000000001 000000000002 1234 1f0001 1f",
            "in notes[1].high (bits 136 to 139): expected 1, found 0",
        ),
        (
            FRAME.replace("77", "78"),
            "differs at byte 20, in payload (bits 160 to 167): expected 78, found 77",
        ),
        (f"{FRAME} 00", "has 21 bytes, expected 22"),
        (FRAME.replace(" 77", "$"), "has 21 bytes, expected 20"),
    ],
)
def test_the_first_difference_is_named_with_its_field(
    case: Case, expected: str, detail: str
) -> None:
    verdict = run_case(
        *case(f"add ports sm.ingress_port:1 to(port:2)\npacket 1 {FRAME}\nexpect 2 {expected}\n")
    )

    assert verdict.status == "failed"
    assert detail in verdict.detail


def test_the_caret_stands_under_the_first_different_digit(case: Case) -> None:
    script = (
        "setdefault ports to(port:2)\n"
        f"packet 1 {FRAME}\n"
        "expect 2 000000000001 000000000002 1234 1f0002\n"
    )
    _, expected_line, found_line, caret, headers = run_case(*case(script)).detail.split("\n")

    assert expected_line == "  expected 0000000000010000000000021234 1f0002"
    assert found_line == "  found    0000000000010000000000021234 1f0001 0fbeef 77"
    assert found_line[caret.index("^")] == "1" and expected_line[caret.index("^")] == "2"
    assert headers == "  headers  ethernet notes[0] notes[1] payload"


@pytest.mark.parametrize(
    ("script", "detail"),
    [
        ("packet 1 00\nexpect 1 00\n", "line 2: expected 1 packets on port 1, 0 left: 00"),
        (
            "setdefault ports to(port:3)\npacket 1 00\n",
            "port 3: expected 0 packets, 1 left; the first one too many: 00",
        ),
        ("packet 1 00\nexpect 4\n", "line 2: no packet left through port 4"),
        (
            "packet 1 00\ncheck_counter seen(0) packets == 2\n",
            "line 2: seen(0) has 1 packets, expected packets == 2",
        ),
        (
            "register_write cells 1 7\nregister_read cells 1 == 8\n",
            "line 2: cells[1] is 7, expected 8",
        ),
        (
            "counter_write seen 1 7 70\ncounter_read seen 1 == 7 71\n",
            "line 2: seen(1) has 7 packets and 70 bytes, expected [7, 71]",
        ),
        ("expect_log hello\n", "line 1: expected the log line 'hello', found None"),
    ],
)
def test_whatever_else_is_not_as_expected_fails(case: Case, script: str, detail: str) -> None:
    verdict = run_case(*case(script))
    assert (verdict.status, verdict.detail) == ("failed", detail)


@pytest.mark.parametrize(
    ("script", "detail"),
    [
        ("dance\n", "line 1: unknown command 'dance'"),
        ("add nowhere x:1 to(port:1)\n", "line 1: no table is called 'nowhere' (I.ports)"),
        ("add ports x:1 to(port:1)\n", "line 1: no key is called 'x' (sm.ingress_port)"),
        (
            "add ports sm.ingress_port:1 go(port:1)\n",
            "line 1: no action of I.ports is called 'go' (I.to, NoAction)",
        ),
        ("add ports sm.ingress_port:1 to()\n", "line 1: I.to takes port, found none"),
        (
            "add ports sm.ingress_port:1 to(port:512)\n",
            "line 1: I.to: port = 512 does not fit in 9 bits",
        ),
        (
            "add ports sm.ingress_port:512 to(port:1)\n",
            "line 1: sm.ingress_port: 512 does not fit in 9 bits",
        ),
        (
            "add ports sm.ingress_port:1 to(port:1) to(port:2)\n",
            "line 1: I.ports has no action selector: one action only",
        ),
        (
            "add ports to(port:1)\nadd ports to(port:1)\n",
            "line 2: an entry with this match already exists",
        ),
        ("remove ports sm.ingress_port:1\n", "line 1: no entry with this match"),
        ("check_counter seen(9)\n", "line 1: seen has no cell 9, only 0 to 1"),
        ("mc_node_associate 1 0\n", "line 1: no multicast group 1"),
    ],
)
def test_scripts_that_cannot_be_done_are_unsupported(case: Case, script: str, detail: str) -> None:
    verdict = run_case(*case(script))
    assert (verdict.status, verdict.detail) == ("unsupported", detail)


def test_a_program_that_the_compiler_refuses_is_unsupported(case: Case) -> None:
    verdict = run_case(*case("packet 1 00\n", body="hdr.ethernet.to = hdr.ethernet.to % 3;"))

    assert verdict.status == "unsupported"
    assert "with a power of two on the right" in verdict.detail


def test_a_packet_that_goes_round_for_ever_fails(case: Case) -> None:
    program, script = case("packet 1 00\n")
    text = program.read_text().replace(
        "inout standard_metadata_t sm) { apply {} }",
        "inout standard_metadata_t sm) { apply { recirculate_preserving_field_list(0); } }",
    )
    program.write_text(text.replace("to(511)", "to(2)"))

    assert run_case(program, script).detail == "a packet of port 1 goes round for ever"
