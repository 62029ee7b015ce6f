"""Arguments of commands that name a file, or a file that comes with Ofan where there is none."""

from pathlib import Path

import click
from click.shell_completion import CompletionItem

from emulation.completion import complete_file_of_ours
from fattree.errors import FabricError
from fattree.texts.shipped import found


class ShippedFile(click.Path):
    """A path; `demo` is our experiments/demo.toml unless the user has a file of that name."""

    def __init__(self, folders: bool = False) -> None:
        super().__init__(path_type=Path, dir_okay=folders)

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Path:
        """Return the path of the file; raises UsageError where there is none."""
        try:
            path = Path(str(value))
            chosen = path if self.dir_okay and path.is_dir() else found(path)
            super().convert(chosen, param, ctx)
            return chosen
        except (FabricError, ValueError) as error:
            raise click.UsageError(str(error)) from None

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete names of ours, or files of the user's where none of ours fits."""
        # Where a file is asked for, too, click's script for bash drops all names before it.
        ours = complete_file_of_ours(ctx, param, incomplete)
        return ours or super().shell_complete(ctx, param, incomplete)
