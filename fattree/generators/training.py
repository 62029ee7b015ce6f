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

In ZeRO's third stage nobody has all weights: each pass gathers them, in as many parts as `buckets`,
each while the one before is computed with, and each backward pass scatters its gradients: half as
much again as in the first stage, for every microbatch.

The exchanges of all layers of a stage with experts are one dispatch and one combine a pass: as many
bytes, fewer and larger messages. The last backward pass is cut in `buckets`: the gradients of each
are on their way while the next are computed. `scale` divides all bytes and all computations; times
are those of the step divided by it, but for latencies.
"""

from collections.abc import Iterator, Mapping

from fattree.demand.workloads.graph import Graph, longest_ps, refuse_many
from fattree.files.memory import Room
from fattree.generators.building import Builder
from fattree.generators.model import Model
from fattree.generators.training_stages import BYTES, Stage, Step, check, stages
from fattree.units import PS_PER_SECOND

BACKWARD = 2


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
        together = step.data if step.zero == 3 else step.experts
        groups = [
            [step.rank(tensor, first + data, stage) for data in range(together)]
            for tensor in range(step.tensor)
            for first in range(0, step.data, together)
        ]
        for group in groups:
            for rank in group:
                arrived = self._arrived.pop((is_forward, number, rank), None)
                self._last[rank] += [] if arrived is None else [arrived]

            again = step.recompute and not is_forward
            if step.zero == 3:
                times = (0 if is_forward else BACKWARD) + (is_forward or again)
                size = work.dense + work.expert
                self._compute_gathering(group, times * work.forward_ps, size, is_forward)
            else:
                self._compute_holding(group, work, is_forward, again, is_last)

            for rank in group:
                self._hand_on(rank, stage, is_forward, number)

    def _compute_gathering(
        self, group: list[int], time_ps: int, size: int, is_forward: bool
    ) -> None:
        """Add a pass of replicas each of which has a part of the weights (ZeRO's third stage)."""
        step = self._step
        parts = step.buckets
        after = {rank: self._last[rank] for rank in group}
        for part in range(parts):
            gathered = self._over_servers("all_gather", group, -(-size // parts), after)
            part_ps = time_ps * (part + 1) // parts - time_ps * part // parts
            for rank in group:
                # The next part is gathered while this one is computed with, not before.
                after[rank] = [gathered[rank], *self._last[rank]]
                self._last[rank] = [self._builder.compute(rank, part_ps, after[rank])]

            if not is_forward:
                gradient = -(-size * step.gradient_bytes // (BYTES * parts))
                self._over_servers("reduce_scatter", group, gradient, self._last)

    def _compute_holding(
        self, group: list[int], work: Stage, is_forward: bool, again: bool, is_last: bool
    ) -> None:
        """Add a pass of replicas that have all weights."""
        if again:
            self._compute(group, work.forward_ps + work.exchange_ps, work.exchanges, False)

        time_ps = work.forward_ps * (1 if is_forward else BACKWARD) + work.exchange_ps
        self._compute(group, time_ps, work.exchanges, is_last)

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
        if step.zero == 3:
            return

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
        part = -(-size * step.gradient_bytes // (BYTES * step.buckets))
        reduced: dict[int, list[int]] = {rank: [] for rank in ranks}
        for bucket in range(step.buckets):
            after = {rank: self._gradients[rank][bucket] for rank in ranks}
            for rank, end in self._over_servers("reduce_scatter", ranks, part, after).items():
                reduced[rank].append(end)

        self._over_servers("all_gather", ranks, size, reduced)

    def _over_servers(
        self, matrix: str, ranks: list[int], size: int, after: Mapping[int, list[int]]
    ) -> dict[int, int]:
        """Add a collective by ring, between servers and in them; return where each rank has ended.

        What several ranks of a server have, they reduce before and gather after, by NVLink.
        """
        servers = self._servers(ranks)
        beside = len(servers[0])
        is_before = beside > 1 and matrix == "reduce_scatter"
        begun = {
            rank: [self._inside(rank, size, beside, after[rank])] if is_before else after[rank]
            for rank in ranks
        }
        ended: dict[int, int] = {}
        for rail in zip(*servers, strict=True):
            entries = [begun[rank] for rank in rail]
            part = -(-size // beside)
            ends = self._builder.collective(matrix, "ring", rail, part, entries)
            ended |= dict(zip(rail, ends, strict=True))

        if beside > 1 and matrix == "all_gather":
            return {rank: self._inside(rank, size, beside, [end]) for rank, end in ended.items()}

        return ended

    def _inside(self, rank: int, size: int, beside: int, after: list[int]) -> int:
        """Add the time that a server's part of a reduce-scatter or all-gather takes: NVLink's."""
        seconds = (beside - 1) / beside * size / (self._step.nvlink_gbs * 1e9)
        return self._builder.compute(rank, round(seconds * PS_PER_SECOND), after)


def computation_ps(graph: Graph) -> int:
    """Return how long a step would take if the network took no time."""
    return longest_ps(graph, graph.compute_ps)
