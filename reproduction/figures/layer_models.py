"""Average queues of five layers against N D/D/1, for the pictures of Host DR and of Ofan."""

from typing import Any

import numpy as np
import polars as pl

from fattree.experiment.model import Scenario
from fattree.shape.topology import SWITCH_LAYERS
from reproduction.report import style
from reproduction.report.figure import Preset, grid
from reproduction.report.statistics import Estimate, estimate
from reproduction.theory import PeriodicFlows, host_dr_queue, ofan_queue

# Appendices E and F: 1,024 hosts and 4 MB messages.
K = 16
MESSAGE_BYTES = 4 << 20
# "Very close" and "holds well", by a margin of ours.
TOLERANCE = 0.15
# "Relatively close", likewise.
LOOSE = 0.25
CORE_LAYERS = ("A>C", "C>A")
DOWN_LAYERS = ("A>E", "E>H")
MODELS = {"host_dr": host_dr_queue, "ofan": ofan_queue}


def scenarios(preset: Preset, policy: str) -> list[Scenario]:
    """Return 4 MB permutations on 1,024 hosts."""
    return grid(
        {"fabric__k": K, "collective__message_bytes": MESSAGE_BYTES}, (policy,), preset.seeds()
    )


def layers(frame: pl.DataFrame, column: str = "sending") -> dict[str, Estimate]:
    """Return the average queue of every layer over the seeds."""
    rows = np.array(frame[column].to_list())
    return {layer: estimate(rows[:, index]) for index, layer in enumerate(SWITCH_LAYERS)}


def draw(frame: pl.DataFrame, policy: str) -> dict[str, Any]:
    """Draw the layers' queues as bars, and both models of edges' and cores' links as lines."""
    picture, axes = style.panel(4, 3.2)
    queues = layers(frame)
    for index, (layer, queue) in enumerate(queues.items()):
        axes.bar(
            index,
            queue.mean,
            yerr=queue.half,
            color=style.colour(policy),
            edgecolor="#333333",
            linewidth=0.5,
            width=0.6,
        )

        axes.text(
            index, queue.mean / 2, f"{queue.mean:.2f}", ha="center", fontsize=7.5, color="white"
        )
        # Of a host's own link, too: the appendix compares both downlink layers of edges.
        model = MODELS[policy](K, core=layer in CORE_LAYERS)
        _line(axes, index, height=model.mean_packets(), dashes="-", text="N D/D/1, exact")
        _line(axes, index, height=model.bridge_mean_packets(), dashes=":", text="Gaussian bridge")

    axes.set_xticks(range(len(queues)), list(queues))
    axes.set_ylabel("average queue (packets)")
    # Bars with their whiskers or the highest lines, the bridge's.
    axes.set_ylim(0, 1.12 * max(max(queue.high for queue in queues.values()), _highest(policy)))
    style.legend_above(picture, axes, columns=2)

    return {"": picture}


def _line(axes: Any, x: int, height: float, dashes: str, text: str) -> None:
    name = text if x == 0 else None
    axes.plot(
        [x - 0.42, x + 0.42],
        [height, height],
        color=style.BOUND,
        linestyle=dashes,
        linewidth=1.5,
        label=name,
    )


def _highest(policy: str) -> float:
    return max(MODELS[policy](K, core=core).bridge_mean_packets() for core in (False, True))


def described(estimates: dict[str, Estimate], policy: str) -> str:
    """Return every layer's queue with its model's."""
    edge, core = (MODELS[policy](K, core=is_core) for is_core in (False, True))
    queues = ", ".join(f"{layer} {queue:.2f}" for layer, queue in estimates.items())
    return (
        f"{queues} packets; models: edge {_both(edge)}, core {_both(core)} "
        f"({estimates['E>A'].count} seeds)"
    )


def _both(model: PeriodicFlows) -> str:
    return f"{model.mean_packets():.2f} (bridge {model.bridge_mean_packets():.2f})"


def off_estimate(estimates: Estimate, model: PeriodicFlows) -> Estimate:
    """Return the same with its interval."""
    mean = model.mean_packets()
    return Estimate(estimates.mean / mean - 1, estimates.half / mean, estimates.count)


def off(estimates: Estimate, model: PeriodicFlows) -> float:
    """Return how far the measured mean is from the exact model's, in parts of the model's."""
    return estimates.mean / model.mean_packets() - 1
