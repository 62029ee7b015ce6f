"""Measurements of a switch, as a table and as a picture."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement; rates are packets per second of the switch's CPU time, and of the clock."""

    where: str
    switch: str
    program: str
    size: str
    packets: int
    cpu_s: float
    wall_s: float
    lost: int = 0

    @property
    def per_cpu_s(self) -> float:
        """Packets per second of CPU."""
        return self.packets / self.cpu_s

    @property
    def per_s(self) -> float:
        """Packets per second."""
        return self.packets / self.wall_s


def draw(rows: list[Row], path: Path) -> None:
    """Draw the rates as bars, a panel for each way of measuring."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    shown = [row for row in rows if not row.program.startswith("acl")]
    places = list(dict.fromkeys(row.where for row in shown))
    figure, axes = plt.subplots(
        1, len(places), figsize=(4.5 * len(places), 3.2), squeeze=False, sharey=True
    )

    for axis, method in zip(axes[0], places, strict=True):
        series = list(dict.fromkeys((row.switch, row.size) for row in shown if row.where == method))
        for offset, (kind, size) in enumerate(series):
            values = {
                row.program: row.per_cpu_s / 1000
                for row in shown
                if (row.where, row.switch, row.size) == (method, kind, size)
            }

            width = 0.8 / len(series)
            axis.bar(
                [i + offset * width for i in range(len(values))],
                values.values(),
                width,
                label=f"{kind}, {size}",
            )

            axis.set_xticks([i + 0.4 - width / 2 for i in range(len(values))], list(values))

        axis.set_title(method)
        axis.legend(fontsize=7)

    # Room for the legend above the bars, for both panels.
    axes[0][0].set_ymargin(0.45)
    axes[0][0].set_ylabel("thousand packets per CPU second")
    figure.tight_layout()
    figure.savefig(path)


def table_of(rows: list[Row]) -> Iterator[str]:
    """Yield the lines of a table."""
    titles = f"{'per CPU s':>10} {'per s':>10} {'lost':>5}"
    yield f"{'where':<11} {'switch':<19} {'program':<32} {'frames':>8} {'packets':>10} {titles}"
    for row in rows:
        rates = f"{row.per_cpu_s:10,.0f} {row.per_s:10,.0f} {row.lost:5}"
        labels = f"{row.where:<11} {row.switch:<19} {row.program:<32} {row.size:>8}"
        yield f"{labels} {row.packets:10,} {rates}"
