"""Programs in `cases/errors/` are refused where `// error: MESSAGE` stands, for that reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from ofan_p4.compiler import CompileError, compile_file

CASES = sorted(
    (Path(__file__).parent / "cases" / "errors").glob("*.p4"), key=lambda path: path.stem
)


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_case_is_refused_on_its_line_with_its_message(case: Path) -> None:
    lines = case.read_text().splitlines()
    line, message = next(
        (number, text.partition("// error: ")[2])
        for number, text in enumerate(lines, 1)
        if "// error: " in text
    )

    with pytest.raises(CompileError) as caught:
        compile_file(case)

    assert (Path(caught.value.location.file).name, caught.value.location.line) == (case.name, line)
    assert caught.value.message == message
