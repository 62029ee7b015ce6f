"""Changes of links as a viewer sees them: their times, and the steps of the control plane."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fattree.routes.slow_links import at_rate
from fattree.shape.addressing import link_name
from fattree.shape.topology import FatTree

# For its name only: the command line of a held network reads `Change`s, and must start at once,
# without the controller's imports.
if TYPE_CHECKING:
    from controller.convergence import Convergence
    from controller.fabric_controller import LinkChange

# The number of shown changes: a link that flaps for days must fill neither a status nor a page.
RECENT = 50


@dataclass(frozen=True, slots=True)
class Change:
    """One change of links, and the times of the control plane's steps.

    None for a step that has not happened (yet).

    `planned_ps`: new tables are known; `installed_ps`: the last switch has them. `updates` were
    written to `switches` of them. `rate` is the share of their rates at which links have begun to
    run, None where they came up or went down.
    """

    links: tuple[str, ...]
    up: bool
    at_ps: int
    detected_ps: int | None = None
    planned_ps: int | None = None
    installed_ps: int | None = None
    updates: int = 0
    switches: int = 0
    rate: float | None = None

    @property
    def word(self) -> str:
        """Return the kind of the change, in a word."""
        if self.rate is None:
            return "mended" if self.up else "failed"

        return at_rate(self.rate)


def changes_of(tree: FatTree, convergences: "Sequence[Convergence]") -> tuple[Change, ...]:
    """Return the last changes that a control plane has heard of, failures and repairs apart."""
    return tuple(
        replace(
            change,
            detected_ps=seen.detected_ps,
            planned_ps=seen.planned_ps,
            installed_ps=seen.installed_ps,
            updates=seen.updates,
            switches=seen.switches,
        )
        for seen in convergences[-RECENT:]
        for change in sides(tree, seen.change, seen.at_ps)
    )


def sides(tree: FatTree, change: "LinkChange", at_ps: int) -> Iterator[Change]:
    """Yield the parts of a change: links that fail, links that come up, links at each rate."""
    shares = sorted({slow_link.share for slow_link in change.paced})
    sides: list[tuple[Iterable[int], bool, float | None]] = [
        (change.down, False, None),
        (change.up, True, None),
        *(
            (
                [slow_link.link for slow_link in change.paced if slow_link.share == share],
                share >= 1,
                share,
            )
            for share in shares
        ),
    ]
    for links, up, rate in sides:
        if links:
            yield Change(
                links=tuple(link_name(tree, link) for link in sorted(links)),
                up=up,
                rate=rate,
                at_ps=at_ps,
            )
