"""The memory of a GPU in a training step.

Of each parameter 2 bytes, its gradient, and 12 bytes of the optimizer's state (a copy of 4 bytes,
momentum and variance), as in mixed precision with Adam (Rajbhandari et al. 2020, 3.1). In ZeRO's
first stage the replicas share the optimizer's state, in its second gradients, too, in its third all
of it; parts of weights that the third stage gathers are left out.

Of each token and layer, a backward pass needs of its forward pass: 34 h bytes in a GPT
(Korthikanti et al. 2022, 4.2, with sequence parallelism and without scores of attention, which are
computed again); here 18 h and 2 bytes for each column of the feed-forward matrices that a token
meets, which is the same where these are 4 h wide and have no gate. With recomputation only the
layer's input is kept, 2 h. With V chunks a GPU more passes are under way, each of a V-th of its
layers: at the first stage P + (P - 1) / V microbatches' worth (Narayanan et al. 2021, 2.2); with a
zero bubble as many at every stage as else at the first (Qi et al. 2023, 2.1). In DualPipe a GPU
has weights and gradients of two stages, and P + 1 microbatches of one or the other (DeepSeek-V3
2024, 3.2.1); the replicas at both places of a stage share its optimizer's state.
"""

from dataclasses import dataclass, replace

from fattree.errors import TrafficError
from fattree.generators.model import Model
from fattree.generators.training_stages import BYTES, Stage, Step, stages

OPTIMIZER = 12
# Inputs of attention and of the feed-forward layer, queries, keys, values, norms and masks.
KEPT = 18
GIGABYTE = 1e9


@dataclass(frozen=True, slots=True)
class Memory:
    """The bytes of a stage's GPU: of parameters with all that belongs to them, and of tokens."""

    states: float
    activations: float

    @property
    def total(self) -> float:
        """Return all of it."""
        return self.states + self.activations


def memory(model: Model, step: Step) -> list[Memory]:
    """Return the memory that a GPU of each place in the pipeline needs."""
    whole = replace(step, scale=1)
    all_stages = stages(model, whole)
    return [
        Memory(
            states=sum(_states(whole, all_stages[stage]) for stage in _held(whole, position)),
            activations=_activations(model, whole, position),
        )
        for position in range(step.pipeline)
    ]


def _held(step: Step, pipe_rank: int) -> list[int]:
    """Return the stages of which a GPU has weights."""
    return [step.stage(pipe_rank, chunk) for chunk in range(step.chunks)]


def _states(step: Step, stage: Stage) -> float:
    holders = step.replicas * step.copies
    parts = ((stage.dense, holders), (stage.expert, holders // step.experts))
    # The state that replicas share, by the first of ZeRO's stages in which they do.
    states = ((OPTIMIZER, 1), (step.gradient_bytes, 2), (BYTES, 3))
    return sum(
        size / BYTES * held / (replicas if step.zero >= since else 1)
        for size, replicas in parts
        for held, since in states
    )


def _activations(model: Model, step: Step, pipe_rank: int) -> float:
    """Return the bytes of a GPU's microbatches that are under way together."""
    of_token = sum(
        _of_layer(model, step, layer)
        for stage in _held(step, pipe_rank)
        for layer in range(*step.layers(model, stage))
    )
    return _under_way(step, pipe_rank) * step.tokens * of_token / step.tensor


def _under_way(step: Step, pipe_rank: int) -> float:
    """Return how many microbatches a GPU has activations of, those of one chunk as a part."""
    if step.dual_pipe:
        # Of either direction as many in the mean, each of one of the GPU's two stages.
        return (step.pipeline + 1) / 2

    if step.zero_bubble:
        return min(step.pipeline, step.microbatches)

    if step.virtual == 1:
        return min(step.pipeline - pipe_rank, step.microbatches)

    early = 2 * (step.pipeline - 1 - pipe_rank) + (step.virtual - 1) * step.pipeline
    return min((early + 1) / step.virtual, step.microbatches)


def _of_layer(model: Model, step: Step, layer: int) -> float:
    if step.recompute:
        return BYTES * model.hidden

    # Each expert has an input of its own.
    met = model.active(layer) - model.attention
    inputs = model.chosen * BYTES * model.hidden if layer in model.sparse else 0
    return KEPT * model.hidden + inputs + BYTES * met / model.hidden


def fitting(model: Model, step: Step, gigabytes: float | None = None) -> str:
    """Return a GPU's memory in words; raises TrafficError where it needs more than it has."""
    needed = memory(model, step)
    stage = max(range(len(needed)), key=lambda number: needed[number].total)
    largest = needed[stage]
    said = (
        f"{largest.total / GIGABYTE:,.1f} GB of a GPU's memory (stage {stage}): "
        f"{largest.states / GIGABYTE:,.1f} of parameters, gradients and optimizer, "
        f"{largest.activations / GIGABYTE:,.1f} of activations"
    )
    if gigabytes is not None and largest.total > gigabytes * GIGABYTE:
        spread = "--tp, --pp or --ep" if model.experts else "--tp or --pp"
        options = {"--zero 3": step.data > 1 and step.zero < 3, "--recompute": not step.recompute}
        advice = spread + "".join(f", or {option}" for option, helps in options.items() if helps)
        raise TrafficError(f"a step needs {said}; there are {gigabytes:,g}: more {advice}")

    return said
