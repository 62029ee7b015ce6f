"""Errors are named with their exact place, which the programs below mark with `§`."""

from __future__ import annotations

from pathlib import Path

import pytest

from ofan_p4.compiler import CompileError, compile_file, compile_source, preprocessor

HEAD = """#include <core.p4>
#include <v1model.p4>
header data_t { bit<8> a; bit<8> b; bit<16> c; }
header part_t { bit<4> x; bit<4> y; }
struct headers_t { data_t data; part_t[2] parts; }
struct meta_t { bit<8> m; bool flag; }
enum Colour { Red, Green }
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.data); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply {} }
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply {} }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
"""
TAIL = "V1Switch(P(), V(), I(), E(), V(), D()) main;\n"


def ingress(local: str, body: str) -> str:
    signature = "control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {"
    return f"{HEAD}{signature}\n{local}\napply {{\n{body}\n}} }}\n{TAIL}"


def statement(text: str) -> str:
    return ingress("", text)


def local(text: str, body: str = "") -> str:
    return ingress(text, body)


def top(text: str) -> str:
    return f"{HEAD}{text}\n"


TABLE = (
    "action go() {{}} action run(bit<8> x) {{}} "
    "table t {{ key = {{ hdr.data.a: exact; }} actions = {{ go; run; }} {} }}"
)

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
    "lists compared": (
        statement("bool b = §{1, 2} == {1, 2};"),
        "'==' cannot be applied to two lists",
    ),
    "verify in a control": (
        statement("§verify(meta.flag, error.NoError);"),
        "'verify' can be called in parsers only",
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
    "label behind default": (
        statement("switch (hdr.data.a) { default: {} §1: {} }"),
        "nothing can follow the label 'default'",
    ),
    "label twice": (
        statement("switch (hdr.data.a) { 1: {} §8w1: {} }"),
        "this label is given twice",
    ),
    "enum compared with a number": (
        top("enum bit<4> N { A = 1 }\ncontrol C(in N e) { apply { switch (e) { §4w1: {} } } }"),
        "expected N, found bit<4>",
    ),
    "main of an extern": (top("extern X { X(); }\n§X() main;"), "'main' must be a package"),
    "ranking without entries": (
        local('table t { actions = { NoAction; } largest_priority_wins = §"no"; }'),
        "'largest_priority_wins' must be bool",
    ),
    "missing semicolon": (
        statement("hdr.data.a = 1§}"),
        "expected ';' after a statement, found '}'",
    ),
    "missing operand": (statement("hdr.data.a = 1 + §;"), "expected an expression, found ';'"),
    "stray character": (statement("hdr.data.a = §`1;"), "unexpected character '`'"),
    "open string": (statement('log_msg(§"hello);'), "this string is never closed"),
    "open comment": (statement("§/* hdr.data.a = 1;"), "this comment is never closed"),
    "open brace": (top("struct s_t { bit<8> x; §"), "expected a type, found end of file"),
    "malformed number": (statement("hdr.data.a = §0x;"), "malformed number 0x"),
    "number too wide": (statement("hdr.data.a = §4w16;"), "16 does not fit in bit<4>"),
    "signed number too wide": (statement("int<4> x = §4s16;"), "16 does not fit in int<4>"),
    "unknown name": (statement("hdr.data.a = §nothing;"), "'nothing' is not declared"),
    "unknown field": (statement("hdr.data.§z = 1;"), "header data_t has no field 'z'"),
    "unknown type": (statement("§foo_t x;"), "unknown type 'foo_t'"),
    "unknown header": (statement("hdr.§ipv4.setValid();"), "struct headers_t has no field 'ipv4'"),
    "unknown function": (statement("§frobnicate(1);"), "'frobnicate' is not declared"),
    "unknown method": (statement("hdr.data.§fly();"), "data_t has no method 'fly'"),
    "unknown error": (top("const error e = error.§Strange;"), "error 'Strange' is not declared"),
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
    "return from control": (statement("return §1;"), "this cannot return a value"),
    "exit in function": (
        top("void f() { §exit; }"),
        "'exit' is allowed in controls and actions only",
    ),
    "break outside": (statement("§break;"), "'break' is allowed in a loop only"),
    "table in a loop at run time": (
        local(TABLE.format(""), "for (bit<8> i = 0; i != hdr.data.a; i = i + 1) { §t.apply(); }"),
        "a table cannot be applied in an action or in a loop that is not unrolled",
    ),
    "unknown action": (
        local("table t { actions = { §nothing; } }"),
        "action 'nothing' is not declared",
    ),
    "action twice": (
        local("action a() {} table t { actions = { a; §a; } }"),
        "action 'a' is listed twice",
    ),
    "no actions": (local("table §t { key = { hdr.data.a: exact; } }"), "table t has no 'actions'"),
    "unknown match kind": (
        local("table t { key = { hdr.data.a: §fuzzy; } actions = { NoAction; } }"),
        "match kind 'fuzzy' is not declared",
    ),
    "two lpm keys": (
        local("table t { key = { hdr.data.a: lpm; §hdr.data.b: lpm; } actions = { NoAction; } }"),
        "a table can have one lpm key only",
    ),
    "key without name": (
        local("table t { key = { §hdr.data.a + 1: exact; } actions = { NoAction; } }"),
        'this key is an expression and needs an annotation @name("...")',
    ),
    "unknown property": (
        local(TABLE.format("§colour = 3;")),
        "table property 'colour' is not supported",
    ),
    "foreign default": (
        local("action other() {} " + TABLE.format("default_action = §other();")),
        "action 'other' is not in the table's list of actions",
    ),
    "default without data": (
        local(TABLE.format("default_action = §run();")),
        "the argument for 'x' is missing",
    ),
    "entry with too many keys": (
        local(TABLE.format("const entries = { §(1, 2): go(); }")),
        "the table has 1 keys, found 2",
    ),
    "mask in exact key": (
        local(TABLE.format("const entries = { §1 &&& 3: go(); }")),
        "a key of kind 'exact' cannot match this",
    ),
    "priorities of exact entries": (
        local(TABLE.format("§entries = { priority=1: 1: go(); }")),
        "entries of a table with exact and lpm keys only have no priorities",
    ),
    "table applied twice": (
        local(TABLE.format(""), "t.apply(); hdr.data.b = 1; §t.apply();"),
        "table 't' is applied more than once, which the target cannot do",
    ),
    "table applied in action": (
        local(TABLE.format("") + "action b() { §t.apply(); }"),
        "tables can be applied in the apply block of a control only",
    ),
    "unknown label": (
        local(TABLE.format(""), "switch (t.apply().action_run) { §stop: {} }"),
        "expected an action of table t or 'default'",
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
    "static assertion": (top('const bool OK = §static_assert(1 > 2, "no");'), "static_assert: no"),
    "wrong block": (
        statement("").replace("V1Switch(P(), V(), I(),", "V1Switch(P(), V(), §P(),"),
        "expected a control, found ig",
    ),
    "no main": (HEAD, "the program does not instantiate 'main'"),
    "missing include": ('§#include "nothing.p4"\n', "cannot find the file to include: nothing.p4"),
    "error directive": ("#define X\n#ifdef X\n§#error stop here\n#endif\n", "#error stop here"),
    "id of another kind": (
        local(
            "action a() {} @id(0x01000001) table §t { actions = { a; NoAction; } }", "t.apply();"
        ),
        "the @id of I.t has the wrong 8-bit prefix for a table",
    ),
    "too deep": (
        statement(f"hdr.data.a = {'(' * 5000}1{')' * 5000};"),
        "this is nested too deeply",
    ),
}
UNMARKED = ("no main", "too deep")


@pytest.mark.parametrize("name", CASES)
def test_error_names_its_place_and_reason(name: str) -> None:
    marked, message = CASES[name]
    with pytest.raises(CompileError) as caught:
        compile_source(marked.replace("§", ""), "case.p4")

    assert message in caught.value.message
    if name not in UNMARKED:
        before = marked[: marked.index("§")]
        found = caught.value.location
        assert (found.file, found.line, found.column) == (
            "case.p4",
            before.count("\n") + 1,
            len(before) - before.rfind("\n"),
        )


def test_diagnostic_shows_the_source_line_and_a_caret() -> None:
    with pytest.raises(CompileError) as caught:
        compile_source("struct s_t {\n\tbit<8> x;\n\tfoo_t y;\n}\n", "case.p4")

    head, line, caret = str(caught.value).split("\n")

    assert head == "case.p4:3:2: error: unknown type 'foo_t'"
    assert line == "    foo_t y;"
    assert caret == "    ^^^^^"


def test_error_in_an_included_file_names_that_file(tmp_path: Path) -> None:
    (tmp_path / "inner.p4").write_text("\n\nstruct s_t { bad_t x; }\n")
    program = tmp_path / "outer.p4"
    program.write_text('#include <core.p4>\n#include "inner.p4"\n')

    with pytest.raises(CompileError) as caught:
        compile_file(program)

    assert caught.value.location.file.endswith("inner.p4")
    assert (caught.value.location.line, caught.value.location.column) == (3, 14)


def test_error_after_a_macro_points_into_the_line_as_written() -> None:
    text = "#define WIDE 12345678\nconst bit<32> A = WIDE; const bit<32> B = nothing;\n"
    with pytest.raises(CompileError) as caught:
        compile_source(text, "case.p4")

    assert caught.value.location.column == text.split("\n")[1].index("nothing") + 1


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", None])
def test_unreadable_files_are_one_error(tmp_path: Path, content: bytes | None) -> None:
    program = tmp_path / "case.p4"
    if content is not None:
        program.write_bytes(content)

    with pytest.raises(CompileError, match="program"):
        compile_file(program)


def test_line_markers_rename_what_follows() -> None:
    marked = statement("hdr.data.a = §meta.flag;").replace(
        "hdr.data.a = §", '\n# 40 "original.p4" 1\n    hdr.data.a = '
    )
    with pytest.raises(CompileError) as caught:
        compile_source(marked, "marked.p4")
    where = caught.value.location
    assert (where.file, where.line, where.column) == ("original.p4", 40, 18)
    assert where.text == "    hdr.data.a = meta.flag;"


def test_line_directives_keep_the_file_where_they_name_none() -> None:
    marked = statement("\n#line 7\n\n    hdr.data.a = meta.flag;")
    with pytest.raises(CompileError) as caught:
        compile_source(marked, "marked.p4")
    assert caught.value.location[:2] == ("marked.p4", 8)


def test_columns_survive_comments_and_strings_of_several_lines() -> None:
    text = statement('log_msg("one\n\ntwo"); hdr.data.a = /* why */ meta.flag; // end')
    with pytest.raises(CompileError) as caught:
        compile_source(text, "columns.p4")
    where = caught.value.location
    assert where.text[where.column - 1 :].startswith("meta.flag; // end")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "".join(f"#define M{i} M{i + 1} M{i + 1}\n" for i in range(40)) + "#define M40 1\nM0",
            "this macro expands to too much",
        ),
        (
            "#define TWICE(x) x x\nconst bit<8> a = " + "TWICE(" * 40 + "1" + ")" * 40 + ";",
            "this macro expands to too much",
        ),
    ],
)
def test_macros_that_double_end_with_an_error(
    text: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A tenth, which takes a tenth of the time; without an end both would be the same.
    monkeypatch.setattr(preprocessor, "MAX_EXPANSION", preprocessor.MAX_EXPANSION // 10)
    with pytest.raises(CompileError) as caught:
        compile_source(text, "bomb.p4")
    assert caught.value.message == message


def test_a_file_that_includes_itself_ends_with_an_error(tmp_path: Path) -> None:
    (tmp_path / "self.p4").write_text('#include "self.p4"\n')
    with pytest.raises(CompileError) as caught:
        compile_file(tmp_path / "self.p4")
    assert caught.value.message == "files include each other without an end"


@pytest.mark.parametrize("version", ["-1", "20000101", "20990101"])
def test_versions_of_v1model_that_are_none(version: str) -> None:
    with pytest.raises(CompileError) as caught:
        compile_source(f"#define V1MODEL_VERSION {version}\n{statement('')}", "version.p4")
    assert caught.value.location.file == "v1model.p4"
    assert "no version of v1model" in caught.value.message
