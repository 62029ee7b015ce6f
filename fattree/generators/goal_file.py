"""GOAL schedules (Group Operation Assembly Language), as text and as LogGOPSim's binary form.

    num_ranks 2
    rank 0 {
    l1: calc 1000 cpu 0
    l2: send 4096b to 1 tag 7 cpu 0 nic 0
    l2 requires l1
    }
    rank 1 {
    l1: recv 4096b from 0 tag 7
    l2: calc 500
    l2 irequires l1
    }

`requires`: not before that is complete; `irequires`: not before that has started. Blanks may be
anywhere between words, or not, as in `rank 0{`.
"""

from fattree.errors import TrafficError
from fattree.files.memory import Room
from fattree.generators.goal_binary import read_binary, refuse_other_versions
from fattree.generators.goal_schedule import Schedule
from fattree.generators.goal_text import read_lines

MAGIC = 4223


def read_goal(content: bytes, source: str, memory: Room | None = None) -> Schedule:
    """Read a schedule in either form; raises TrafficError naming the line, or the rank."""
    memory = memory or Room()
    if content[:8] == MAGIC.to_bytes(8, "little"):
        return read_binary(content, source, memory)

    refuse_other_versions(content, source)
    try:
        return read_lines(content, source, memory)
    except UnicodeDecodeError:
        raise TrafficError(f"{source}: neither GOAL's text nor its binary form") from None
