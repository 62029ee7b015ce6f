"""Every kind of fault once: `make drills` runs them by the hundred."""

import pytest

from tests.drills.__main__ import drills
from tests.drills.faults import FAULTS

pytestmark = [pytest.mark.root, pytest.mark.slow]


def test_accounts_balance_and_plans_are_held_after_every_kind_of_fault(tmp_path):
    seen = drills(len(FAULTS), seed=3, folder=tmp_path / "ofan")
    assert {name: drill.failures for name, drill in seen.items() if drill.failures} == {}
    assert all(drill.drills == 1 for drill in seen.values())
