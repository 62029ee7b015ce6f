"""The page's colours: marks with a meaning stand out from their background (WCAG 2, 1.4.11)."""

import re
from importlib import resources
from itertools import pairwise

import pytest

LEAST = 3.0
LEVELS = [f"l{level}" for level in range(8)]


def colours(scheme: str) -> dict[str, str]:
    """Return the colours of light or dark, by name."""
    css = (resources.files("emulation.live") / "page" / "page.css").read_text(encoding="utf-8")
    light, dark = css.split("@media (prefers-color-scheme: dark)", 1)
    part = light if scheme == "light" else dark.split("* {", 1)[0]
    return dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", part))


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour (WCAG 2)."""
    shares = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (
        share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(colour: str, other_colour: str) -> float:
    dim, bright = sorted((luminance(colour), luminance(other_colour)))
    return (bright + 0.05) / (dim + 0.05)


def test_contrast_is_that_of_the_standard() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", [*LEVELS, "dead", "focus", "accent", "soft", "rim"])
def test_links_and_the_ring_of_the_chosen_one_stand_out(scheme: str, name: str) -> None:
    palette = colours(scheme)
    assert contrast(palette[name], palette["card"]) >= LEAST


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_more_load_stands_out_more(scheme: str) -> None:
    palette = colours(scheme)
    steps = [contrast(palette[level], palette["card"]) for level in LEVELS]
    assert all(after > 1.15 * before for before, after in pairwise(steps))
