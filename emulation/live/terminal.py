"""The terminal's view of a snapshot: loads as blocks, queues as curves, changes as bars."""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from emulation.live.model import Header, LinkView, PhaseView, Snapshot
from emulation.outcomes.changes import Change
from fattree.shape.topology import SWITCH_LAYERS, FatTree

# From an idle link to a full one, on a dark terminal.
RAMP = ("#3a4450", "#35536f", "#3a6d98", "#4488bd", "#5ca5d6", "#84c1e4", "#b5dcf0", "#f0faff")
DEAD = "#ff7438"
DETECT = "#b79be0"
PLAN = "#5cc7b8"
INSTALL = "#f0b840"
ACCENT = "#79b4ec"
BLOCKS = "▁▂▃▄▅▆▇█"
STATES = {"running": "bold green", "complete": f"bold {ACCENT}", "idle": "dim"}
UNITS = ((10**12, "s"), (10**9, "ms"), (10**6, "µs"), (10**3, "ns"))
HISTORY = 30
BAR_WIDTH = 12
STEPS_WIDTH = 14
SHORT = 6
SHORT_TIME = ".3g"
PANEL_WIDTH = 4
WIDTH_OF_TIERS = 38
WIDTH_OF_CURVES = 78
WIDE = 110
FRAME_HEIGHT = 2
MOST_PHASES = 6
MOST_CHANGES = 2


def duration(time_ps: int | None, digits: str = ".2f") -> str:
    """Return a time in the unit that suits it."""
    for size, unit in UNITS:
        if time_ps is not None and abs(time_ps) >= size:
            return f"{time_ps / size:{digits}} {unit}"

    return "–" if time_ps is None else "0 s" if time_ps == 0 else f"{time_ps} ps"


def _block(load: float) -> tuple[str, str]:
    """Return a load as a block and its colour; its height shows the load without colours, too."""
    level = min(len(RAMP) - 1, int(load * len(RAMP)))
    return BLOCKS[level], RAMP[level]


def curve(values: Sequence[float], limit: float) -> str:
    """Return values from 0 to `most` as a row of blocks, a space where there is nothing."""
    top = len(BLOCKS) - 1
    return "".join(
        BLOCKS[min(top, round(value / limit * top))] if value > 0 else " " for value in values
    )


class Terminal:
    """Draws snapshots; it remembers the queues of the last ones."""

    def __init__(self) -> None:
        self._queues: deque[tuple[float, ...]] = deque(maxlen=HISTORY)
        self._last_ps = -1

    def remember(self, snapshot: Snapshot) -> None:
        """Take a snapshot into the curves."""
        # Time that goes back is a new run.
        if snapshot.time_ps < self._last_ps:
            self._queues.clear()

        if snapshot.time_ps != self._last_ps:
            self._queues.append(tuple(tier.queue for tier in snapshot.tiers))

        self._last_ps = snapshot.time_ps

    def draw(self, snapshot: Snapshot, width: int) -> RenderableType:
        """Return the whole view for a terminal of so many columns."""
        of_links = _width_of_links(snapshot.header.tree)
        has_room = width - of_links >= WIDTH_OF_TIERS
        is_wide = width >= WIDE
        of_tiers = width - of_links if has_room else width
        links = Titled("Links: load up, down", links_of(snapshot))
        tiers = Titled(
            "Tiers: longest queue in packets", self.tiers_of(snapshot, of_tiers >= WIDTH_OF_CURVES)
        )
        collective = Titled(
            "Collective", phases_of(snapshot.phases, BAR_WIDTH if is_wide else SHORT)
        )
        convergence = Titled("Convergence", changes_of(snapshot, STEPS_WIDTH if is_wide else SHORT))

        if not has_room:
            return Group(header_of(snapshot), *map(_panel, (links, tiers, collective, convergence)))

        first = _side_by_side(links, tiers, of_links)
        second = _side_by_side(collective, convergence, width // 2)
        return Group(header_of(snapshot), first, second)

    def tiers_of(self, snapshot: Snapshot, has_room: bool) -> Table:
        """Return a row per layer: its load, its longest queue now and ever, with room a curve."""
        table = Table(box=None, pad_edge=False, header_style="dim")
        for name in ("", "load", ""):
            table.add_column(name, no_wrap=True)

        for name in ("queue", "most", "drops"):
            table.add_column(name, justify="right", no_wrap=True)

        if has_room:
            table.add_column("lately", no_wrap=True)

        # At least 4 packets high, so that an idle fabric's curves do not look busy.
        highest = max(4.0, *(tier.longest_queue for tier in snapshot.tiers))
        for number, tier in enumerate(snapshot.tiers):
            bar = _bar(tier.load, BAR_WIDTH if has_room else SHORT)
            past = (
                [Text(curve([queues[number] for queues in self._queues], highest), ACCENT)]
                if has_room
                else []
            )

            counts = (f"{tier.queue:.1f}", f"{tier.longest_queue:.1f}", str(tier.dropped))
            table.add_row(Text(tier.layer, "bold"), bar, f"{tier.load:4.0%}", *counts, *past)

        return table


def _bar(share: float, width: int) -> Text:
    full = round(share * width)
    return Text.assemble(("━" * full, ACCENT), ("━" * (width - full), RAMP[0]))


def header_of(snapshot: Snapshot) -> RenderableType:
    """Return the run's name, its progress and the totals."""
    header = snapshot.header
    name = Text.assemble(
        ("Ofan live  ", "bold"), (header.label, f"bold {ACCENT}"), (f" on {_what(header)}", "dim")
    )
    numbers = Text.assemble(
        (header.state, STATES.get(header.state, "")),
        f"  time {duration(snapshot.time_ps)}  CCT {cct_text(snapshot)}  ",
        f"{snapshot.progress:.0%} acknowledged  ",
        f"{snapshot.dropped} dropped  {snapshot.lost_to_failure} lost  failed: ",
        (", ".join(snapshot.failed) or "none", f"bold {DEAD}" if snapshot.failed else "dim"),
        (f"  slow: {', '.join(snapshot.slow)}" if snapshot.slow else "", "bold"),
    )

    bar = ProgressBar(
        total=1, completed=snapshot.progress, complete_style=ACCENT, finished_style=ACCENT
    )
    note = [Text(header.note, DEAD)] if header.note else []
    return Panel(Group(name, numbers, *note, bar), box=box.ROUNDED, border_style="dim")


def _what(header: Header) -> str:
    return f"{header.name}, {header.tree.label}, seed {header.seed}, {_pace(header)}"


def _pace(header: Header) -> str:
    if header.speed is None:
        return "Mininet"

    pace = f"{header.speed:.2g} virtual seconds a second"
    slower = "" if header.reached is None else f" (this machine reaches {header.reached:.2g})"
    return pace + slower


class Titled(NamedTuple):
    """The content of a frame, with its title."""

    title: str
    body: Table | Text


def _panel(part: Titled, height: int | None = None) -> Panel:
    title = f"[bold]{part.title}[/]"
    return Panel(
        part.body,
        title=title,
        title_align="left",
        box=box.ROUNDED,
        border_style="dim",
        height=height,
    )


def _side_by_side(left: Titled, right: Titled, left_width: int) -> RenderableType:
    """Return two frames of one height."""
    height = FRAME_HEIGHT + max(_lines(left.body), _lines(right.body))
    table = Table.grid(expand=True)
    table.add_column(width=left_width)
    table.add_column(ratio=1)
    table.add_row(_panel(left, height), _panel(right, height))

    return table


def _lines(body: Table | Text) -> int:
    return (
        len(body.plain.splitlines())
        if isinstance(body, Text)
        else body.row_count + body.show_header
    )


def _width_of_links(tree: FatTree) -> int:
    # Of each pod a switch's links of three columns and a space, after the row's name
    # (`_tier_rows`).
    return tree.pods * (3 * tree.most_uplinks + 1) + 7 + PANEL_WIDTH


def links_of(snapshot: Snapshot) -> Text:
    """Return every link as two blocks, its load up and its load down, pod by pod.

    A failed link has crosses.
    """
    tree = snapshot.header.tree
    # Links are numbered from their lower ends, edges first.
    rows = [Text("       ") + _pods(tree)]

    if tree.cores:
        above = snapshot.links[tree.edge_links :]
        rows += list(_tier_rows(tree, "agg ", above, tree.aggs_per_pod, tree.agg_uplinks))

    links = snapshot.links[: tree.edge_links]
    rows += list(_tier_rows(tree, "edge", links, tree.edges_per_pod, tree.edge_uplinks))

    return Text("\n").join([*rows, Text(), _legend()])


def _pods(tree: FatTree) -> Text:
    width = 3 * tree.most_uplinks + 1
    return Text("".join(f"pod {pod}".ljust(width) for pod in range(tree.pods)), "dim")


def _tier_rows(
    tree: FatTree, name: str, links: Sequence[LinkView], positions: int, uplinks: int
) -> Iterator[Text]:
    """Yield a row per position in the pod: the uplinks of that switch in every pod."""
    # The tier with fewer uplinks leaves room, so that pods are below each other.
    spare = "   " * (tree.most_uplinks - uplinks) + " "
    for position in range(positions):
        row = Text.assemble((f"{name} {position} ".ljust(7), "dim"))
        for pod in range(tree.pods):
            first = (pod * positions + position) * uplinks
            for link in links[first : first + uplinks]:
                row += _cell(link)

            row += Text(spare)

        yield row


def _cell(link: LinkView) -> Text:
    if not link.is_up:
        return Text("╳╳ ", f"bold {DEAD}")

    return Text.assemble(_block(link.load_up), _block(link.load_down), " ")


def cct_text(snapshot: Snapshot) -> str:
    """Return the completion time, or that there is none yet."""
    is_open = snapshot.cct_ps is None and snapshot.header.state != "idle"
    return "running" if is_open else duration(snapshot.cct_ps)


def _legend() -> Text:
    ramp = zip(BLOCKS, RAMP, strict=True)
    return Text.assemble(
        ("0 ", "dim"), *ramp, (" 100 %  ", "dim"), ("╳╳", f"bold {DEAD}"), (" failed", "dim")
    )


def phases_of(phases: Sequence[PhaseView], width: int) -> Table:
    """Return the phases that run, or the last phase, and the completion times."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("phase", "packets", "", "flows", "CCT"):
        table.add_column(
            name, no_wrap=True, justify="left" if name in {"phase", "packets"} else "right"
        )

    # Before the first ACK the first phase is shown.
    begun = [phase for phase in phases if phase.acked] or list(phases[:1])
    for phase in begun[-MOST_PHASES:]:
        bar = _bar(phase.acked / phase.packets, width)
        flows = f"{phase.done}/{phase.flows}"
        cct = Text(duration(phase.cct_ps), "bold") if phase.is_complete else Text("running", "dim")
        table.add_row(
            f"{phase.number + 1} of {len(phases)}",
            bar,
            f"{phase.acked / phase.packets:.0%}",
            flows,
            cct,
        )

    return table


def changes_of(snapshot: Snapshot, width: int) -> Text:
    """Return the last changes of links, from failure to new schedules, as bars of some columns."""
    if not snapshot.changes:
        return Text("no link has changed", "dim")

    lines = (
        line
        for change in snapshot.changes[-MOST_CHANGES:]
        for line in _change(change, snapshot, width)
    )

    return Text("\n").join(lines)


def _change(change: Change, snapshot: Snapshot, width: int) -> Iterator[Text]:
    title = (change.word, "bold green" if change.up else f"bold {DEAD}")
    shown = ", ".join(change.links[:2]) + (
        f" and {len(change.links) - 2} more" if len(change.links) > 2 else ""
    )
    when = duration(change.at_ps) if change.at_ps >= 0 else f"{duration(-change.at_ps)} before"
    yield Text.assemble(f"{when}  {shown} ", title)
    steps = _steps(change)
    names = [(f" {step.name} {duration(step.took_ps, SHORT_TIME)}", step.colour) for step in steps]
    yield _bars(steps, snapshot.time_ps, change, width) + Text.assemble(*names)
    yield Text(_rest(change, snapshot.header), "dim")


class Step(NamedTuple):
    """One step from a failure to new schedules."""

    name: str
    took_ps: int
    colour: str


def _steps(change: Change) -> list[Step]:
    """Return the steps that are known."""
    marks = (change.at_ps, change.detected_ps, change.planned_ps, change.installed_ps)
    intervals = zip(
        ("detect", "plan", "install"), marks, marks[1:], (DETECT, PLAN, INSTALL), strict=False
    )
    return [
        Step(name, end - start, colour)
        for name, start, end, colour in intervals
        if start is not None and end is not None
    ]


def _rest(change: Change, header: Header) -> str:
    if change.installed_ps is not None:
        return f"{change.updates} updates on {change.switches} switches"

    return (
        "new schedules are on their way"
        if header.converges
        else "routes never change in this experiment"
    )


def _bars(steps: Sequence[Step], now_ps: int, change: Change, width: int) -> Text:
    """Return the steps as a bar, each as wide as its time; a step that goes on is broken."""
    known_ps = sum(step.took_ps for step in steps)
    open_ps = 0 if change.installed_ps is not None else now_ps - change.at_ps - known_ps
    whole_ps = known_ps + open_ps

    if not whole_ps:
        return Text("━" * width, INSTALL)

    bars = [("━" * round(step.took_ps / whole_ps * width), step.colour) for step in steps]
    return Text.assemble(*bars, ("╌" * round(open_ps / whole_ps * width), INSTALL))


def summary_of(snapshot: Snapshot) -> str:
    """Return one line that stays when the view has gone."""
    header = snapshot.header
    queues = ", ".join(
        f"{layer} {tier.longest_queue:.1f}"
        for layer, tier in zip(SWITCH_LAYERS, snapshot.tiers, strict=True)
    )

    return (
        f"{header.label}: {header.state} at {duration(snapshot.time_ps)}, "
        f"CCT {cct_text(snapshot)}, longest queues in packets: {queues}; "
        f"{snapshot.dropped} dropped, {snapshot.lost_to_failure} lost on failed links"
    )
