"""docs/p4-support.md lists the features that the cases show, no more and no less."""

from __future__ import annotations

from collections import Counter

from tests.emulation.compiler.support import AREAS, FOLDER, PAGE, page, rows


def test_page_is_made_of_the_cases() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make support`"


def test_every_case_names_its_area_and_a_feature_of_its_own() -> None:
    everything = [*FOLDER.glob("*.p4"), *(FOLDER / "errors").glob("*.p4")]
    features_by_area = rows(everything)

    assert set(features_by_area) == set(AREAS)

    names = Counter(
        f"{area}: {feature}"
        for area, features in features_by_area.items()
        for feature, _ in features
    )

    assert [name for name, count in names.items() if count > 1] == []
    assert sum(names.values()) == len(everything)
