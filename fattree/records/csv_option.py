"""The option --csv of every command: its name's ending, and only one option writes to stdout."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from fattree.records.tables import STDOUT

# A device or a file without an ending may be anything.
ENDINGS = (".csv", ".txt", "")


class CsvOption(click.Option):
    """The file for CSV; stdout is allowed only without --json, which also writes to stdout."""

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        """Return the option's value; raises UsageError and BadParameter."""
        value = opts.get("csv")
        if opts.get("as_json") and value == str(STDOUT):
            raise click.UsageError("--json and --csv - both write to stdout: give one of them")

        if isinstance(value, str):
            refuse_ending(Path(value), ENDINGS, "CSV", ctx, self)

        return super().handle_parse_result(ctx, opts, args)


def refuse_ending(
    path: Path, endings: tuple[str, ...], noun: str, ctx: click.Context, option: click.Parameter
) -> None:
    """Raise BadParameter for a file with a name that stands for another format than it gets."""
    if path.suffix.lower() not in endings:
        raise click.BadParameter(
            f"{path.name}: it gets {noun}, so its name must end in {endings[0]}",
            ctx=ctx,
            param=option,
        )
