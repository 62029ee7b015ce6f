"""The two reports: figures in the order of the page, claims, and a page's texts on itself.

Figures are imported when they are asked for.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module

from reproduction.report.claims import CLAIMS, Claim
from reproduction.report.figure import Figure, Level
from reproduction.report.plain import PLAIN
from reproduction.report.statements import PLAINLY, STATEMENTS

# Name on the command line -> module of `figures`. Names, not modules: figures import the report
# and the report no figure, and one figure does not wait until all others are imported.
# The order is the paper's: sections 3 to 8, then the appendices; figures beyond it come last.
FIGURES: dict[str, str] = {
    "contenders": "contenders",
    "baseline": "baseline",
    "told": "told",
    "no_convergence": "no_convergence",
    "convergence": "convergence",
    "long_messages": "long_messages",
    "failure_rate": "failure_rate",
    "converged": "converged",
    "growth": "growth",
    "mean_queues": "mean_queues",
    "overload": "overload",
    "pointers": "pointers",
    "network_size": "network_size",
    "buffer_size": "buffer_size",
    "message_size": "message_size",
    "packet_size": "packet_size",
    "sack": "sack",
    "congestion": "congestion",
    "fsdp": "fsdp",
    "sending_rates": "sending_rates",
    "timeline": "timeline",
    "pairs": "pairs",
    "random_queue": "random_queue",
    "host_dr_model": "host_dr_model",
    "invariant": "invariant",
    "consolidation": "consolidation",
    "ratio": "ratio",
    "ofan_model": "ofan_model",
    "anchored": "anchored",
    "swift_settings": "swift_settings",
    "choices": "choices",
}
# Beyond the paper; the order is that of the questions: where, for which use, despite which harm.
BEYOND: dict[str, str] = {
    "overview": "beyond.overview",
    "fabrics": "beyond.fabrics",
    "mrc": "beyond.mrc",
    "collectives": "beyond.collectives",
    "training": "beyond.training",
    "faults": "beyond.faults",
    "lags": "beyond.lags",
    "controls": "beyond.controls",
    "victims": "beyond.victims",
}


@dataclass(frozen=True, slots=True)
class Edition:
    """One of the two reports.

    `says` is the text before a claim on the page, `option` the command's option for the report,
    `notes` the template of the notes on its numbers. With `is_numbered`, headings begin with the
    number of the figure in the paper.
    """

    slug: str
    title: str
    lead: str
    says: str
    option: str
    notes: str
    figures: Mapping[str, str]
    claims: Mapping[str, Claim]
    plain: Mapping[str, str]
    scope: Mapping[Level, str]
    is_numbered: bool = False


# The numbers of sections, figures and tables are those of its second version.
PAPER = "https://arxiv.org/abs/2507.21372v2"
LOOK = (
    "Quick preset: few seeds, small fabrics. A look, not a result: what seeds decide is left open."
)
EDITIONS = {
    edition.slug: edition
    for edition in (
        Edition(
            slug="paper",
            title="Load balancing for AI training workloads, reproduced",
            lead="Every figure of the paper, run on the simulator of this repository, and what "
            "each says about the paper's claims.",
            says="The paper",
            option="",
            notes="paper_notes.html",
            figures=FIGURES,
            claims=CLAIMS,
            plain=PLAIN,
            scope={
                "quick": LOOK,
                "default": "Default preset: all figures; all-to-all up to k = 8.",
                "full": "Full preset: every figure with all seeds, up to k = 64.",
            },
            is_numbered=True,
        ),
        Edition(
            slug="beyond",
            title="Beyond the paper: where Ofan's advantage holds, shrinks or turns",
            lead="Other fabrics, MRC on them, collectives as graphs, training steps, faults, "
            "congestion controls and pauses, on the simulator of this repository. The statements "
            "are ours, and were written down before the runs that decide them.",
            says="Statement",
            option=" --beyond",
            notes="beyond_notes.html",
            figures=BEYOND,
            claims=STATEMENTS,
            plain=PLAINLY,
            scope={
                "quick": LOOK,
                "default": "Default preset: all figures, mostly 128 hosts.",
                "full": "Full preset: larger fabrics, and 20 seeds.",
            },
        ),
    )
}


def figure(name: str) -> Figure:
    """Return a figure of either report by its name; raises KeyError."""
    # A name of the table, never a user's text: the command line offers these and no others.
    imported = import_module(f"reproduction.figures.{(FIGURES | BEYOND)[name]}").FIGURE
    assert isinstance(imported, Figure)
    return imported
