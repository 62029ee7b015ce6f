"""The tables of README and pages that come from simulated runs, made again from these runs.

    python -m benchmarks.tables                 all of them (ten minutes)
    python -m benchmarks.tables contenders      one of them

A table stands between two comments in its page, of which the first names the table and the model
that made it. The words of a row are here, its numbers come from runs, a row at a time, so that a
test may draw a row and compare it.
"""

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
from click.testing import CliRunner

from benchmarks import answers, bgp_weights, gallery, mrc_published, pausing, reordering
from fattree.policies import PAPER_POLICIES, POLICIES
from fattree.records.record import Record
from ofan import cli
from reproduction.report.figure import grid
from reproduction.report.schemes import KIB, MIB, PERMUTATION
from sim.runs.engine import run
from sim.sweeps.model_version import model_version
from sim.sweeps.sweeping import simulate

ROOT = Path(__file__).resolve().parent.parent
TEN = range(1, 11)
Row = Callable[[], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a page: its columns, and its rows' functions; a row's first cell is its key."""

    page: str
    columns: tuple[str, ...]
    rows: Mapping[str, Row]

    def text(self, cells: Mapping[str, Sequence[str]]) -> str:
        """Return the table in Markdown."""
        lines = [self.columns, ("---",) * len(self.columns), *cells.values()]
        return "\n".join("|" + "|".join(_cell(cell) for cell in line) + "|" for line in lines)


def _cell(text: str) -> str:
    return text if text == "---" else f" {text} " if text else " "


def runs(policy: str, settings: Mapping[str, Any], seeds: Sequence[int] = TEN) -> list[Record]:
    """Return the records of a permutation on 128 hosts, changed by the settings, by seed."""
    return [simulate(scenario) for scenario in grid({**PERMUTATION, **settings}, (policy,), seeds)]


def spread(values: Sequence[float], digits: int = 1) -> str:
    """Return mean and standard deviation."""
    return f"{np.mean(values):.{digits}f} ± {np.std(values, ddof=1):.{digits}f}"


def reach(values: Sequence[float], middle: float, digits: int = 1, bold: bool = False) -> str:
    """Return a middle value, and the least and the most of all."""
    shown = f"{middle:.{digits}f}"
    shown = f"**{shown}**" if bold else shown
    return f"{shown} ({min(values):.{digits}f} to {max(values):.{digits}f})"


# README: a load balancer of each kind, without and with failed links.
HEADLINES = ("flow", "simple_rr", "host_pkt_ar", "host_dr", "ofan")


def headline(policy: str) -> Sequence[str]:
    """Return a load balancer's row of README's table."""
    whole, failing = runs(policy, {}), runs(policy, {"failures__rate": 0.01})
    return (
        _label(policy),
        *(_over(records) for records in (whole, failing)),
        spread([record.max_queue_packets for record in whole]),
    )


def _over(records: Sequence[Record]) -> str:
    return spread([100 * record.increase for record in records]) + " %"


# docs/load-balancers.md: the paper's load balancers on its fabric, from the collective's start.
SAYS = {
    "flow": "far above all packet schemes",
    "subflow": "better than flows",
    "host_flowlet_ar": "worse than subflows in the permutation",
    "host_pkt": "square root of the message",
    "host_pkt_ar": "square root",
    "switch_pkt": "packet schemes are close to each other",
    "simple_rr": "queues grow linearly",
    "simple_rr_shared": '(section "Simple RR" counts so)',
    "switch_pkt_ar": "square root",
    "jsq": "queues grow linearly",
    "rsq": "square root",
    "host_dr": "constant queues",
    "ofan": "constant queues, best",
    "ofan_fib": "as Ofan without failures",
    "ofan_jsq_start": "slightly better without failures",
}
NAMES = {
    "simple_rr": "Simple RR, a pointer per class",
    "simple_rr_shared": "Simple RR, one pointer for both",
}


def contender(policy: str) -> Sequence[str]:
    """Return a load balancer's row of the table of all."""
    records = runs(policy, {})
    return (
        _name(policy),
        _over(records),
        spread([record.max_queue_packets for record in records]),
        f"{sum(record.dropped for record in records):,}",
        SAYS[policy],
    )


def _name(policy: str) -> str:
    return NAMES[policy] if policy in NAMES else POLICIES[policy].label


def compared(file: str, policy: str, *options: str) -> list[dict[str, Any]]:
    """Return a load balancer's records of `ofan compare`, in the order of networks and seeds."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = ["compare", f"experiments/{file}", "--policies", policy, "--json", *options]
        done = CliRunner().invoke(cli, [*arguments, "--output", f"{folder}/compared"])

    if done.exit_code:
        raise click.ClickException(done.output)

    text = done.stdout
    records: list[dict[str, Any]] = json.loads(text[text.index("{") :])["records"]
    return records


# A flow or a subflow with the failed link on its path keeps the path.
NEVER_END = ("flow", "subflow")


def linked(policy: str) -> Sequence[str]:
    """Return a load balancer's row with a failing link, on the virtual network."""
    # The virtual network comes first, and the simulator is compared with it.
    delays = ("0", "2", "inf")
    (whole, *_) = compared("demo.toml", policy)
    cells = []
    for delay in delays:
        if delay == "inf" and policy in NEVER_END:
            cells.append("never")
            continue

        delayed = f"failures.convergence_rtt={delay}"
        (record, *_) = compared("demo_failure.toml", policy, "--set", delayed)
        cells.append(f"{record['cct_ps'] / 1e6:.2f} ({record['lost_to_failure']:,})")

    return (_label(policy), f"{whole['cct_ps'] / 1e6:.2f}", *cells)


def both_networks(policy: str) -> Sequence[str]:
    """Return a load balancer's row of the virtual network beside the simulator."""
    options = ("--set", "fabric.k=4", "--seeds", "3", "--networks", "virtual,sim")
    records = compared("permutation.toml", policy, *options)
    networks = [
        [record for record in records if record["network"] == name] for name in ("virtual", "sim")
    ]
    ccts = [sum(record["cct_ps"] for record in some) / len(some) for some in networks]
    queues = [np.mean([record["max_queue_packets"] for record in some]) for some in networks]
    return (
        _label(policy),
        *(f"{cct / 1e6:.3f}" for cct in ccts),
        *(f"{queue:.1f}" for queue in queues),
        f"{(ccts[0] - ccts[1]) / 1e6:g}",
    )


def _label(policy: str) -> str:
    return POLICIES[policy].label


# docs/load-balancers-since.md
BESIDE = (
    "ofan",
    "host_dr",
    "themis",
    "switch_pkt_ar",
    "host_pkt_ar",
    "host_pkt",
    "uet_bitmap",
    "mrc",
    "mrc_srv6",
)


def beside(policy: str) -> Sequence[str]:
    """Return a load balancer's row beside those since the paper."""
    cells = []
    for k in (8, 16):
        for rate in (0.0, 0.01):
            records = runs(policy, {"fabric__k": k, "failures__rate": rate}, range(1, 6))
            over = [100 * record.increase for record in records]
            queues = [record.max_queue_packets for record in records]
            cells.append(
                f"{reach(over, float(np.median(over)))}, "
                f"{reach(queues, float(np.median(queues)), 0)}"
            )

    name = _label(policy)
    return (f"**{name}**" if POLICIES[policy].since else name, *cells)


# docs/congestion.md: MSwift's publication, and the paper's figure CCA.
CONTROLS = {"MSwift": "mswift", "lazy rule alone": "lazy_swift", "plain Swift": "swift"}
LABELS = {
    "REPS, ECN at 20 % of the buffer": ("host_pkt_ar", {"load_balancer__ecn_percent": 20}),
    "REPS, ECN at 10 % (the paper's)": ("host_pkt_ar", {}),
    "random (Host Pkt)": ("host_pkt", {}),
    "fixed (Switch Pkt AR)": ("switch_pkt_ar", {}),
    "fixed (Ofan)": ("ofan", {}),
}
PUBLISHED = {"MSwift": "13 to 15", "lazy rule alone": "26", "plain Swift": "collapse"}


def swift(labels: str, control: str) -> Sequence[str]:
    """Return a control's row beside MSwift's publication."""
    policy, options = LABELS[labels]
    settings = {
        **PERMUTATION,
        "collective__message_bytes": 8 * MIB,
        "transport__recovery": "sack",
        "transport__congestion": CONTROLS[control],
        "transport__sack_threshold": 3 if control == "plain Swift" else 32,
        **options,
    }
    results = [run(scenario) for scenario in grid(settings, (policy,), TEN)]
    is_published = labels == next(iter(LABELS))
    # Of the flows' own times, each from its start.
    times = [100 * ((result.done_ps - result.start_ps) / result.bound_ps - 1) for result in results]
    ccts = [100 * result.increase for result in results]
    tails = [float(np.percentile(of_seed, 99)) for of_seed in times]
    middles = [float(of_seed.mean()) for of_seed in times]
    records = [result.record for result in results]
    again = [100 * (record.transmissions / record.packets - 1) for record in records]
    digits = 0 if control == "plain Swift" else 1
    return (
        labels if control == "MSwift" else "",
        control,
        PUBLISHED[control] if is_published else "",
        reach(ccts, float(np.mean(ccts)), digits, bold=is_published),
        reach(tails, float(np.mean(tails)), digits, bold=is_published),
        f"{np.mean(middles):.{digits}f}",
        f"{np.mean(again):.1f}",
    )


def cca(size: int, options: Mapping[str, Any]) -> Sequence[str]:
    """Return a message's row of the paper's figure CCA, under MSwift."""
    cells = []
    for policy in ("host_pkt_ar", "host_pkt", "switch_pkt_ar", "ofan"):
        if options and policy != "host_pkt_ar":
            cells.append("")
            continue

        records = runs(
            policy,
            {
                "collective__message_bytes": size,
                "transport__recovery": "sack",
                "transport__congestion": "mswift",
                **options,
            },
        )
        over = [100 * record.increase for record in records]
        cells.append(reach(over, float(np.mean(over))))

    return (f"{size // MIB} MiB" + (", ECN of REPS at 20 %" if options else ""), *cells)


# docs/transport.md: an incast with trimming, and without.
INCASTS: dict[str, tuple[int, int, dict[str, Any]]] = {
    "8 flows of 8 MiB": (8, 8 * MIB, {}),
    "32 flows of 8 MiB": (32, 8 * MIB, {}),
    "100 flows of 2 MiB": (100, 2 * MIB, {}),
    "8 flows of 450 KB, 10 Gb/s, buffers of 8 packets": (
        8,
        450 * KIB,
        {"fabric__rate_gbps": 10, "fabric__queue_bytes": 33_264},
    ),
    "32 flows of the same": (
        32,
        450 * KIB,
        {"fabric__rate_gbps": 10, "fabric__queue_bytes": 33_264},
    ),
}


def incast(name: str) -> Sequence[str]:
    """Return an incast's row: CCT over the least time of the link, and packets sent again."""
    senders, size, options = INCASTS[name]
    cells = []
    for trimming in (True, False):
        (record,) = runs(
            "ofan",
            {
                "collective__matrix": "pairs",
                "collective__message_bytes": size,
                "collective__pairs": [[4 + sender, 0] for sender in range(senders)],
                "transport__recovery": "sack",
                "transport__congestion": "nscc",
                "transport__trimming": trimming,
                **options,
            },
            (1,),
        )
        slot_ps = 41_780 * 800 // options.get("fabric__rate_gbps", 800)
        again = 100 * (record.transmissions / record.packets - 1)
        lost = record.trimmed if trimming else record.dropped
        cells += [f"{record.cct_ps / record.packets / slot_ps:.3f}", f"{again:.0f}", f"{lost:,}"]

    return (name, *cells)


TABLES = {
    "answers": Table("README.md", answers.COLUMNS, answers.ROWS),
    "cases": Table("docs/choose.md", answers.CASE_COLUMNS, answers.CASE_ROWS),
    "headline": Table(
        "README.md",
        (
            "load balancer",
            "CCT over the bound",
            "with 1 % of links failed",
            "longest queue, no failures (packets)",
        ),
        {policy: partial(headline, policy) for policy in HEADLINES},
    ),
    "contenders": Table(
        "docs/load-balancers.md",
        (
            "load balancer",
            "CCT over the bound",
            "longest queue (packets)",
            "packets dropped in 10 runs",
            "the paper says",
        ),
        {policy: partial(contender, policy) for policy in SAYS},
    ),
    "links": Table(
        "docs/virtual.md",
        ("load balancer", "all links up", "G = 0", "G = 2 RTT", "G infinite"),
        {policy: partial(linked, policy) for policy in PAPER_POLICIES},
    ),
    "networks": Table(
        "docs/virtual.md",
        (
            "load balancer",
            "virtual CCT (µs)",
            "simulator CCT (µs)",
            "virtual longest queue (packets)",
            "simulator longest queue (packets)",
            "difference",
        ),
        {policy: partial(both_networks, policy) for policy in PAPER_POLICIES},
    ),
    "since": Table(
        "docs/load-balancers-since.md",
        ("load balancer", "k = 8", "k = 8, failures", "k = 16", "k = 16, failures"),
        {policy: partial(beside, policy) for policy in BESIDE},
    ),
    "mrc_loss": Table(
        "docs/load-balancers-since.md", mrc_published.LOSS_COLUMNS, mrc_published.LOSS_ROWS
    ),
    "since_nscc": Table(
        "docs/load-balancers-since.md", mrc_published.NSCC_COLUMNS, mrc_published.NSCC_ROWS
    ),
    "mrc_reboot": Table(
        "docs/load-balancers-since.md", mrc_published.REBOOT_COLUMNS, mrc_published.REBOOT_ROWS
    ),
    "mrc_port": Table(
        "docs/load-balancers-since.md", mrc_published.PORT_COLUMNS, mrc_published.PORT_ROWS
    ),
    "mrc_incast": Table(
        "docs/load-balancers-since.md", mrc_published.INCAST_COLUMNS, mrc_published.INCAST_ROWS
    ),
    "swift": Table(
        "docs/congestion.md",
        ("labels", "control", "published", "CCT", "99th percentile", "mean", "resent"),
        {
            f"{labels}, {control}": partial(swift, labels, control)
            for labels in LABELS
            for control in CONTROLS
            if labels != "fixed (Ofan)" or control == "MSwift"
            if not (labels == "fixed (Switch Pkt AR)" and control == "plain Swift")
        },
    ),
    "cca": Table(
        "docs/congestion.md",
        ("", "REPS", "random labels", "Switch Pkt AR", "Ofan"),
        {
            "1 MiB": partial(cca, MIB, {}),
            "16 MiB": partial(cca, 16 * MIB, {}),
            "16 MiB, 20 %": partial(cca, 16 * MIB, {"load_balancer__ecn_percent": 20}),
        },
    ),
    "trimming": Table(
        "docs/transport.md",
        ("", "CCT", "again", "trimmed", "CCT without", "again", "dropped"),
        {name: partial(incast, name) for name in INCASTS},
    ),
    "pauses": Table("docs/lossless.md", pausing.COLUMNS, pausing.ROWS),
    "slow_link": Table("docs/lossless.md", pausing.SLOW_COLUMNS, pausing.SLOW_ROWS),
    "bgp_shares": Table("docs/bgp.md", bgp_weights.SHARES_COLUMNS, bgp_weights.SHARES_ROWS),
    "bgp_cct": Table("docs/bgp.md", bgp_weights.CCT_COLUMNS, bgp_weights.CCT_ROWS),
    "gallery": Table("docs/gallery.md", gallery.COLUMNS, gallery.ROWS),
    "gallery_feedback": Table("docs/gallery.md", gallery.FEEDBACK_COLUMNS, gallery.FEEDBACK_ROWS),
    "reordering": Table("docs/lossless.md", reordering.COLUMNS, reordering.ROWS),
}


def begin(name: str) -> str:
    """Return how the comment before a table begins; the model follows."""
    return f"<!-- begin: benchmarks/tables.py {name}, model "


def end(name: str) -> str:
    """Return the comment after a table."""
    return f"<!-- end: benchmarks/tables.py {name} -->"


def kept(page: str, name: str) -> tuple[str, list[str]]:
    """Return the model that made a page's table, and the table's lines; raises ValueError."""
    _, comment, rest = page.partition(begin(name))
    if not comment or end(name) not in rest:
        raise ValueError(f"no table {name}")

    model, _, rest = rest.partition(" -->\n")
    return model, rest.partition(end(name))[0].splitlines()


def renewed(page: str, name: str, text: str, model: str) -> str:
    """Return a page with another text for a table; raises ValueError where it has none."""
    kept(page, name)
    before, _, rest = page.partition(begin(name))
    return f"{before}{begin(name)}{model} -->\n{text}\n{rest[rest.index(end(name)) :]}"


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(TABLES)))
def main(names: Sequence[str]) -> None:
    """Make tables again, all of them by default."""
    for name in names or TABLES:
        table = TABLES[name]
        cells = {}
        for key, row in table.rows.items():
            cells[key] = row()
            click.echo(f"{name}: {' | '.join(cells[key])}")

        path = ROOT / table.page
        page = path.read_text(encoding="utf-8")
        text = renewed(page, name, table.text(cells), model_version()[:16])
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
