"""Host DR's average queues against the N D/D/1 model of appendix E."""

from reproduction.figures import layer_models
from reproduction.figures.layer_models import (
    CORE_LAYERS,
    DOWN_LAYERS,
    LOOSE,
    TOLERANCE,
    K,
    layers,
    off,
    off_estimate,
)
from reproduction.report.claims import CLAIMS, decide
from reproduction.report.figure import Data, Figure, Verdict
from reproduction.report.measures.queues import queues_while_sending
from reproduction.report.schemes import not_so
from reproduction.report.statistics import every
from reproduction.theory import host_dr_queue

POLICY = "host_dr"


def claims(data: Data) -> list[Verdict]:
    """Decide C19."""
    queues = layers(data.frame)
    steady = layers(data.frame, "steady")  # without the first packets, for the evidence only
    edge = host_dr_queue(K, core=False)
    core = host_dr_queue(K, core=True)
    # "Very close" at E>A, "a bit pessimistic in the core": the model is above the measured queue.
    margin = CLAIMS["C19"].margin
    checks: dict[str, bool | None] = {
        "E>A is within 15 % of the model": off_estimate(queues["E>A"], edge).within(
            -TOLERANCE, TOLERANCE, margin
        ),
        "the core's model is above both of its layers": every(
            off_estimate(queues[layer], core).below(0, margin) for layer in CORE_LAYERS
        ),
    }
    # "The two downlink edge layers are relatively close to the model as well."
    down = {
        f"{layer} is within 25 % of the model": off_estimate(queues[layer], edge).within(
            -LOOSE, LOOSE, margin
        )
        for layer in DOWN_LAYERS
    }

    above = [layer for layer in CORE_LAYERS if off(steady[layer], core) >= 0]
    cores = ", ".join(f"{layer} {100 * off(queues[layer], core):+.0f} %" for layer in CORE_LAYERS)
    middle = ", ".join(f"{layer} {queue:.2f}" for layer, queue in steady.items())
    return [
        Verdict(
            "C19",
            verdict=decide([*checks.values(), *down.values()]),
            ours=(
                f"{layer_models.described(queues, POLICY)}; E>A "
                f"{100 * off(queues['E>A'], edge):+.0f} % off the model, core {cores}, downlinks "
                + ", ".join(
                    f"{layer} {100 * off(queues[layer], edge):+.0f} %" for layer in DOWN_LAYERS
                )
            ),
            seeds=queues["E>A"].count,
            paper="very close at E>A, a bit pessimistic in the core, downlinks relatively close",
            why=" ".join(
                filter(
                    None,
                    [
                        not_so(checks | down),
                        "The average is over the time in which hosts send, as in section 6.1, so "
                        "it includes the first packets' way.",
                    ],
                )
            ),
            evidence=f"in the middle of the runs alone: {middle}"
            + (f"; there {', '.join(above)} is not below the model" if above else ""),
        ),
        Verdict(
            "C19",
            verdict=decide(list(checks.values())),
            ours="E>A and the core alone",
            criterion=(
                "E>A within 15 %; core: model above measurement (the first form, which left out "
                "the downlinks)"
            ),
            seeds=queues["E>A"].count,
        ),
    ]


FIGURE = Figure(
    name="host_dr_model",
    title="Queue models of Host DR",
    paper="Figure 17 (model of Host DR), appendix E",
    caption=(
        "Average queue of each layer of switch ports while hosts send; 4 MB permutations on "
        "1,024 hosts. Lines: N D/D/1 with the expected number of flows, for edge and core links."
    ),
    scenarios=lambda preset: layer_models.scenarios(preset, POLICY),
    draw=lambda data: layer_models.draw(data.frame, POLICY),
    claims=claims,
    measure=queues_while_sending,
)
