"""Command-line options that several commands share."""

from collections.abc import Callable, Sequence

import click

ALL = "all"
Names = tuple[str, ...]


def names(
    known: Sequence[str], least: int = 1
) -> Callable[[click.Context, click.Parameter, str | None], Names]:
    """Return the callback of an option that takes names separated by commas, each one of `known`.

    `all` is every one.

    The value is the names in their order, none where the option is not given; a name given twice is
    refused.
    """

    def convert(_: click.Context, __: click.Parameter, text: str | None) -> Names:
        if text is None:
            return ()

        wanted = tuple(known) if text == ALL else tuple(part.strip() for part in text.split(","))
        for name in wanted:
            if name not in known:
                raise click.BadParameter(f"{name!r} is not one of {', '.join(known)}")
            if wanted.count(name) > 1:
                raise click.BadParameter(f"{name} is named twice")

        if len(wanted) < least:
            raise click.BadParameter(
                f"{text!r}: at least {least} are needed, of {', '.join(known)}"
            )

        return wanted

    return convert
