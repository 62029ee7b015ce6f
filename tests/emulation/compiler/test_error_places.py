"""Where errors are found, and how they are shown: included files, macros, line directives."""

from __future__ import annotations

from pathlib import Path

import pytest

from ofan_p4.compiler import CompileError, compile_file, compile_source, preprocessor
from tests.emulation.compiler.marked import HEAD, statement


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD, "the program does not instantiate 'main'"),
        (statement(f"hdr.data.a = {'(' * 5000}1{')' * 5000};"), "this is nested too deeply"),
    ],
    ids=["no main", "too deep"],
)
def test_an_error_of_the_whole_program(text: str, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        compile_source(text, "case.p4")

    assert message in caught.value.message


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
