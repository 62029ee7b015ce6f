"""The option --csv of every command; only one option may write to stdout."""

from collections.abc import Mapping
from typing import Any

import click

from fattree.records.tables import STDOUT


class CsvOption(click.Option):
    """The file for CSV; stdout is allowed only without --json, which also writes to stdout."""

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        """Return the option's value; raises UsageError."""
        if opts.get("as_json") and opts.get("csv") == str(STDOUT):
            raise click.UsageError("--json and --csv - both write to stdout: give one of them")

        return super().handle_parse_result(ctx, opts, args)
