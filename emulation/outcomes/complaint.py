"""The line about a run that cannot be complete."""

from collections.abc import Sequence

from fattree.shape.addressing import host_name
from fattree.shape.topology import FatTree
from fattree.texts.portless import portless_words


def complaint(
    tree: FatTree,
    waiting: Sequence[tuple[int, int]],
    *,
    unroutable: int,
    misdirected: int,
    highest_port: int,
) -> str:
    """Return a line about the flows that are not complete, named by their hosts.

    It also has the number of packets without a port at a switch, how many of these were sent to
    ports that do not exist, and the highest of these ports.
    """
    named = ", ".join(
        f"{host_name(tree, source)} to {host_name(tree, destination)}"
        for source, destination in waiting[:3]
    )
    more = f" and {len(waiting) - 3} more" if len(waiting) > 3 else ""

    nowhere = (
        f"; the program sent {misdirected:,} packets to ports that do not exist"
        f" (the highest: {highest_port})"
        if misdirected
        else ""
    )
    without = unroutable - misdirected
    portless = f"; {portless_words(without)}" if without else ""
    return f"{len(waiting)} flows are not complete: {named}{more}{nowhere}{portless}"
