"""The report's figures in the order of the page, imported when they are asked for."""

from importlib import import_module

from sim.report.figure import Figure

# Name on the command line -> module of `sim.figures`. Names, not modules: figures import the report
# and the report no figure, and one figure does not wait until all others are imported.
# The order is the paper's: sections 3 to 7, then the appendices; what goes beyond it comes last.
FIGURES: dict[str, str] = {
    "contenders": "contenders",
    "baseline": "baseline",
    "no_convergence": "no_convergence",
    "convergence": "convergence",
    "failure_rate": "failure_rate",
    "converged": "converged",
    "growth": "growth",
    "overload": "overload",
    "network_size": "network_size",
    "buffer_size": "buffer_size",
    "message_size": "message_size",
    "packet_size": "packet_size",
    "sack": "sack",
    "congestion": "congestion",
    "fsdp": "fsdp",
    "timeline": "timeline",
    "pairs": "pairs",
    "random_queue": "random_queue",
    "host_dr_model": "host_dr_model",
    "ratio": "ratio",
    "ofan_model": "ofan_model",
    "pointers": "pointers",
    "invariant": "invariant",
    "anchored": "anchored",
    "consolidation": "consolidation",
    "choices": "choices",
}


def figure(name: str) -> Figure:
    """Return a figure by its name; raises KeyError."""
    # A name of the table, never a user's text: the command line offers these and no others.
    found = import_module(f"sim.figures.{FIGURES[name]}").FIGURE
    assert isinstance(found, Figure)
    return found
