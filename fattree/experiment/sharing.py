"""A switch's memory that all its ports share, and how much of it a queue may hold.

The rule is the dynamic threshold of Choudhury and Hahne (*Dynamic queue length thresholds for
shared-memory packet switches*, IEEE/ACM Transactions on Networking, 1998): a queue may hold alpha
times what is free. Memory is what ports have by themselves without sharing, so that both kinds of
buffers cost a switch as much.
"""

from fractions import Fraction
from math import floor

from fattree.errors import ExperimentError
from fattree.experiment.base import MOST_BYTES
from fattree.experiment.model import Scenario
from fattree.experiment.pauses import is_paused, rooms, slow_ports
from fattree.units import ALPHA_BITS

# Choudhury and Hahne's example.
DEFAULT_ALPHA = 1


def is_shared(scenario: Scenario) -> bool:
    """Return whether a switch's ports share its memory."""
    return scenario.fabric.buffer == "shared"


def alpha(scenario: Scenario) -> int:
    """Return alpha times 2**16, rounded down; 0 where memory is not shared."""
    told = scenario.fabric.buffer_alpha
    wanted = Fraction(str(DEFAULT_ALPHA if told is None else told))
    return floor(wanted * 2**ALPHA_BITS) if is_shared(scenario) else 0


def memory_bytes(scenario: Scenario, switch: int) -> int:
    """Return how much memory a switch's ports share: all, but headroom where links are paused."""
    tree = scenario.tree
    if not is_paused(scenario):
        return scenario.fabric.queue_bytes * len(tree.ports(switch))

    return sum(room.pause_above for room in rooms(scenario, switch).values())


def refuse_unable_sharing(scenario: Scenario) -> None:
    """Raise ExperimentError for what does not go with shared memory, on whichever network."""
    fabric = scenario.fabric
    if not is_shared(scenario):
        if fabric.buffer_alpha is not None:
            raise ExperimentError('fabric.buffer_alpha needs fabric.buffer = "shared"')

        return

    reasons = (
        (scenario.transport.trimming, "transport.trimming: lanes would have to share it, too"),
        (not fabric.queue_bytes, "fabric.queue_bytes = 0: without a limit nothing is shared"),
    )
    for is_so, reason in reasons:
        if is_so:
            raise ExperimentError(f'fabric.buffer = "shared" does not go with {reason}')

    # One switch of each tier, and those of slow links: the others have the same ports.
    tree = scenario.tree
    firsts = {0, tree.first_agg} | ({tree.first_core} if tree.cores else set())
    slow = {switch for switch, _ in slow_ports(scenario)} if is_paused(scenario) else set()
    for switch in sorted(firsts | slow):
        memory = memory_bytes(scenario, switch)
        if memory > MOST_BYTES:
            raise ExperimentError(f"fabric.queue_bytes: {memory} bytes of a switch are too many")

        most = alpha(scenario) * memory >> ALPHA_BITS
        if most < max(scenario.data_bytes, scenario.ack_bytes):
            raise ExperimentError(
                f"fabric.buffer_alpha: {most} bytes of a memory of {memory} have no room for a"
                f" packet, which has {max(scenario.data_bytes, scenario.ack_bytes)} bytes"
            )
