"""Every column of results is documented, and no other."""

from pathlib import Path

import ofan
from fattree.records.record import Record
from fattree.sentences import sentences
from fattree.shape.topology import SWITCH_LAYERS
from pages.columns import page


def test_every_field_of_a_record_has_a_meaning_and_no_other() -> None:
    assert list(sentences(Record)) == list(Record.model_fields)


def test_the_layers_are_those_of_fabrics() -> None:
    assert f"each of {', '.join(SWITCH_LAYERS)} (" in sentences(Record)["max_queue_layers"]


def test_the_page_is_made_from_them() -> None:
    written = Path(ofan.__file__).parent / "docs" / "columns.md"
    assert written.read_text(encoding="utf-8") == page(), "make reference writes it again"
