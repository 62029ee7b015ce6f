"""Numbers as options: NaN would pass every check of a range, and infinity would never end."""

import math
from typing import Any

import click


class Finite(click.FloatRange):
    """A range of numbers, without NaN and infinity."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number; raises BadParameter."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is no finite number", param, ctx)

        return number
