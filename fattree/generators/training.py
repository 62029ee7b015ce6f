"""One training step of a model on many GPUs, as a graph of transfers and computations.

Ranks are numbered tensor first, then data, then pipeline: rank = t + T (d + D p). A server has G
GPUs, those of one or more replicas of a stage: tensor parallelism does not leave it. What stays in
a server takes NVLink's time and no fabric. Per microbatch of b sequences of s tokens,
and layer, with L layers in all and hidden size h:

    forward work    2 b s (active weights) + 2 b s**2 (heads' dimensions): a multiplication and an
                    addition for every weight that a token meets, and for every earlier token (half
                    of all, as attention is causal) its score and its value (Kaplan et al. 2020;
                    Narayanan et al. 2021, appendix)
    backward work   twice that: gradients of inputs and of weights; hence 6 N D in all, with
                    recomputation 8 N D, and exchanges of experts once more
    tensor          an all-reduce of 2 b s h bytes, twice forward and twice backward (Shoeybi et al.
                    2019), by ring in the server: 2 (T - 1) / T of it over NVLink, as time
    pipeline        2 b s h / T bytes from each rank to that of the next stage: scattered before,
                    gathered after (Narayanan et al. 2021, 4.1); one forward, one backward in turn
                    (1F1B, PipeDream-Flush)
    experts         b s / T tokens of each rank, each to its `chosen` experts, spread evenly over
                    the E ranks of its group: there (dispatch) and back (combine), forward and
                    backward (GShard, Lepikhin et al. 2020). With at most M servers a token
                    (DeepSeek-V3 2024, 3.2.2) it goes to each of these once, to the GPU of its own
                    place, and by NVLink to its experts: M h (1 + 2) bytes a layer and token with
                    a dispatch of 1 byte a number
    data            a reduce-scatter of the stage's gradients and an all-gather of its weights, by
                    ring (ZeRO, Rajbhandari et al. 2020): dense ones among all D ranks, experts'
                    among the D / E that hold the same ones; with several of these in a server,
                    first or last among them, by NVLink, each with its part between servers

The exchanges of all layers of a stage with experts are one dispatch and one combine a pass: as many
bytes, fewer and larger messages. The last backward pass is cut in `buckets`: the gradients of each
are on their way while the next are computed. `scale` divides all bytes and all computations; times
are those of the step divided by it, but for latencies.
"""

from collections.abc import Iterator, Sequence
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

    `teraflops` is what a GPU makes of its peak, `nvlink_gbs` GB/s in one direction. `server` is how
    many GPUs one has (0: as many as tensor parallelism). A token's experts are on at most
    `token_servers` servers (0: on any, and the token goes to each expert by itself).
    `dispatch_bytes` and `gradient_bytes` are those of a number on its way. With `recompute` a
    backward pass makes its forward pass again before.
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

            if self._step.recompute and not is_forward:
                self._compute(group, work.forward_ps + work.exchange_ps, work.exchanges, False)

            time_ps = work.forward_ps * (1 if is_forward else BACKWARD) + work.exchange_ps
            self._compute(group, time_ps, work.exchanges, is_last)
            for rank in group:
                self._hand_on(rank, stage, is_forward, number)

    def _compute(
        self, group: list[int], time_ps: int, exchanges: tuple[int, int], is_last: bool
    ) -> None:
        """Add a pass's computations: with experts in three parts, around dispatch and combine."""
        builder = self._builder
        if any(exchanges) and len(group) > 1:
            for size in exchanges:
                for rank in group:
                    self._last[rank] = [builder.compute(rank, time_ps // 3, self._last[rank])]

                self._send_tokens(group, size)

            time_ps -= 2 * (time_ps // 3)

        # Only of the last pass do gradients leave while it goes on.
        parts = self._step.buckets if is_last else 1
        for rank in group:
            for part in range(parts):
                part_ps = time_ps * (part + 1) // parts - time_ps * part // parts
                self._last[rank] = [builder.compute(rank, part_ps, self._last[rank])]
                if is_last:
                    self._gradients[rank].append(list(self._last[rank]))

    def _send_tokens(self, group: list[int], size: int) -> None:
        """Add one exchange of a group's tokens: what leaves servers, all at once."""
        servers = self._servers(group)
        if len(servers) < len(group) and not self._step.token_servers:
            self._send_between(servers, size)
            return

        # In each server one partner, or all others where a server has one of the group.
        for ranks in zip(*servers, strict=True):
            after = [self._last[rank] for rank in ranks]
            ends = self._builder.collective("all_to_all", "direct", ranks, size, after)
            for rank, end in zip(ranks, ends, strict=True):
                self._last[rank] = [end]

    def _send_between(self, servers: list[list[int]], size: int) -> None:
        """Add messages between all ranks of different servers."""
        involved: dict[int, list[int]] = {rank: [] for server in servers for rank in server}
        pairs = (
            (source, destination)
            for here in servers
            for there in servers
            if here is not there
            for source in here
            for destination in there
        )
        for source, destination in pairs:
            sent = self._builder.send(source, destination, size, self._last[source])
            involved[source].append(sent)
            involved[destination].append(sent)

        for rank, nodes in involved.items():
            if nodes:
                self._last[rank] = [self._builder.compute(rank, 0, nodes)]

    def _servers(self, ranks: list[int]) -> list[list[int]]:
        """Return ranks by server."""
        found: dict[int, list[int]] = {}
        for rank in ranks:
            found.setdefault(rank // self._step.gpus_per_server, []).append(rank)

        return list(found.values())

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
        """Add the exchange of one part's gradients and weights, of `size` bytes of weights."""
        step = self._step
        servers = self._servers(ranks)
        beside = len(servers[0])
        part = -(-size * step.gradient_bytes // (BYTES * step.buckets))
        reduced: dict[int, list[int]] = {rank: [] for rank in ranks}
        for bucket in range(step.buckets):
            for rank in ranks if beside > 1 else ():
                self._gradients[rank][bucket] = [
                    self._inside(rank, part, beside, self._gradients[rank][bucket])
                ]

            for rail in zip(*servers, strict=True):
                after = [self._gradients[rank][bucket] for rank in rail]
                ends = self._between("reduce_scatter", rail, -(-part // beside), after)
                for rank, end in zip(rail, ends, strict=True):
                    reduced[rank].append(end)

        for rail in zip(*servers, strict=True):
            after = [reduced[rank] for rank in rail]
            ends = self._between("all_gather", rail, -(-size // beside), after)
            for rank, end in zip(rail, ends, strict=True):
                if beside > 1:
                    self._inside(rank, size, beside, [end])

    def _between(
        self, matrix: str, ranks: Sequence[int], size: int, after: list[list[int]]
    ) -> list[int]:
        return self._builder.collective(matrix, "ring", ranks, size, after)

    def _inside(self, rank: int, size: int, beside: int, after: list[int]) -> int:
        """Add the time that a server's part of a reduce-scatter or all-gather takes: NVLink's."""
        seconds = (beside - 1) / beside * size / (self._step.nvlink_gbs * 1e9)
        return self._builder.compute(rank, round(seconds * PS_PER_SECOND), after)


def computation_ps(graph: Graph) -> int:
    """Return how long a step would take if the network took no time."""
    return longest_ps(graph, graph.compute_ps)
