"""Ofan's average queues against N D/D/1 of its pointers, and how many there are (appendix F)."""

import numpy as np

from reproduction.figures import layer_models
from reproduction.figures.layer_models import CORE_LAYERS, TOLERANCE, K, layers, off, off_estimate
from reproduction.report.claims import CLAIMS, decide
from reproduction.report.figure import Data, Figure, Verdict
from reproduction.report.measures.queues import queues_while_sending
from reproduction.report.schemes import not_so, seeds_of
from reproduction.report.statistics import estimate
from reproduction.theory import expected_pointers_of_edge, ofan_queue, pointers_of_agg

POLICY = "ofan"
# The expectation is a formula, so only its sampling is allowed for.
COUNTED = 0.02


def claims(data: Data) -> list[Verdict]:
    """Decide C20."""
    queues = layers(data.frame)
    edge = ofan_queue(K, core=False)
    core = ofan_queue(K, core=True)
    counts = np.array(data.frame["pointers"].to_list())
    # Means over all edges and pods of a run, as the appendix's expectations are.
    of_edge = estimate(counts[:, 0])
    of_agg = estimate(counts[:, 1])
    other_layers = {
        layer: off(queues[layer], core if layer in CORE_LAYERS else edge)
        for layer in (*CORE_LAYERS, "A>E")
    }
    errors = off_estimate(queues["E>A"], edge)
    checks = {
        "the model is within 15 % at E>A": errors.within(
            -TOLERANCE, TOLERANCE, CLAIMS["C20"].margin
        ),
        "every other layer is further from its model": all(
            abs(share) > abs(errors.mean) for share in other_layers.values()
        ),
        "edges have about k/2 - 1/4 pointers": estimate(counts[:, 0] / (K / 2 - 1 / 4) - 1).within(
            -COUNTED, COUNTED
        ),
        "aggregations have at most k - 1": of_agg.below(pointers_of_agg(K)),
    }

    return [
        Verdict(
            "C20",
            decide(list(checks.values())),
            f"{layer_models.described(queues, POLICY)}; E>A {100 * off(queues['E>A'], edge):+.0f} "
            "% off the model, others "
            + ", ".join(f"{layer} {100 * share:+.0f} %" for layer, share in other_layers.items())
            + f"; pointers in use per edge {of_edge:.3f} (k/2 - 1/4 = {K / 2 - 1 / 4}, formula "
            f"{expected_pointers_of_edge(K):.3f}), per aggregation {of_agg:.2f} (at most "
            f"{pointers_of_agg(K)})",
            "edge model holds well, others are poorer; about k/2 - 1/4 and at most k - 1 pointers",
            why=not_so(checks),
            seeds=seeds_of(data.frame),
        )
    ]


FIGURE = Figure(
    name="ofan_model",
    title="Queue models of Ofan",
    paper="Figure 19 (model of Ofan), appendix F",
    caption="As for Host DR, with Ofan; the models take every pointer in use as one periodic flow.",
    scenarios=lambda preset: layer_models.scenarios(preset, POLICY),
    draw=lambda data: layer_models.draw(data.frame, POLICY),
    claims=claims,
    measure=queues_while_sending,
)
