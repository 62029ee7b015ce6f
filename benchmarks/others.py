"""Files that others have made: which of those in a folder load, with how many bytes.

    python -m benchmarks.others FOLDER...

Connection matrices (.cm), topologies (.topo), GOAL schedules (.goal, and the .bin of such a file
beside it or below) and Chakra traces (PREFIX.0.et, ...) are read by the readers of a run. The bytes
or hosts of a text are counted a second time, by its words alone. Equal files count once.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import click

from fattree.demand.matrix_flows import read_connection_matrix
from fattree.errors import FabricError
from fattree.experiment.model import Scenario
from fattree.files.topo_file import fabric_of
from fattree.generators.chakra import chakra_graph
from fattree.generators.chakra_file import read_chakra
from fattree.generators.chakra_ranks import stretched
from fattree.generators.goal import goal_graph
from fattree.generators.goal_file import read_goal

# A packet a byte: packets of a flow are then the bytes of its message.
BYTE = 1


def numbers(pattern: str, text: str) -> list[int]:
    """Return the numbers that a pattern finds in the lines of a text, without comments."""
    return [int(number) for number in re.findall(pattern, re.sub("#.*", "", text), re.I | re.M)]


def matrix(path: Path) -> tuple[int, int]:
    """Return the bytes of a matrix as read and as its words say."""
    text = path.read_text(encoding="latin1")
    nodes = max(numbers(r"^\s*nodes\s+(\d+)", text), default=0)
    k = next(k for k in range(4, 1000, 2) if k**3 // 4 >= nodes)
    tree = Scenario.model_validate({"fabric": {"k": k}}).tree
    flows = read_connection_matrix(str(path), tree, BYTE, "ps")
    return int(flows.packets.sum()), sum(numbers(r"->.*\bsize\s+(\d+)", text))


def topology(path: Path) -> tuple[int, int]:
    """Return the hosts of a topology as read and as its words say."""
    text = path.read_text(encoding="latin1")
    tree = Scenario.model_validate({"fabric": fabric_of(text, str(path))}).tree
    return tree.hosts, max(numbers(r"^\s*nodes\s+(\d+)", text))


def schedule(path: Path) -> tuple[int, int]:
    """Return the bytes of a GOAL schedule as read and as the words of its text say."""
    goal = read_goal(path.read_bytes(), str(path))
    goal_graph(goal)
    texts = [path.with_suffix(".goal"), path.parent.parent / f"{path.stem}.goal"]
    text = next((file.read_text(encoding="latin1") for file in texts if file.is_file()), None)
    if text is None:
        return goal.total_bytes, goal.total_bytes

    statements = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
    return goal.total_bytes, sum(numbers(r"\bsend\s+(\d+)b", statements))


def trace(path: Path) -> tuple[int, int]:
    """Return the bytes of a Chakra trace as read, and once more: its form has no words."""
    chakra = read_chakra(str(path).removesuffix(".0.et"))
    # A single rank has no rank to send to.
    chakra_graph(stretched(chakra, 4) if len(chakra.ranks) == 1 else chakra)
    return chakra.total_bytes, chakra.total_bytes


KINDS: dict[str, tuple[str, Callable[[Path], tuple[int, int]]]] = {
    "connection matrices": (".cm", matrix),
    "topologies": (".topo", topology),
    "GOAL schedules": (".goal", schedule),
    "GOAL schedules in binary form": (".bin", schedule),
    "Chakra traces": (".0.et", trace),
}


def files(folders: Sequence[Path], suffix: str) -> Iterator[Path]:
    """Return the files of a kind, equal ones once."""
    digests = set[bytes]()
    for path in sorted(file for folder in folders for file in folder.rglob(f"*{suffix}")):
        content = hashlib.sha256(path.read_bytes()).digest() if path.is_file() else b""
        if content and content not in digests:
            digests.add(content)
            yield path


def outcome(path: Path, read: Callable[[Path], tuple[int, int]]) -> str:
    """Return why a file does not load, nothing if it does."""
    try:
        loaded, expected = read(path)
    except FabricError as error:
        # Files differ in places and numbers, reasons do not.
        reason = re.sub(r"^.*?(:\d+)?: ", "", str(error).replace(str(path), "x"))
        return re.sub(r"\d+", "N", reason)

    return "" if loaded == expected else f"wrong: {path} has {expected:,}, read were {loaded:,}"


def judged(folders: Sequence[Path]) -> Iterator[str]:
    """Return a line for each kind, and a line for each reason of not loading."""
    for kind, (suffix, read) in KINDS.items():
        outcomes = Counter(outcome(path, read) for path in files(folders, suffix))
        total = outcomes.total()
        yield f"{kind}: {outcomes.pop('', 0)} of {total}"
        yield from (f"    {count} {reason}" for reason, count in outcomes.most_common())


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
def main(folders: tuple[Path, ...]) -> None:
    """Say which files of FOLDERS load, and why others do not."""
    for line in judged(folders):
        click.echo(line)


if __name__ == "__main__":
    main()
