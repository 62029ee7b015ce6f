"""GOAL's text, read some megabytes at a time into columns.

Operations and dependencies are found by regular expressions over many lines at once; the few other
lines, which begin and end ranks, one by one. Labels become numbers when all lines are read.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from fattree.demand.workloads.graph import refuse_many
from fattree.errors import TrafficError
from fattree.files.memory import Room
from fattree.generators.goal_schedule import ANY, Int64, Kind, Schedule, refuse_many_ranks

PART_BYTES = 8 << 20
LABEL = "[A-Za-z][A-Za-z0-9_]*"
OPERATION = (
    rf"^(?:(?P<label>{LABEL})\s*:\s*)?(?:calc\s+(?P<time>[0-9]{{1,18}})|"
    r"(?:send\s+(?P<sent>[0-9]{1,18})\s*b\s+to|recv\s+(?P<received>[0-9]{1,18})\s*b\s+from)"
    r"\s+(?P<peer>-1|[0-9]{1,9})(?:\s+tag\s+(?P<tag>-1|[0-9]{1,10}))?)"
    r"(?:\s+cpu\s+(?P<cpu>[0-9]{1,3}))?(?:\s+nic\s+(?P<nic>[0-9]{1,3}))?$"
)
NEEDS = rf"^(?P<later>{LABEL})\s+(?P<way>i?requires)\s+(?P<earlier>{LABEL})$"
RANKS = re.compile(r"num_ranks\s+(\d{1,9})", re.ASCII)
BLOCK = re.compile(r"rank\s+(\d{1,9})\s*\{", re.ASCII)
COMMENT = re.compile(rb"//[^\n]*|/\*.*?(\*/|\Z)", re.DOTALL)
# Of kinds, by the column that an operation has.
SIZES = {"time": Kind.CALCULATE, "sent": Kind.SEND, "received": Kind.RECEIVE}
WAY = pl.col("way")
COLUMNS = ("line", "rank", "kind", "size", "peer", "tag", "cpu", "nic")
LAST = 2**63 - 1


@dataclass(slots=True)
class _Blocks:
    """Where ranks begin and end, by line; `count` is num_ranks."""

    source: str
    count: int = 0
    ranks: list[int] = field(default_factory=list)
    first: list[int] = field(default_factory=list)
    last: list[int] = field(default_factory=list)
    seen: set[int] = field(default_factory=set)

    @property
    def is_open(self) -> bool:
        """Return whether a rank has no end so far."""
        return len(self.last) < len(self.first)

    def take(self, line: int, text: str) -> None:
        """Read a line that is neither an operation nor a dependency; raises TrafficError."""
        where = f"{self.source}:{line}"
        ranks, block = RANKS.fullmatch(text), BLOCK.fullmatch(text)
        if ranks and not self.count and not self.is_open:
            self.count = refuse_many_ranks(int(ranks[1]), where)
        elif block and not self.is_open:
            rank = int(block[1])
            if rank in self.seen or rank >= self.count:
                raise TrafficError(
                    f"{where}: rank {rank} is given twice, or is not below num_ranks {self.count}"
                )

            self.seen.add(rank)
            self.ranks.append(rank)
            self.first.append(line)
        elif text == "}" and self.is_open:
            self.last.append(line)
        else:
            raise TrafficError(f"{where}: expected {self._expected()}, found {self.shown(text)}")

    def shown(self, text: str) -> str:
        """Return a line as errors quote it; nothing is quoted of a file without num_ranks."""
        return f"{text[:40]!r}" if self.count else "another line"

    def _expected(self) -> str:
        if not self.is_open:
            return "num_ranks N, or rank N {"

        return "calc N, send Nb to RANK, recv Nb from RANK or A requires B"

    def of(self, lines: pl.DataFrame) -> pl.DataFrame:
        """Return lines with the rank of each; raises TrafficError for a line outside ranks."""
        line = lines["line"].to_numpy()
        first = np.array([0, *self.first])
        last = np.array([0, *self.last, *[LAST] * self.is_open])
        block = np.searchsorted(first, line, side="right") - 1
        outside = line > last[block]
        if outside.any():
            stray = lines.row(int(np.argmax(outside)), named=True)
            raise TrafficError(
                f"{self.source}:{stray['line']}: expected num_ranks N, or rank N {{, "
                f"found {self.shown(stray['text'])}"
            )

        ranks = np.array([-1, *self.ranks])[block]
        return lines.drop("text").with_columns(rank=pl.Series(ranks, dtype=pl.Int64))


def read_lines(content: bytes, source: str, memory: Room) -> Schedule:
    """Read a schedule in text; raises TrafficError, UnicodeDecodeError."""
    blocks = _Blocks(source)
    read = _Read(source)
    line = 1
    for part in _parts(_without_comments(content, source)):
        texts = part.decode().split("\n")
        operations, needs, rest = _sorted(_lines(texts, line))
        line += len(texts) - 1
        for number, text in rest.iter_rows():
            blocks.take(number, text)

        memory.take(len(operations), len(needs))
        read.take(blocks.of(operations), blocks.of(needs), blocks.last[-1] if blocks.last else 0)

    if blocks.is_open or not blocks.count:
        raise TrafficError(f"{source}: expected {'a closing }' if blocks.count else 'num_ranks'}")

    return read.schedule(blocks.count)


def _parts(content: bytes) -> Iterator[bytes]:
    """Yield a text in parts that end with a line."""
    begin = 0
    while begin < len(content):
        end = content.rfind(b"\n", begin, begin + PART_BYTES) + 1
        # A line that is longer than a part, or the last line.
        if not end or begin + PART_BYTES >= len(content):
            behind = content.find(b"\n", begin + PART_BYTES) + 1
            end = behind or len(content)

        yield content[begin:end]
        begin = end


def _without_comments(content: bytes, source: str) -> bytes:
    # Their line ends stay, so that lines keep their numbers.
    def line_ends(comment: re.Match[bytes]) -> bytes:
        if comment[1] == b"":
            number = content.count(b"\n", 0, comment.start()) + 1
            raise TrafficError(f"{source}:{number}: this comment has no end")

        return b"\n" * comment[0].count(b"\n")

    return COMMENT.sub(line_ends, content) if b"/" in content else content


def _lines(texts: list[str], first: int) -> pl.DataFrame:
    """Return the lines that are not empty, with their numbers and the fields of operations."""
    return (
        pl.DataFrame({"text": texts}, schema={"text": pl.String})
        .with_row_index("line", first)
        .with_columns(pl.col("line").cast(pl.Int64), pl.col("text").str.strip_chars())
        .filter(pl.col("text") != "")
        .with_columns(pl.col("text").str.extract_groups(OPERATION).struct.unnest())
    )


def _sorted(lines: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Return the lines that are operations, those that are dependencies, and all others."""
    is_operation = pl.any_horizontal(pl.col(*SIZES).is_not_null())
    rest_of_lines = lines.filter(~is_operation).select(
        "line", "text", pl.col("text").str.extract_groups(NEEDS).struct.unnest()
    )
    needs, rest = (rest_of_lines.filter(which) for which in (WAY.is_not_null(), WAY.is_null()))
    return _typed(lines.filter(is_operation)), needs, rest.select("line", "text")


def _typed(operations: pl.DataFrame) -> pl.DataFrame:
    """Return operations as numbers, and their labels."""
    kinds = [pl.when(pl.col(name).is_not_null()).then(int(kind)) for name, kind in SIZES.items()]
    return operations.select(
        "line",
        "text",
        "label",
        kind=pl.coalesce(kinds).cast(pl.Int64),
        size=pl.coalesce(*SIZES).cast(pl.Int64),
        peer=pl.col("peer").cast(pl.Int64).fill_null(0) % (ANY + 1),
        tag=pl.col("tag").cast(pl.Int64).fill_null(0) % (ANY + 1),
        cpu=pl.col("cpu").cast(pl.Int64).fill_null(0),
        nic=pl.col("nic").cast(pl.Int64).fill_null(0),
    )


class _Read:
    """The columns read so far: numbers, and labels of ranks that go on."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._count = 0
        self._columns: list[pl.DataFrame] = []
        # Who waits and for whom, by operations in the order of the file; and those of irequires.
        self._requires: list[Int64] = []
        self._starts_after: list[Int64] = []
        self._operations: list[pl.DataFrame] = []
        self._needs: list[pl.DataFrame] = []

    def take(self, operations: pl.DataFrame, needs: pl.DataFrame, last: int) -> None:
        """Add lines; `last` is the line behind which a rank may go on."""
        self._operations.append(operations)
        self._needs.append(needs)
        refuse_many(self._count + sum(map(len, self._operations)))
        operations, needs = pl.concat(self._operations), pl.concat(self._needs)
        whole = pl.col("line") <= last
        self._operations, self._needs = [operations.filter(~whole)], [needs.filter(~whole)]
        self._number(operations.filter(whole), needs.filter(whole))

    def _number(self, operations: pl.DataFrame, needs: pl.DataFrame) -> None:
        """Keep operations of whole ranks, and their dependencies as numbers."""
        labels = (
            operations.select("rank", "line", "label")
            .with_row_index("operation", self._count)
            .drop_nulls("label")
        )
        again = labels.filter(~pl.struct("rank", "label").is_first_distinct())
        if len(again):
            line, label = again.select("line", "label").row(0)
            raise TrafficError(f"{self._source}:{line}: the label {label} is given twice")

        later, earlier = (self._numbered(needs, end, labels) for end in ("later", "earlier"))
        is_start = (needs["way"] == "irequires").to_numpy()
        self._requires.append(np.stack([later[~is_start], earlier[~is_start]]))
        self._starts_after.append(np.stack([later[is_start], earlier[is_start]]))
        self._columns.append(operations.drop("label"))
        self._count += len(operations)

    def _numbered(self, needs: pl.DataFrame, end: str, labels: pl.DataFrame) -> Int64:
        """Return the operations that dependencies name; raises TrafficError for no such label."""
        numbered = needs.select("rank", "line", end).join(
            labels.select("rank", "label", pl.col("operation").cast(pl.Int64)),
            left_on=["rank", end],
            right_on=["rank", "label"],
            how="left",
            maintain_order="left",
        )
        missing = numbered.filter(pl.col("operation").is_null())
        if len(missing):
            line, label = missing.select("line", end).row(0)
            raise TrafficError(f"{self._source}:{line}: there is no label {label} in this rank")

        return numbered["operation"].to_numpy()

    def schedule(self, ranks: int) -> Schedule:
        """Return all operations, rank by rank, each in the order of its lines."""
        columns = {
            name: np.concatenate([part[name].to_numpy() for part in self._columns])
            for name in COLUMNS
        }
        order = np.argsort(columns["rank"], kind="stable")
        row = np.empty(len(order), dtype=np.int64)
        row[order] = np.arange(len(order))
        return Schedule(
            source=self._source,
            ranks=ranks,
            is_text=True,
            place=columns.pop("line")[order],
            requires=row[np.concatenate(self._requires, axis=1)],
            starts_after=row[np.concatenate(self._starts_after, axis=1)],
            **{name: values[order] for name, values in columns.items()},
        )
