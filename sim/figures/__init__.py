"""The paper's figures, one small module each: what is swept, how it is drawn, which claims it decides.

FIGURES lists them in the paper's order; modules are imported when they are asked for.
"""

from importlib import import_module

from sim.figures.figure import Figure

# name on the command line -> module of this package; the order of the page.
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
}


def figure(name: str) -> Figure:
    """Return a figure by its name; raises KeyError."""
    found = import_module(f"sim.figures.{FIGURES[name]}").FIGURE
    assert isinstance(found, Figure)
    return found
