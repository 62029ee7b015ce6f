"""The option --csv of every command: stdout has room for one kind of text."""

from collections.abc import Mapping
from typing import Any

import click

from fattree.records.tables import STDOUT


class CsvOption(click.Option):
    """Where a command writes CSV; to stdout only without --json, which writes there as well."""

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        """Return the option's value; raises UsageError."""
        if opts.get("as_json") and opts.get("csv") == str(STDOUT):
            raise click.UsageError("--json and --csv - both write to stdout: give one of them")

        return super().handle_parse_result(ctx, opts, args)
