"""The table of load balancers in the documentation is that of the code, a sentence for each."""

from pathlib import Path

import ofan
from fattree.policies import PAPER_POLICIES, POLICIES
from pages.balancers import table, written

PAGE = Path(ofan.__file__).parent / "docs" / "load-balancers.md"


def test_the_page_is_up_to_date() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == written(page), "make reference writes it again"
    assert table() in page


def test_each_has_one_sentence() -> None:
    assert len(PAPER_POLICIES) == 14
    for policy in POLICIES.values():
        assert policy.rule.endswith(".") and policy.rule.count(". ") == 0
        assert policy.rule[0].isupper() and 40 < len(policy.rule) < 140

    assert len({policy.rule for policy in POLICIES.values()}) == len(POLICIES)


def test_the_page_between_its_marks_alone_is_written() -> None:
    page = PAGE.read_text(encoding="utf-8")
    stale = page.replace(table(), "| old |\n")
    assert stale != page == written(stale)
