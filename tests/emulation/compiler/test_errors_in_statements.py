"""Errors in statements and expressions name their exact place."""

from __future__ import annotations

import pytest

from tests.emulation.compiler.marked import assert_error_at_mark, local, statement

CASES = {
    "lists compared": (
        statement("bool b = §{1, 2} == {1, 2};"),
        "'==' cannot be applied to two lists",
    ),
    "verify in a control": (
        statement("§verify(meta.flag, error.NoError);"),
        "'verify' can be called in parsers only",
    ),
    "label behind default": (
        statement("switch (hdr.data.a) { default: {} §1: {} }"),
        "nothing can follow the label 'default'",
    ),
    "label twice": (
        statement("switch (hdr.data.a) { 1: {} §8w1: {} }"),
        "this label is given twice",
    ),
    "missing semicolon": (
        statement("hdr.data.a = 1§}"),
        "expected ';' after a statement, found '}'",
    ),
    "missing operand": (statement("hdr.data.a = 1 + §;"), "expected an expression, found ';'"),
    "stray character": (statement("hdr.data.a = §`1;"), "unexpected character '`'"),
    "open string": (statement('log_msg(§"hello);'), "this string is never closed"),
    "open comment": (statement("§/* hdr.data.a = 1;"), "this comment is never closed"),
    "malformed number": (statement("hdr.data.a = §0x;"), "malformed number 0x"),
    "number too wide": (statement("hdr.data.a = §4w16;"), "16 does not fit in bit<4>"),
    "signed number too wide": (statement("int<4> x = §4s16;"), "16 does not fit in int<4>"),
    "unknown name": (statement("hdr.data.a = §nothing;"), "'nothing' is not declared"),
    "unknown field": (statement("hdr.data.§z = 1;"), "header data_t has no field 'z'"),
    "unknown type": (statement("§foo_t x;"), "unknown type 'foo_t'"),
    "unknown header": (statement("hdr.§ipv4.setValid();"), "struct headers_t has no field 'ipv4'"),
    "unknown function": (statement("§frobnicate(1);"), "'frobnicate' is not declared"),
    "unknown method": (statement("hdr.data.§fly();"), "data_t has no method 'fly'"),
    "unknown member": (statement("Colour c = Colour.§Blue;"), "enum Colour has no member 'Blue'"),
    "width mismatch": (statement("hdr.data.a = §hdr.data.c;"), "expected bit<8>, found bit<16>"),
    "operand mismatch": (
        statement("hdr.data.c = §hdr.data.a + hdr.data.c;"),
        "'+' cannot be applied to bit<8> and bit<16>",
    ),
    "bool as number": (statement("hdr.data.a = §meta.flag;"), "expected bit<8>, found bool"),
    "number as condition": (statement("if (§hdr.data.a) {}"), "expected bool, found bit<8>"),
    "bad cast": (statement("bool b = (bool) §hdr.data.a;"), "cannot cast bit<8> to bool"),
    "assignment to constant": (
        local("const bit<8> C = 1;", "§C = 2;"),
        "this cannot be assigned to",
    ),
    "assignment to action data": (
        local("action a(bit<8> x) { §x = 1; }"),
        "this cannot be assigned to",
    ),
    "slice out of range": (
        statement("hdr.data.a[§8:0] = 1;"),
        "the upper bound of a slice must be between 0 and 7, found 8",
    ),
    "slice reversed": (
        statement("hdr.data.a[1:§2] = 1;"),
        "the lower bound of a slice must be between 0 and 1, found 2",
    ),
    "index out of range": (statement("hdr.parts[§2].x = 1;"), "index 2 is outside of 0 .. 1"),
    "division by zero": (statement("hdr.data.a = §8w1 / 0;"), "division by zero"),
    "division at run time": (
        statement("hdr.data.a = §hdr.data.a / hdr.data.b;"),
        "the right side of '/' must be known at compile time",
    ),
    "division by three": (
        statement("hdr.data.a = §hdr.data.a % 3;"),
        "the target can compute '%' of run-time values only with a power of two on the right",
    ),
    "negative shift": (
        statement("hdr.data.a = hdr.data.a << (§-1);"),
        "the number of bits to shift is negative",
    ),
    "shift of literal": (
        statement("hdr.data.a = §1 << hdr.data.b;"),
        "the left side of a shift by a run-time value needs a width",
    ),
    "too few arguments": (statement("§truncate();"), "'truncate' takes 1 arguments, found 0"),
    "wrong argument": (statement("truncate(§meta.flag);"), "expected bit<32>, found bool"),
    "argument not writable": (
        statement("random(§hdr.data.a + 1, 0, 3);"),
        "the argument for out parameter 'result' must be writable",
    ),
    "declared twice": (local("bit<8> x; bit<8> §x;"), "'x' is already declared here"),
    "return from control": (statement("return §1;"), "this cannot return a value"),
    "break outside": (statement("§break;"), "'break' is allowed in a loop only"),
    "clone in wrong place": (
        statement("clone(§CloneType.E2E, 1);"),
        "CloneType.E2E is possible in egress only",
    ),
    "random hash": (
        statement("hash(hdr.data.a, §HashAlgorithm.random, 8w0, { hdr.data.b }, 8w3);"),
        "the target has no hash algorithm 'random'; use the function random()",
    ),
    "hash without widths": (
        statement("hash(hdr.data.a, HashAlgorithm.crc32, 8w0, §{ 1 }, 8w3);"),
        "the number 1 needs a width here",
    ),
}


@pytest.mark.parametrize(("marked", "message"), CASES.values(), ids=CASES)
def test_an_error_in_a_statement(marked: str, message: str) -> None:
    assert_error_at_mark(marked, message)
