"""A result as a picture."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from fattree.shape.topology import SWITCH_LAYERS
from fattree.units import time_unit
from sim.runs.layers import by_layer
from sim.runs.shown import title

if TYPE_CHECKING:
    from sim.runs.results import Result


class Picture(Figure):
    """A figure that a notebook shows, also where it shows no figures of Matplotlib's."""

    def _repr_png_(self) -> bytes:
        data = io.BytesIO()
        self.savefig(data, format="png", dpi=100)
        return data.getvalue()


def plot(result: Result) -> Picture:
    """Return the distribution of flows' times, and each layer's longest queue."""
    unit, unit_ps = time_unit([result.cct_ps])
    times = np.sort(result.done_ps - result.start_ps) / unit_ps
    figure = Picture(figsize=(8, 3), layout="constrained")
    of_times, of_queues = figure.subplots(1, 2)
    of_times.step(times, 100 * np.arange(1, len(times) + 1) / len(times), where="post")
    of_times.set_xlabel(f"flow completion time ({unit})")
    of_times.set_ylabel("flows complete (%)")
    of_times.set_ylim(0, 102)

    longest = by_layer(result.scenario.tree, result.ports.max_queue_bytes)
    packets = [layer.max(initial=0) / result.scenario.data_bytes for layer in longest]
    of_queues.barh(SWITCH_LAYERS, packets)
    of_queues.invert_yaxis()
    of_queues.set_xlabel("longest queue (packets)")
    figure.suptitle(f"{title(result)}: {100 * result.increase:.1f} % over the bound", fontsize=9)
    return figure
