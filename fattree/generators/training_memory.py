"""What a training step takes of a GPU's memory.

Of each parameter 2 bytes, its gradient, and 12 bytes of the optimizer's state (a copy of 4 bytes,
momentum and variance), as in mixed precision with Adam (Rajbhandari et al. 2020, 3.1). In ZeRO's
first stage the replicas share the optimizer's state, in its third all of it; parts of weights that
the third stage gathers are left out.

Of each token and layer, what its backward pass needs of its forward pass: 34 h bytes in a GPT
(Korthikanti et al. 2022, 4.2, with sequence parallelism and without scores of attention, which are
computed again); here 18 h and 2 bytes for each column of the feed-forward matrices that a token
meets, which is the same where these are 4 h wide and have no gate. With recomputation only the
layer's input is kept, 2 h.
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
    """Return the memory that a GPU of each stage needs."""
    whole = replace(step, scale=1)
    return [
        Memory(states=_states(whole, stage), activations=_activations(model, whole, number))
        for number, stage in enumerate(stages(model, whole))
    ]


def _states(step: Step, stage: Stage) -> float:
    parts = ((stage.dense, step.data), (stage.expert, step.data // step.experts))
    held = BYTES + step.gradient_bytes
    if step.zero == 3:
        return sum(size / BYTES * (held + OPTIMIZER) / replicas for size, replicas in parts)

    return sum(size / BYTES * (held + OPTIMIZER / replicas) for size, replicas in parts)


def _activations(model: Model, step: Step, number: int) -> float:
    """Return the bytes of a stage's microbatches that are under way together."""
    first, end = step.layers(model, number)
    tokens = step.microbatch * step.sequence
    under_way = min(step.pipeline - number, step.microbatches)
    of_token = sum(_of_layer(model, step, layer) for layer in range(first, end))
    return under_way * tokens * of_token / step.tensor


def _of_layer(model: Model, step: Step, layer: int) -> float:
    if step.recompute:
        return BYTES * model.hidden

    # Each expert has an input of its own.
    met = model.active(layer) - model.attention
    inputs = model.chosen * BYTES * model.hidden if layer in model.sparse else 0
    return KEPT * model.hidden + inputs + BYTES * met / model.hidden


def fitting(model: Model, step: Step, gigabytes: float | None = None) -> str:
    """Return what a GPU needs, in words; raises TrafficError where that is more than it has."""
    needed = memory(model, step)
    stage = max(range(len(needed)), key=lambda number: needed[number].total)
    most = needed[stage]
    said = (
        f"{most.total / GIGABYTE:,.1f} GB of a GPU's memory (stage {stage}): "
        f"{most.states / GIGABYTE:,.1f} of parameters, gradients and optimizer, "
        f"{most.activations / GIGABYTE:,.1f} of activations"
    )
    if gigabytes is not None and most.total > gigabytes * GIGABYTE:
        more = "" if step.recompute else ", or --recompute"
        raise TrafficError(
            f"a step needs {said}; there are {gigabytes:,g}: more --tp, --pp or --ep{more}"
        )

    return said
