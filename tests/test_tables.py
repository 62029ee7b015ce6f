"""Tables of pages are made from runs: each has its place, and a row has its runs' results."""

from pathlib import Path

import pytest

from benchmarks.tables import TABLES, Table, begin, end, kept, renewed, runs

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("name", TABLES)
def test_every_table_has_its_place_its_columns_and_its_rows(name: str) -> None:
    table = TABLES[name]
    page = (ROOT / table.page).read_text(encoding="utf-8")
    _, (head, rule, *rows) = kept(page, name)
    assert [cell.strip() for cell in head.split("|")[1:-1]] == list(table.columns)
    assert set(rule) <= set("|-: ")
    assert len(rows) == len(table.rows)


def test_a_table_is_put_in_the_place_of_the_old_one() -> None:
    table = Table("page.md", ("a", ""), {"x": lambda: ("1", ""), "y": lambda: ("2", "b")})
    text = table.text({key: row() for key, row in table.rows.items()})
    page = f"before\n{begin('t')}old -->\nold table\n{end('t')}\nafter\n"
    page_with_text = renewed(page, "t", text, "new")
    assert page_with_text.startswith("before\n") and page_with_text.endswith("\nafter\n")
    assert kept(page_with_text, "t") == ("new", ["| a | |", "|---|---|", "| 1 | |", "| 2 | b |"])
    assert renewed(page_with_text, "t", text, "new") == page_with_text


def test_a_page_without_the_table_is_refused() -> None:
    with pytest.raises(ValueError, match="no table t"):
        renewed("nothing", "t", "text", "new")


def test_a_row_is_what_its_runs_say() -> None:
    label, over, queue, dropped, _ = TABLES["contenders"].rows["ofan"]()
    page_with_text = runs("ofan", {})
    mean = sum(100 * record.increase for record in page_with_text) / 10
    assert label == "Ofan"
    assert over.startswith(f"{mean:.1f} ± ") and over.endswith(" %")
    longest = sum(record.max_queue_packets for record in page_with_text) / 10
    assert queue.startswith(f"{longest:.1f} ± ")
    assert dropped == f"{sum(record.dropped for record in page_with_text):,}"
