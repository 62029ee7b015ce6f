"""Errors in declarations name their exact place: types, annotations, parsers, functions."""

from __future__ import annotations

import pytest

from tests.emulation.compiler.marked import HEAD, assert_error_at_mark, statement, top

CASES = {
    "annotation without its body": (
        top("§@pkginfo\nconst bit<8> x = 0;"),
        "@pkginfo needs pairs 'key = value'",
    ),
    "annotation of a number": (top("§@name(4)\nvoid f() {}"), "@name needs one string"),
    "annotation computed wrongly": (
        top('@deprecated(§"a" | "b")\nvoid f() {}'),
        "'|' cannot be applied to string",
    ),
    "annotation with arguments": (top("§@hidden(1)\nvoid f() {}"), "@hidden has no arguments"),
    "structured annotation twice": (
        top("@dup[] §@dup[]\nvoid f() {}"),
        "annotation 'dup' is given twice",
    ),
    "structured annotation mixed": (top("@mix[a=4, §5]\nvoid f() {}"), "expected a key, found '5'"),
    "structured annotation of lists": (
        top("@odd[§{1, 2}]\nvoid f() {}"),
        "a structured annotation holds known integers, strings and booleans",
    ),
    "match kind in annotation": (
        top("struct s_t { §@match(1 + 1) bit<8> x; }"),
        "@match needs a match kind",
    ),
    "translation to nothing": (
        top('§@p4runtime_translation("", bool)\ntype bit<8> t;'),
        "@p4runtime_translation needs a URI and a width or 'string'",
    ),
    "translation to a width beyond P4Info": (
        top('§@p4runtime_translation("x", 4294967296)\ntype bit<8> t;'),
        "a width of 4294967296: at most 65,536 bits",
    ),
    "underscore as a field": (
        top("struct s_t { bit<8> §_; }"),
        "expected the name of a field, found '_'",
    ),
    "underscore as a constant": (
        top("const bit<8> §_ = 1;"),
        "expected the name of the constant, found '_'",
    ),
    "constructor with a result": (
        top("extern X { §void X(); }"),
        "the constructor of X returns no value",
    ),
    "method twice": (
        top("extern X { X(); void f(bit<8> a); §void f(bit<8> b); }"),
        "'f' is declared twice",
    ),
    "default of an out parameter": (
        top("extern void f(§out bit<8> x = 0);"),
        "an out parameter has no default",
    ),
    "default of an optional parameter": (
        top("extern void f(@optional §bit<8> x = 0);"),
        "an @optional parameter has no default",
    ),
    "default that is computed": (
        top("bit<8> g(in bit<8> a) { return a; }\nvoid f(in bit<8> x = §g(1)) {}"),
        "a default must be known at compile time",
    ),
    "extern with a direction": (
        top("extern X {}\ncontrol C(§in X x);"),
        "a parameter of type X has no direction",
    ),
    "string with a direction": (
        top("extern void f(§in string x);"),
        "a parameter of type string has no direction",
    ),
    "package with a direction": (
        top("control C();\npackage Pack(§in C c);"),
        "a constructor parameter has no direction",
    ),
    "generic union of tuples": (
        top("header_union U<T> { §tuple<T, T> t; }"),
        "a header_union cannot have a field of type tuple<T, T>",
    ),
    "header of a struct with a stack": (
        top("struct in_t { part_t[2] x; }\nheader h_t { §in_t x; }"),
        "a header cannot have a field of type in_t",
    ),
    "generic struct of itself": (
        top("struct box_t<T> { T x; }\ntypedef §box_t<box_t<bit<8>>> twice_t;"),
        "box_t cannot be an argument of itself",
    ),
    "type parameters of one name": (
        top("§struct s_t<T, T> { T x; }"),
        "'T' is already declared here",
    ),
    "enum of a type": (
        top("type bit<8> t;\nenum §t E { A = 1 }"),
        "an enum cannot be made of t",
    ),
    "tuple of nothing": (
        top("typedef tuple<§void> t;"),
        "a tuple cannot have a field of type void",
    ),
    "cast to a type of another width": (
        top("type bit<1> t;\nt f(in bit<2> a) { return (t) §a; }"),
        "cannot cast bit<2> to t",
    ),
    "generic function never called": (
        top("void f<T>(inout T a) {}\nvoid g<T>(in T b) { f(§b); }"),
        "the argument for inout parameter 'a' must be writable",
    ),
    "values of any type compared": (
        top("bool f<T>(in T a, in T b) { return §a == b; }"),
        "'==' cannot be applied to T",
    ),
    "type arguments of an action": (
        top("action a() {}\ncontrol C() { apply { a<§bit<8>>(); } }"),
        "this takes no type arguments",
    ),
    "width not inferred": (
        top("extern void f<T>(in T x);\ncontrol C() { apply { f(§5); } }"),
        "the width of this number cannot be inferred",
    ),
    "struct not inferred": (
        top("extern void f<T>(in T x);\ncontrol C() { apply { f(§{a = 8w1}); } }"),
        "cannot infer the type of 'x'",
    ),
    "string as a value": (
        top('extern void f<T>(in T x);\ncontrol C() { apply { f(§"a"); } }'),
        "a parameter of type string has no direction",
    ),
    "lastIndex in an action": (
        top("action a(in part_t[2] x) { bit<32> i = x.§lastIndex; }"),
        "'lastIndex' can be used in a parser only",
    ),
    "division by zero in an action": (
        top("action a(inout bit<8> x) { x = §x / 0; }"),
        "division by zero",
    ),
    "division of a negative number": (
        top("action a(inout bit<8> x) { x = §-5 % x; }"),
        "'%' is not defined for negative numbers",
    ),
    "extraction of a number": (
        top(
            "parser Q(packet_in p, out bit<8> x) {\n"
            "state start { §p.extract(x); transition accept; } }"
        ),
        "extract() needs a header, not bit<8>",
    ),
    "lookahead of a varbit": (
        top(
            "header v_t { varbit<8> x; }\nparser Q(packet_in p) {\n"
            "state start { v_t v = §p.lookahead<v_t>(); transition accept; } }"
        ),
        "v_t has no fixed width",
    ),
    "parser without an end": (
        top(
            "§parser Q(packet_in p) {\n"
            "state start { transition next; } state next { transition start; } }"
        ),
        "parser Q never reaches accept or reject",
    ),
    "value set of integers": (
        top("parser Q(packet_in p) { §value_set<int>(4) vs; state start { transition accept; } }"),
        "this is no value set: an element has no width",
    ),
    "value set of a size from the packet": (
        top(
            "parser Q(in bit<8> n) { §value_set<bit<8>>(n) vs; state start { transition accept; } }"
        ),
        "this is no value set: its size is not known",
    ),
    "enum compared with a number": (
        top("enum bit<4> N { A = 1 }\ncontrol C(in N e) { apply { switch (e) { §4w1: {} } } }"),
        "expected N, found bit<4>",
    ),
    "main of an extern": (top("extern X { X(); }\n§X() main;"), "'main' must be a package"),
    "open brace": (top("struct s_t { bit<8> x; §"), "expected a type, found end of file"),
    "unknown error": (top("const error e = error.§Strange;"), "error 'Strange' is not declared"),
    "field twice": (top("struct s_t { bit<8> x; §bit<8> x; }"), "field 'x' is declared twice"),
    "struct field missing": (
        top("struct s_t { bit<8> x; bit<8> y; } const s_t S = §{ x = 1 };"),
        "field 'y' is missing",
    ),
    "header with odd bits": (
        HEAD.replace("header part_t { bit<4> x;", "§header part_t { bit<5> x;")
        + statement("")[len(HEAD) :],
        "header part_t has 9 bits, but the target needs whole bytes",
    ),
    "function without return": (
        top("§bit<8> f(in bit<8> x) { if (x == 1) { return 2; } }"),
        "function 'f' can end without returning a value",
    ),
    "exit in function": (
        top("void f() { §exit; }"),
        "'exit' is allowed in controls and actions only",
    ),
    "unknown state": (
        top("parser Q(packet_in p) { state start { transition §nowhere; } }"),
        "state 'nowhere' is not declared",
    ),
    "no start": (
        top("§parser Q(packet_in p) { state first { transition accept; } }"),
        "parser Q has no state 'start'",
    ),
    "wrong number of keys": (
        top(
            "parser Q(packet_in p) { state start { "
            "transition select(8w1, 8w2) { §(1, 2, 3): accept; } } }"
        ),
        "select has 2 keys, found 3",
    ),
    "static assertion": (top('const bool OK = §static_assert(1 > 2, "no");'), "static_assert: no"),
    "wrong block": (
        statement("").replace("V1Switch(P(), V(), I(),", "V1Switch(P(), V(), §P(),"),
        "expected a control, found ig",
    ),
    "missing include": ('§#include "nothing.p4"\n', "cannot find the file to include: nothing.p4"),
    "error directive": ("#define X\n#ifdef X\n§#error stop here\n#endif\n", "#error stop here"),
}


@pytest.mark.parametrize(("marked", "message"), CASES.values(), ids=CASES)
def test_an_error_in_a_declaration(marked: str, message: str) -> None:
    assert_error_at_mark(marked, message)
