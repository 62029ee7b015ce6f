"""How a model is spread over GPUs, and what a GPU of each pipeline stage does and tells in a pass.

The formulas and their sources are in `fattree.generators.training`.
"""

from dataclasses import dataclass

from fattree.errors import TrafficError
from fattree.generators.model import Model
from fattree.units import PS_PER_SECOND

# bfloat16.
BYTES = 2


@dataclass(frozen=True, slots=True)
class Step:
    """How a model is spread and what a GPU does; `batch` is in sequences, of all replicas.

    `teraflops` is what a GPU makes of its peak, `nvlink_gbs` GB/s in one direction. `server` is how
    many GPUs one has (0: as many as tensor parallelism). A token's experts are on at most
    `token_servers` servers (0: on any, and the token goes to each expert by itself).
    `dispatch_bytes` and `gradient_bytes` are those of a number on its way. With `recompute` a
    backward pass makes its forward pass again before. `zero` is ZeRO's stage: 1, or 3.
    """

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    experts: int = 1
    batch: int = 1
    microbatch: int = 1
    sequence: int = 4096
    teraflops: float = 400
    nvlink_gbs: float = 450
    buckets: int = 4
    scale: int = 1
    server: int = 0
    token_servers: int = 0
    dispatch_bytes: int = BYTES
    gradient_bytes: int = BYTES
    recompute: bool = False
    zero: int = 1

    @property
    def ranks(self) -> int:
        """Return the number of GPUs."""
        return self.tensor * self.pipeline * self.data

    @property
    def microbatches(self) -> int:
        """Return how many microbatches a replica has."""
        return self.batch // (self.data * self.microbatch)

    @property
    def gpus_per_server(self) -> int:
        """Return how many GPUs a server has."""
        return self.server or self.tensor

    @property
    def replicas_per_server(self) -> int:
        """Return how many replicas of a stage a server has."""
        return self.gpus_per_server // self.tensor

    @property
    def expert_servers(self) -> int:
        """Return over how many servers a group of experts is spread."""
        return max(self.experts // self.replicas_per_server, 1)

    def layers(self, model: Model, stage: int) -> tuple[int, int]:
        """Return the first layer of a stage, and that behind its last."""
        first, end = (at * model.layers // self.pipeline for at in (stage, stage + 1))
        return first, end

    def rank(self, tensor: int, data: int, stage: int) -> int:
        """Return a GPU's number."""
        return tensor + self.tensor * (data + self.data * stage)


@dataclass(frozen=True, slots=True)
class Stage:
    """What a rank of a pipeline stage does in a pass, and has to tell, as ps and bytes (scaled).

    `exchanges` are the bytes of dispatch and combine to each other rank, or to each of its place in
    other servers; `exchange_ps` is the time that both take in servers. `dense` and `expert` are
    the bytes of weights.
    """

    forward_ps: int
    activation: int
    exchanges: tuple[int, int]
    exchange_ps: int
    dense: int
    expert: int


def check(model: Model, step: Step) -> None:
    """Raise TrafficError for what cannot be spread like this."""
    for whole, part, what in (
        (step.batch, step.data * step.microbatch, "the batch over replicas and microbatches"),
        (step.data, step.experts, "the replicas over the groups of experts"),
        (model.experts or step.experts, step.experts, "the experts over their ranks"),
    ):
        if whole % part or whole < part:
            raise TrafficError(f"{whole} cannot be divided by {part}: {what}")

    if max(step.experts, step.token_servers) > 1 and not model.experts:
        raise TrafficError("--ep and --token-servers: this model has no experts")

    if step.zero == 3 and step.experts > 1:
        raise TrafficError("--zero 3 has all experts on every replica: not with --ep above 1")

    _check_servers(model, step)
    if step.pipeline > model.layers:
        raise TrafficError(f"{model.layers} layers are too few for {step.pipeline} stages")


def _check_servers(model: Model, step: Step) -> None:
    server, replicas = step.gpus_per_server, step.replicas_per_server
    if server % step.tensor or (step.tensor * step.data) % server:
        raise TrafficError(
            f"servers of {server} GPUs: must have whole replicas (tp {step.tensor}) of one stage "
            f"(tp {step.tensor} x dp {step.data})"
        )

    if step.experts % replicas and replicas % step.experts:
        raise TrafficError(
            f"experts over {step.experts} replicas, of which a server has {replicas}: "
            "one must be a multiple of the other"
        )

    most = min(step.expert_servers, model.chosen)
    if step.token_servers > most:
        raise TrafficError(
            f"a token cannot go to {step.token_servers} servers: its {model.chosen} experts are "
            f"spread over {step.expert_servers}"
        )


def stages(model: Model, step: Step) -> list[Stage]:
    """Return what each stage does: as many layers, or one more; embeddings at both ends."""
    return [_stage(model, step, number) for number in range(step.pipeline)]


def _stage(model: Model, step: Step, number: int) -> Stage:
    layers = range(*step.layers(model, number))
    share = len(layers)
    sparse = len(model.sparse.intersection(layers))
    tokens = step.microbatch * step.sequence
    is_last = number == step.pipeline - 1

    # The last stage multiplies with the vocabulary; looking words up costs nothing.
    weights = sum(model.active(layer) for layer in layers) + is_last * model.embedding
    attended = model.attended * sum(model.context(layer, step.sequence) for layer in layers)
    work = 2 * tokens * (weights + attended) / step.tensor
    inside = 2 * (step.tensor - 1) / step.tensor * 2 * share * tokens * model.hidden * BYTES
    seconds = work / (step.teraflops * 1e12) + inside / (step.nvlink_gbs * 1e9)

    ends = (number == 0) + (is_last and (model.embeddings > 1 or step.pipeline > 1))
    dense = share * model.attention + (share - sparse) * model.feed_forward
    dense += sparse * (model.shared + model.router) + ends * model.embedding
    moved = tokens * model.hidden / step.tensor
    scale = step.scale
    ways = [_exchanged(model, step, sparse * moved * size) for size in (step.dispatch_bytes, BYTES)]
    return Stage(
        forward_ps=round(seconds * PS_PER_SECOND / scale),
        activation=_scaled(moved * BYTES, scale),
        exchanges=(_scaled(ways[0][0], scale), _scaled(ways[1][0], scale)),
        exchange_ps=round(
            sum(inside for _, inside in ways) / (step.nvlink_gbs * 1e9) * PS_PER_SECOND / scale
        ),
        dense=_scaled(dense * BYTES / step.tensor, scale),
        expert=_scaled(
            sparse * model.experts * model.expert * BYTES / (step.experts * step.tensor), scale
        ),
    )


def _exchanged(model: Model, step: Step, moved: float) -> tuple[float, float]:
    """Return the bytes of one exchange to each rank of other servers, and those inside a server.

    `moved` are those of a rank's tokens, each once. With a limit of servers a rank has one partner
    in each of them.
    """
    replicas = min(step.replicas_per_server, step.experts)
    each = model.chosen * moved / step.experts
    if not step.token_servers:
        return each, each * (replicas - 1)

    inside = model.chosen * moved * (replicas - 1) / replicas
    return step.token_servers * moved / step.expert_servers, inside


def _scaled(size: float, scale: int) -> int:
    return max(1, round(size / scale)) if size else 0
