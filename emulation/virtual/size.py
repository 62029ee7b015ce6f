"""The memory that a virtual network takes, so that a network that does not fit is refused."""

from emulation.errors import UnsupportedError
from fattree.experiment.model import Scenario
from fattree.files.memory import GIGABYTE, SHARE, available_bytes

MEGABYTE = 10**6
# Of a switch with its program, and of each of the destinations that its tables know, which grow
# with the edges. Measured with Ofan at k = 16 and 24: 180 and 547 MB in all.
SWITCH_BYTES = 0.42 * MEGABYTE
DESTINATION_BYTES = 650


def needed_bytes(scenario: Scenario) -> int:
    """Return about how much memory a scenario's virtual network takes."""
    tree = scenario.tree
    return round(tree.switches * (SWITCH_BYTES + DESTINATION_BYTES * 2 * tree.edges))


def refuse_too_large(scenario: Scenario, advice: str = ", or --force it") -> None:
    """Raise UnsupportedError where this machine has no memory for a virtual network.

    `advice` is the command's alternative to the simulator.
    """
    needed = needed_bytes(scenario)
    available = available_bytes()
    if available is not None and needed > SHARE * available:
        raise UnsupportedError(
            f"fabric of {scenario.tree.label}: a virtual network of {scenario.tree.switches:,}"
            f" switches takes about {needed / GIGABYTE:.0f} GB,"
            f" and {available / GIGABYTE:.0f} GB are free:"
            f" simulate it (ofan sim run){advice}"
        )
