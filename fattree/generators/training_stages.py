"""A model's spread over GPUs, and the work and messages of each pipeline stage in a pass.

The formulas and their sources are in `fattree.generators.training`.
"""

from dataclasses import dataclass

from fattree.generators.model import Model
from fattree.units import PS_PER_SECOND

# bfloat16.
BYTES = 2
# A backward pass makes gradients of inputs and of weights, each the work of a forward pass.
BACKWARD = 2
# Of tensor parallelism, in each layer and pass: one behind attention, one behind the feed-forward
# layer, and backward one before each (Shoeybi et al. 2019).
ALL_REDUCES = 2


@dataclass(frozen=True, slots=True)
class Step:
    """The distribution of a model over GPUs; `batch` is in sequences, of all replicas.

    `virtual` is how many chunks of layers a GPU has of its pipeline; with `zero_bubble` gradients
    of weights wait until nothing else can go on; with `dual_pipe` microbatches go through it from
    both ends, and each stage is on two GPUs; with `thin_ends` embedding and vocabulary count as
    a layer each where layers are spread. `context` GPUs have a part of each sequence.

    `teraflops` is the rate that a GPU reaches, `nvlink_gbs` GB/s in one direction. A server has
    `server` GPUs (0: as many as tensor parallelism). A token's experts are on at most
    `token_servers` servers (0: on any, and the token goes to each expert by itself).
    `dispatch_bytes` and `gradient_bytes` are those of a number on its way. With `by_layer` each
    layer has exchanges of its own, where otherwise those of a pass are one. With `recompute` a
    backward pass makes its forward pass again before. `zero` is ZeRO's stage: 1, 2 or 3. With
    `tensor_overlap` tensor parallelism's all-reduces go on beside multiplications.

    Uneven parts: tokens choose experts by `shares` (of each expert, or of each of their
    ranks), or by Zipf's law of exponent `skew`; a computation takes longer by `jitter` of itself in
    the mean, and on `stragglers` GPUs `slowdown` times as long. All of it is drawn by the `seed`.
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
    tensor_overlap: bool = False
    zero: int = 1
    virtual: int = 1
    zero_bubble: bool = False
    dual_pipe: bool = False
    thin_ends: bool = False
    context: int = 1
    by_layer: bool = False
    skew: float = 0
    shares: tuple[float, ...] = ()
    jitter: float = 0
    stragglers: int = 0
    slowdown: float = 1.5
    seed: int = 1

    @property
    def ranks(self) -> int:
        """Return the number of GPUs."""
        return self.tensor * self.pipeline * self.replicas

    @property
    def replicas(self) -> int:
        """Return how many GPUs have the same weights: all parts of context of all replicas."""
        return self.data * self.context

    @property
    def stages(self) -> int:
        """Return the number of stages, of all chunks."""
        return self.pipeline * self.virtual

    @property
    def chunks(self) -> int:
        """Return how many stages a GPU has weights of."""
        return 2 if self.dual_pipe else self.virtual

    @property
    def copies(self) -> int:
        """Return how many places of the pipeline have a stage."""
        return 2 if self.dual_pipe else 1

    @property
    def tokens(self) -> int:
        """Return the tokens of a microbatch that a GPU has."""
        return self.microbatch * self.sequence // self.context

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
        # With thin ends one more is at either end, of which the bounds take nothing.
        more = int(self.thin_ends)
        slots = model.layers + 2 * more
        first, end = (edge * slots // self.stages - more for edge in (stage, stage + 1))
        return max(first, 0), min(end, model.layers)

    def stage(self, position: int, chunk: int) -> int:
        """Return the stage of a GPU's chunk; the second of two directions begins at the end."""
        if self.dual_pipe:
            return self.pipeline - 1 - position if chunk else position

        return position + self.pipeline * chunk

    def place(self, stage: int, chunk: int) -> int:
        """Return the place in the pipeline of a stage, of two directions that of its chunk."""
        return self.stage(stage, chunk) if self.dual_pipe else stage % self.pipeline

    def rank(self, tensor: int, data: int, stage: int) -> int:
        """Return a GPU's number."""
        return tensor + self.tensor * (data + self.replicas * stage)


@dataclass(frozen=True, slots=True)
class Stage:
    """The work of a rank of a pipeline stage in a pass, and its messages, in ps and bytes (scaled).

    `forward_ps` and `backward_ps` are multiplications, and the time of tensor parallelism's
    all-reduces beyond them, without recomputation and without exchanges of experts.
    `expert_ps` is the part of a forward pass that routed experts take, `weights_ps` that of a
    backward pass which makes gradients of weights. `exchanges` are the bytes of dispatch and
    combine to each other rank, or to each of its place in other servers; `exchange_ps` is the time
    that both take in servers. `keys` are the bytes of a part's keys and values. `dense` and
    `expert` are the bytes of weights. `first` and `end` are its layers.
    """

    forward_ps: int
    backward_ps: int
    expert_ps: int
    weights_ps: int
    activation: int
    exchanges: tuple[int, int]
    exchange_ps: int
    keys: int
    dense: int
    expert: int
    first: int
    end: int


def stages(model: Model, step: Step) -> list[Stage]:
    """Return each stage's work: as many layers, or one more; embeddings at both ends."""
    return [_stage(model, step, number) for number in range(step.stages)]


def _stage(model: Model, step: Step, number: int) -> Stage:
    first, end = step.layers(model, number)
    layers = range(first, end)
    share = len(layers)
    sparse = len(model.sparse.intersection(layers))
    tokens = step.tokens
    is_last = number == step.stages - 1

    # The last stage multiplies with the vocabulary; looking words up costs nothing.
    weights = sum(model.active(layer) for layer in layers) + is_last * model.embedding
    attended = model.attended * sum(model.context(layer, step.sequence) for layer in layers)
    seconds_each = 2 * tokens / (step.tensor * step.teraflops * 1e12)
    computed = (weights + attended) * seconds_each
    # As many all-reduces backward as forward, though the work is twice as much.
    inside = 2 * (step.tensor - 1) / step.tensor * ALL_REDUCES * share * tokens * model.hidden
    reduced = inside * BYTES / (step.nvlink_gbs * 1e9)
    if step.tensor_overlap:
        reduced -= sum(_hidden_seconds(model, step, layer) for layer in layers)

    ends = (number == 0) + (is_last and (model.embeddings > 1 or step.pipeline > 1))
    dense = share * model.attention + (share - sparse) * model.feed_forward
    dense += sparse * (model.shared + model.router) + ends * model.embedding
    moved = tokens * model.hidden / step.tensor
    scale = step.scale
    ways = [_exchanged(model, step, sparse * moved * size) for size in (step.dispatch_bytes, BYTES)]

    def ps(seconds: float) -> int:
        return round(seconds * PS_PER_SECOND / scale)

    return Stage(
        forward_ps=ps(computed + reduced),
        backward_ps=ps(BACKWARD * computed + reduced),
        expert_ps=ps(sparse * model.chosen * model.expert * seconds_each),
        weights_ps=ps(weights * seconds_each),
        activation=_scaled(moved * BYTES, scale),
        exchanges=(_scaled(ways[0][0], scale), _scaled(ways[1][0], scale)),
        exchange_ps=ps(sum(inside for _, inside in ways) / (step.nvlink_gbs * 1e9)),
        keys=_scaled(share * tokens * model.keys * BYTES / step.tensor, scale),
        dense=_scaled(dense * BYTES / step.tensor, scale),
        expert=_scaled(
            sparse * model.experts * model.expert * BYTES / (step.experts * step.tensor), scale
        ),
        first=first,
        end=end,
    )


def _hidden_seconds(model: Model, step: Step, layer: int) -> float:
    """Return how much of a layer's all-reduces over NVLink takes no time of its own in a pass.

    Before the first matrix of a block is an all-gather, behind its last one a reduce-scatter: the
    halves of an all-reduce. Both are in T parts, as the matrix is, and each part but one goes on
    while another is multiplied. A backward pass hides as much, behind gradients of inputs.
    """
    tensor = step.tensor
    matrices = [model.attention - model.attention_out, model.attention_out]
    # Experts' matrices are no such block.
    if layer not in model.sparse:
        matrices += [model.feed_forward - model.feed_forward_out, model.feed_forward_out]

    sent = step.tokens * model.hidden * BYTES / tensor / (step.nvlink_gbs * 1e9)
    multiplied = 2 * step.tokens / (tensor * step.teraflops * 1e12) / tensor
    return (tensor - 1) * sum(min(sent, weights * multiplied) for weights in matrices)


def _exchanged(model: Model, step: Step, moved: float) -> tuple[float, float]:
    """Return the bytes of one exchange to each rank of other servers, and those inside a server.

    `moved` are those of a rank's tokens, each once. With a limit of servers a rank has one partner
    in each of them.
    """
    replicas = min(step.replicas_per_server, step.experts)
    bytes_each = model.chosen * moved / step.experts
    if not step.token_servers:
        return bytes_each, bytes_each * (replicas - 1)

    inside = model.chosen * moved * (replicas - 1) / replicas
    return step.token_servers * moved / step.expert_servers, inside


def _scaled(size: float, scale: int) -> int:
    return max(1, round(size / scale)) if size else 0
