"""A report's data are read back; damaged ones are a line that names the file."""

import shutil
from pathlib import Path

import polars as pl
import pytest

from reproduction.report.contents import figure
from reproduction.report.stored import MadeWith, stored
from sim.errors import StoreError

DATA = Path(__file__).parents[3] / "docs" / "report" / "data"
NAMES = ("baseline", "choices")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("made_with.json", *(f"{name}.parquet" for name in NAMES)):
        shutil.copy(DATA / name, tmp_path)

    return tmp_path


def rows_read(folder: Path) -> dict[str, int]:
    by_name = stored(map(figure, NAMES), MadeWith.read(folder), folder)
    return {name: len(data.records) for name, data in by_name.items()}


def test_all_rows_are_read(folder: Path) -> None:
    assert rows_read(folder) == {
        name: len(pl.read_parquet(folder / f"{name}.parquet")) for name in NAMES
    }


@pytest.mark.parametrize("kind", ["aborts", "short", "column", "text"])
def test_damage_is_one_line_with_the_file(folder: Path, kind: str) -> None:
    path = folder / "choices.parquet"
    match kind:
        case "aborts":
            aborts = Path(__file__).parents[2] / "fattree" / "aborts_polars.parquet"
            shutil.copy(aborts, path)
        case "short":
            path.write_bytes(path.read_bytes()[:-100])
        case "column":
            pl.read_parquet(path).drop("policy").write_parquet(path)
        case "text":
            deep = "[" * 100_000
            pl.read_parquet(path).with_columns(pl.lit(deep).alias("host.plb")).write_parquet(path)
            pl.read_parquet(path).with_columns(policy=pl.lit(deep)).write_parquet(path)

    with pytest.raises(StoreError, match=r"choices\.parquet: ") as caught:
        rows_read(folder)

    assert len(str(caught.value).splitlines()) == 1
