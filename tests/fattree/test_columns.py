"""Every column of results is documented, and no other."""

from pathlib import Path

import ofan
from fattree.columns import COLUMNS, page
from fattree.record import Record


def test_every_field_of_a_record_has_a_meaning_and_no_other() -> None:
    assert list(COLUMNS) == list(Record.model_fields), "fattree/columns.py: a sentence for each"


def test_the_page_is_made_from_them() -> None:
    written = Path(ofan.__file__).parent / "docs" / "columns.md"
    assert written.read_text(encoding="utf-8") == page(), "make reference writes it again"
