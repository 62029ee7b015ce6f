"""Parquet of other people's: tables and metadata come back; damage is a line, not the end."""

import io
import random
from contextlib import suppress
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from fattree.demand.workloads.file import COLUMNS, KEY
from fattree.files import parquet
from fattree.files.parquet import ParquetError, read_parquet
from fattree.files.parquet_footer import unpacked_bytes
from fattree.texts.shipped import EXPERIMENTS

FRAME = pl.DataFrame({"a": [1, 2], "b": ["x", None], "c": [[1], []]})


def packed(frame: pl.DataFrame = FRAME, **metadata: str) -> bytes:
    data = io.BytesIO()
    frame.write_parquet(data, metadata=metadata)
    return data.getvalue()


def test_tables_and_metadata_come_back_in_order() -> None:
    first, second = read_parquet([packed(said="x"), packed(FRAME.reverse())])
    assert first.frame.equals(FRAME) and first.metadata["said"] == "x"
    assert second.frame.equals(FRAME.reverse())


def test_a_table_of_many_pages_comes_back() -> None:
    content = (EXPERIMENTS / "step_405b.parquet").read_bytes()
    ((frame, metadata),) = read_parquet([content])
    assert frame.equals(pl.read_parquet(io.BytesIO(content)))
    assert list(frame.columns) == list(COLUMNS) and KEY in metadata


def test_the_first_that_is_none_is_told_behind_those_that_are() -> None:
    tables = read_parquet([packed(), b"no Parquet", packed()])
    assert next(tables).frame.equals(FRAME)
    with pytest.raises(ParquetError):
        next(tables)


def test_what_aborts_polars_is_one_line() -> None:
    """One of 20,000 damaged workloads at which Polars 2.1 aborts its process."""
    content = Path(__file__).with_name("aborts_polars.parquet").read_bytes()
    with pytest.raises(ParquetError) as caught:
        list(read_parquet([content]))

    assert len(str(caught.value).splitlines()) == 1


def test_a_kilobyte_of_zeros_takes_no_more_memory_than_there_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    content = packed(pl.DataFrame({"a": np.zeros(8_000_000, dtype=np.int64)}))
    assert len(content) < 50_000
    monkeypatch.setattr(parquet, "spare_bytes", lambda: 300 << 20)
    with pytest.raises(ParquetError):
        list(read_parquet([content]))

    monkeypatch.setattr(parquet, "spare_bytes", lambda: 2 << 30)
    ((frame, _),) = read_parquet([content])
    assert len(frame) == 8_000_000


@pytest.mark.parametrize(
    "columns",
    [
        {"a": np.zeros(1 << 24, dtype=np.int64)},
        {f"c{number}": np.zeros(1 << 18, dtype=np.int64) for number in range(64)},
        {"a": [[0] * (1 << 23)]},
    ],
    ids=["rows", "columns", "a list"],
)
def test_what_promises_hundreds_of_times_its_size_is_not_unpacked(
    columns: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    content = packed(pl.DataFrame(columns))
    monkeypatch.setattr(parquet, "READER", Path("no such process"))
    with pytest.raises(ParquetError, match=r"bytes and would unpack to \d+,\d+,\d+, more than 256"):
        list(read_parquet([content]))


def test_a_footer_promises_what_polars_finds() -> None:
    content = (EXPERIMENTS / "step_405b.parquet").read_bytes()
    frame = pl.read_parquet(io.BytesIO(content))
    values = 4 * len(frame) + int(frame["after"].list.len().clip(1).sum())
    # Beside 8 bytes a value are the bytes of its pages, which are packed less here.
    assert 8 * values < unpacked_bytes(content) < 2 * 8 * values


def test_footers_of_any_bytes_are_read_or_refused() -> None:
    draw = random.Random(2)
    whole = packed()
    for _ in range(3000):
        content = bytearray(whole)
        for _ in range(draw.randrange(1, 6)):
            content[draw.randrange(len(content))] = draw.randrange(256)

        with suppress(ValueError):
            assert unpacked_bytes(bytes(content)) >= 0


def test_damaged_files_are_read_or_told_in_a_line() -> None:
    draw = random.Random(1)
    whole = packed()
    for _ in range(12):
        content = bytearray(whole)
        for _ in range(draw.randrange(1, 4)):
            content[draw.randrange(len(content))] = draw.randrange(256)

        try:
            list(read_parquet([bytes(content)]))
        except ParquetError as error:
            assert len(str(error).splitlines()) == 1
