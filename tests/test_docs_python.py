"""docs/python.md: its blocks run in order and print the results on the page."""

import re
from pathlib import Path

import pytest

import ofan
from fattree.records.record import Record
from sim import Result, flow_frame, port_frame

PAGE = Path(ofan.__file__).parent / "docs" / "python.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_the_blocks_print_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    pairs = re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", TEXT, re.M | re.S)
    assert len(pairs) == TEXT.count("```python") >= 4
    for code, shown in pairs:
        exec(code, names)
        assert capsys.readouterr().out == shown

    result = names["result"]
    assert isinstance(result, Result)
    columns = {*flow_frame(result).columns, *port_frame(result).columns} - {"flow"}
    assert {name for name in columns if f"`{name}`" not in TEXT} == set()
    assert (tmp_path / "runs.sqlite").exists()


def test_records_have_the_fields_of_the_page() -> None:
    named = re.findall(r"`(\w+)`", TEXT[TEXT.index("A `Record` has") :].partition("##")[0])
    assert set(named) - {"Record", "results"} <= {*Record.model_fields, "parquet"}
