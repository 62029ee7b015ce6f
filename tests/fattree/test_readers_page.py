"""The fields of other people's files on the documentation's page are those of the readers."""

import re
from pathlib import Path

import pytest

import ofan
from fattree.files.fields import Use, names
from fattree.generators.chakra_fields import NODE_FIELDS
from fattree.generators.chakra_file import NODE
from fattree.generators.goal_schedule import TABLE as GOAL
from fattree.generators.goal_text import OPERATION
from fattree.generators.model_config import READ, WITHOUT_SIZE
from pages.readers import TABLES, text, written

PAGE = Path(ofan.__file__).parent / "docs" / "workloads.md"


def test_the_page_is_up_to_date() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == written(page), "make reference writes it again"
    assert text() in page


@pytest.mark.parametrize("name", TABLES)
def test_what_is_left_out_or_refused_has_a_reason_and_no_field_is_there_twice(name: str) -> None:
    table = TABLES[name]
    assert all(row.why for row in table if row.use is not Use.USED and row.names != ("any other",))
    fields = names(table, *Use)
    assert len(set(fields)) == len(fields)


def test_chakras_nodes_are_read_by_all_their_fields() -> None:
    declared = {name for name, *_ in NODE}
    assert declared == {name for name in names(NODE_FIELDS, *Use) if " " not in name}


def test_goals_words_are_those_of_its_expressions() -> None:
    operations = set(re.findall(r"\b[a-z]{3,}(?=\\s)", OPERATION))
    assert operations == {"calc", "send", "recv", "tag", "cpu", "nic"}
    assert operations | {"requires", "irequires"} <= set(names(GOAL, Use.USED))


def test_no_key_of_a_model_is_both_used_and_left_out() -> None:
    assert not [key for key in READ if WITHOUT_SIZE.fullmatch(key)]
