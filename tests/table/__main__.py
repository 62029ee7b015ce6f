"""Make the table again, by running every row on every network.

python -m tests.table               all rows; rows that Mininet accepts are not run
python -m tests.table PFC probes    rows with any of these words in their names, printed alone
python -m tests.table --mininet     run on Mininet, too (root; an hour)
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import click

from tests.table.networks import cells
from tests.table.page import PAGE, renewed, text_of
from tests.table.rows import rows


@click.command()
@click.argument("words", nargs=-1)
@click.option("--mininet", is_flag=True, help="Run what Mininet accepts, as root.")
def main(words: tuple[str, ...], mininet: bool) -> None:
    """Make the table of features and networks."""
    table: dict[str, dict[str, str]] = {}
    with TemporaryDirectory() as folder:
        for name, settings in rows(Path(folder)).items():
            if words and not any(word in name for word in words):
                continue

            table[name] = cells(settings, on_mininet=mininet)
            click.echo(f"{name}: {' | '.join(table[name].values())}")

    if words:
        click.echo(text_of(table))
        return

    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8"), text_of(table)), encoding="utf-8")


if __name__ == "__main__":
    main()
