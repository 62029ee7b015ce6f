"""Pictures in tests are drawn, but not rendered: that takes most of a test's time."""

from pathlib import Path

import pytest
from matplotlib.figure import Figure


def leave_unrendered(patch: pytest.MonkeyPatch) -> None:
    """Let pictures be empty files."""

    def save(_: Figure, folder: Path, stem: str) -> list[Path]:
        paths = [folder / f"{stem}.png", folder / f"{stem}.svg"]
        for path in paths:
            path.touch()

        return paths

    patch.setattr("emulation.outcomes.plots.save", save)


@pytest.fixture
def unrendered(monkeypatch: pytest.MonkeyPatch) -> None:
    leave_unrendered(monkeypatch)
