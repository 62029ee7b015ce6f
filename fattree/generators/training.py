"""One training step of a model on many GPUs, as a graph of transfers and computations.

Ranks are numbered tensor first, then data, then pipeline: rank = t + T (d + D p). A server has as
many GPUs as tensor parallelism, which does not leave it. Per microbatch of b sequences of s tokens,
and layer, with L layers in all and hidden size h:

    forward work    2 b s (active weights) + 2 b s**2 (heads' dimensions): a multiplication and an
                    addition for every weight that a token meets, and for every earlier token (half
                    of all, as attention is causal) its score and its value (Kaplan et al. 2020;
                    Narayanan et al. 2021, appendix)
    backward work   twice that: gradients of inputs and of weights; hence 6 N D in all
    tensor          an all-reduce of 2 b s h bytes, twice forward and twice backward (Shoeybi et al.
                    2019), by ring in the server: 2 (T - 1) / T of it over NVLink, as time
    pipeline        2 b s h / T bytes from each rank to that of the next stage: scattered before,
                    gathered after (Narayanan et al. 2021, 4.1); one forward, one backward in turn
                    (1F1B, PipeDream-Flush)
    experts         b s / T tokens of each rank, each to its `chosen` experts, spread evenly over
                    the E ranks of its group: there (dispatch) and back (combine), forward and
                    backward (GShard, Lepikhin et al. 2020)
    data            a reduce-scatter of the stage's gradients and an all-gather of its weights, by
                    ring (ZeRO, Rajbhandari et al. 2020): dense ones among all D ranks, experts'
                    among the D / E that hold the same ones

The exchanges of all layers of a stage with experts are one dispatch and one combine a pass: as many
bytes, fewer and larger messages. The last backward pass is cut in `buckets`: the gradients of each
are on their way while the next are computed. `scale` divides all bytes and all computations; times
are those of the step divided by it, but for latencies.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from fattree.demand.workloads.graph import Graph, longest_ps, refuse_many
from fattree.errors import TrafficError
from fattree.files.memory import Room
from fattree.generators.building import Builder
from fattree.generators.model import Model
from fattree.units import PS_PER_SECOND

# bfloat16.
BYTES = 2
BACKWARD = 2


@dataclass(frozen=True, slots=True)
class Step:
    """How a model is spread and what a GPU does; `batch` is in sequences, of all replicas.

    `teraflops` is what a GPU makes of its peak, `nvlink_gbs` GB/s in one direction.
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

    @property
    def ranks(self) -> int:
        """Return the number of GPUs."""
        return self.tensor * self.pipeline * self.data

    @property
    def microbatches(self) -> int:
        """Return how many microbatches a replica has."""
        return self.batch // (self.data * self.microbatch)

    def rank(self, tensor: int, data: int, stage: int) -> int:
        """Return a GPU's number."""
        return tensor + self.tensor * (data + self.data * stage)


@dataclass(frozen=True, slots=True)
class Stage:
    """What a rank of a pipeline stage does in a pass, and has to tell, as ps and bytes (scaled)."""

    forward_ps: int
    activation: int
    exchange: int
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

    if step.pipeline > model.layers:
        raise TrafficError(f"{model.layers} layers are too few for {step.pipeline} stages")

    if step.experts > 1 and not model.experts:
        raise TrafficError("--ep: this model has no experts")


def stages(model: Model, step: Step) -> list[Stage]:
    """Return what each stage does: as many layers, or one more; embeddings at both ends."""
    return [_stage(model, step, number) for number in range(step.pipeline)]


def _stage(model: Model, step: Step, number: int) -> Stage:
    first, end = (at * model.layers // step.pipeline for at in (number, number + 1))
    layers = range(first, end)
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
    moved = tokens * model.hidden * BYTES / step.tensor
    scale = step.scale
    return Stage(
        forward_ps=round(seconds * PS_PER_SECOND / scale),
        activation=_scaled(moved, scale),
        exchange=_scaled(sparse * model.chosen * moved / step.experts, scale) if sparse else 0,
        dense=_scaled(dense * BYTES / step.tensor, scale),
        expert=_scaled(
            sparse * model.experts * model.expert * BYTES / (step.experts * step.tensor), scale
        ),
    )


def _scaled(size: float, scale: int) -> int:
    return max(1, round(size / scale)) if size else 0


def one_forward_one_backward(stage: int, stages: int, count: int) -> Iterator[tuple[bool, int]]:
    """Yield (is it forward, which microbatch), in the order in which a stage takes them."""
    early = min(stages - 1 - stage, count)
    yield from ((True, number) for number in range(early))
    for number in range(count - early):
        yield True, early + number
        yield False, number

    yield from ((False, number) for number in range(count - early, count))


def training_graph(model: Model, step: Step, room: Room | None = None) -> Graph:
    """Return the graph of a step; raises TrafficError for what cannot be spread like this."""
    check(model, step)
    # Each pass of a microbatch, and each part of the gradients, is at least a node of every rank.
    refuse_many((2 * step.microbatches + step.buckets) * step.ranks)
    return _Training(model, step, room or Room()).graph()


class _Training:
    """The graph while it is put together: what every rank has done last."""

    def __init__(self, model: Model, step: Step, room: Room) -> None:
        self._step = step
        self._stages = stages(model, step)
        self._builder = Builder(room=room)
        self._last: dict[int, list[int]] = {rank: [] for rank in range(step.ranks)}
        # What has come for a rank: (is it forward, microbatch, rank).
        self._arrived: dict[tuple[bool, int, int], int] = {}
        self._gradients: dict[int, list[list[int]]] = {rank: [] for rank in range(step.ranks)}

    def graph(self) -> Graph:
        step = self._step
        orders = [
            list(one_forward_one_backward(stage, step.pipeline, step.microbatches))
            for stage in range(step.pipeline)
        ]

        # A pass can be put in when what it waits for is: the stages take turns.
        done = [0] * step.pipeline
        while any(at < len(order) for at, order in zip(done, orders, strict=True)):
            for stage, order in enumerate(orders):
                while done[stage] < len(order) and self._is_ready(stage, *order[done[stage]]):
                    is_last = done[stage] == len(order) - 1
                    self._pass(stage, *order[done[stage]], is_last)
                    done[stage] += 1

        for stage in range(step.pipeline):
            self._update(stage)

        return self._builder.graph()

    def _is_ready(self, stage: int, is_forward: bool, number: int) -> bool:
        is_end = stage == (0 if is_forward else self._step.pipeline - 1)
        rank = self._step.rank(0, 0, stage)
        return is_end or (is_forward, number, rank) in self._arrived

    def _pass(self, stage: int, is_forward: bool, number: int, is_last: bool) -> None:
        """Add one microbatch's pass through a stage, of all its ranks."""
        step = self._step
        work = self._stages[stage]
        groups = [
            [step.rank(tensor, first + data, stage) for data in range(step.experts)]
            for tensor in range(step.tensor)
            for first in range(0, step.data, step.experts)
        ]
        for group in groups:
            for rank in group:
                arrived = self._arrived.pop((is_forward, number, rank), None)
                self._last[rank] += [] if arrived is None else [arrived]

            time_ps = work.forward_ps * (1 if is_forward else BACKWARD)
            self._compute(group, time_ps, work.exchange, is_last)
            for rank in group:
                self._hand_on(rank, stage, is_forward, number)

    def _compute(self, group: list[int], time_ps: int, exchange: int, is_last: bool) -> None:
        """Add a pass's computations: with experts in three parts, around dispatch and combine."""
        builder = self._builder
        if exchange and len(group) > 1:
            for _ in range(2):
                for rank in group:
                    self._last[rank] = [builder.compute(rank, time_ps // 3, self._last[rank])]

                after = [self._last[rank] for rank in group]
                ends = builder.collective("all_to_all", "direct", group, exchange, after)
                for rank, end in zip(group, ends, strict=True):
                    self._last[rank] = [end]

            time_ps -= 2 * (time_ps // 3)

        # Only of the last pass do gradients leave while it goes on.
        parts = self._step.buckets if is_last else 1
        for rank in group:
            for part in range(parts):
                part_ps = time_ps * (part + 1) // parts - time_ps * part // parts
                self._last[rank] = [builder.compute(rank, part_ps, self._last[rank])]
                if is_last:
                    self._gradients[rank].append(list(self._last[rank]))

    def _hand_on(self, rank: int, stage: int, is_forward: bool, number: int) -> None:
        step = self._step
        towards = stage + (1 if is_forward else -1)
        if 0 <= towards < step.pipeline:
            there = rank + (towards - stage) * step.tensor * step.data
            size = self._stages[stage].activation
            sent = self._builder.send(rank, there, size, self._last[rank])
            self._arrived[is_forward, number, there] = sent

    def _update(self, stage: int) -> None:
        """Add the exchange of a stage's gradients and weights, of dense parts and of experts."""
        step = self._step
        work = self._stages[stage]
        for size, apart in ((work.dense, 1), (work.expert, step.experts)):
            for tensor in range(step.tensor):
                for first in range(apart if size else 0):
                    ranks = [
                        step.rank(tensor, data, stage) for data in range(first, step.data, apart)
                    ]
                    self._exchange(ranks, size)

    def _exchange(self, ranks: list[int], size: int) -> None:
        part = -(-size // self._step.buckets)
        reduced: list[list[int]] = [[] for _ in ranks]
        for bucket in range(self._step.buckets):
            after = [self._gradients[rank][bucket] for rank in ranks]
            ends = self._builder.collective("reduce_scatter", "ring", ranks, part, after)
            for rank, end in enumerate(ends):
                reduced[rank].append(end)

        self._builder.collective("all_gather", "ring", ranks, size, reduced)


def computation_ps(graph: Graph) -> int:
    """Return how long a step would take if the network took no time."""
    return longest_ps(graph, graph.compute_ps)
