"""Reading the tables of others' figures."""

import sys
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent


def table(file: str, name: str) -> Any:
    """Return a table of a file beside this module."""
    return tomllib.loads((HERE / file).read_text())[name]


def rows(file: str, name: str) -> list[dict[str, Any]]:
    """Return the rows of a table that has several."""
    table_rows: list[dict[str, Any]] = table(file, name)
    return table_rows


def name_of(row: dict[str, Any]) -> str:
    """Return a row's name among a test's parameters."""
    size = row.get("message_bytes")
    name = str(row.get("policy") or row.get("pattern") or row.get("model"))
    return f"{name}-{size >> 10}KiB" if size else name
