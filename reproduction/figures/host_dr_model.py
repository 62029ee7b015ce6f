"""Host DR's average queues against the N D/D/1 model of appendix E."""

from reproduction.figures import layer_models
from reproduction.figures.layer_models import CORE_LAYERS, TOLERANCE, K, layers, off, off_estimate
from reproduction.report.claims import CLAIMS, decide
from reproduction.report.figure import Data, Figure, Verdict
from reproduction.report.measures.queues import queues_while_sending
from reproduction.report.statistics import every
from reproduction.theory import host_dr_queue

POLICY = "host_dr"


def claims(data: Data) -> list[Verdict]:
    """Decide C19."""
    found = layers(data.frame)
    steady = layers(data.frame, "steady")  # without the first packets, for the evidence only
    edge = host_dr_queue(K, core=False)
    core = host_dr_queue(K, core=True)
    # "Very close" at E>A, "a bit pessimistic in the core": the model is above what is measured.
    margin = CLAIMS["C19"].margin
    checks = [
        off_estimate(found["E>A"], edge).within(-TOLERANCE, TOLERANCE, margin),
        every(off_estimate(found[layer], core).below(0, margin) for layer in CORE_LAYERS),
    ]

    above = [layer for layer in CORE_LAYERS if off(steady[layer], core) >= 0]
    cores = ", ".join(f"{layer} {100 * off(found[layer], core):+.0f} %" for layer in CORE_LAYERS)
    middle = ", ".join(f"{layer} {queue:.2f}" for layer, queue in steady.items())
    return [
        Verdict(
            "C19",
            verdict=decide(checks),
            ours=(
                f"{layer_models.described(found, POLICY)}; E>A "
                f"{100 * off(found['E>A'], edge):+.0f} % off the model, core {cores}"
            ),
            seeds=found["E>A"].count,
            paper="very close at E>A, a bit pessimistic in the core",
            why=(
                "The average is over the time in which hosts send, as in section 5.1, so it "
                "includes the first packets' way."
            ),
            evidence=f"in the middle of the runs alone: {middle}"
            + (f"; there {', '.join(above)} is not below the model" if above else ""),
        )
    ]


FIGURE = Figure(
    name="host_dr_model",
    title="Queue models of Host DR",
    paper="fig. drbmodel, appendix E",
    caption=(
        "Average queue of each layer of switch ports while hosts send; 4 MB permutations on "
        "1,024 hosts. Lines: N D/D/1 with the expected number of flows, for edge and core links."
    ),
    scenarios=lambda preset: layer_models.scenarios(preset, POLICY),
    draw=lambda data: layer_models.draw(data.frame, POLICY),
    claims=claims,
    measure=queues_while_sending,
)
