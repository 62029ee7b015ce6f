"""One training step of a model on many GPUs, as a graph of transfers and computations.

Ranks are numbered tensor first, then context, then data, then pipeline: of part c of replica d
rank = t + T (c + C (d + D p)). A server has G GPUs, those of one or more replicas of a stage:
tensor parallelism does not leave it. Bytes that stay in a server take NVLink's time and no fabric.
Per microbatch of b sequences of s tokens, and layer, with L layers in all and hidden size h:

    forward work    2 b s (active weights) + 2 b s**2 (heads' dimensions): a multiplication and an
                    addition for every weight that a token meets, and for every earlier token (half
                    of all, as attention is causal) its score and its value (Kaplan et al. 2020;
                    Narayanan et al. 2021, appendix)
    backward work   twice that: gradients of inputs and of weights; hence 6 N D in all, with
                    recomputation 8 N D, and all-reduces and exchanges of the forward pass once more
    tensor          an all-reduce of 2 b s h bytes, twice forward and twice backward (Shoeybi et al.
                    2019), by ring in the server: 2 (T - 1) / T of it over NVLink, as time. With
                    `tensor_overlap` it is an all-gather before a matrix and a reduce-scatter
                    behind one, each T - 1 parts of 2 b s h / T bytes beside T parts of the matrix:
                    a part takes the longer of both times (Narayanan et al. 2021's Megatron-LM;
                    MegaScale, Jiang et al. 2024, 3.2)
    pipeline        2 b s h / T bytes from each rank to that of the next stage: scattered before,
                    gathered after (Narayanan et al. 2021, 4.1), in the order of
                    `fattree.generators.training_order`
    context         a rank has s / C tokens of each sequence; their keys and values go round a ring
                    while it computes, C - 1 times forward and backward, and their gradients C times
                    (Liu et al. 2023)
    experts         b s / T tokens of each rank, each to its `chosen` experts, spread over the E
                    ranks of its group: there (dispatch) and back (combine), forward and
                    backward (GShard, Lepikhin et al. 2020). With at most M servers a token
                    (DeepSeek-V3 2024, 3.2.2) it goes to each of these once, to the GPU of its own
                    place, and by NVLink to its experts: M h (1 + 2) bytes a layer and token with
                    a dispatch of 1 byte a number
    data            a reduce-scatter of the stage's gradients and an all-gather of its weights, by
                    ring (ZeRO, Rajbhandari et al. 2020): dense ones among all D C ranks, experts'
                    among the D C / E that hold the same ones; with several of these in a server,
                    first or last among them, by NVLink, each with its part between servers

In ZeRO's second stage no GPU keeps all gradients: they leave in every backward pass. In its third
stage no GPU has all weights: each pass gathers them, in as many parts as `buckets`, each while
the part before is computed with, and each backward pass scatters its gradients: half as much again
as in the first stage, for every microbatch.

The exchanges of all layers of a stage are one dispatch and one combine a pass, and one turn of keys
and values, or with `by_layer` as many as there are layers: as many bytes, in more and smaller
messages. Computations beside experts are spread evenly around them. The last backward pass is
cut in `buckets`: the gradients of each are on their way while the next are computed. `scale`
divides all bytes and all computations; times are those of the step divided by it, but for
latencies.
"""

from collections.abc import Generator, Iterator, Sequence
from math import lcm
from typing import NamedTuple

import numpy as np

from fattree.demand.workloads.graph import Graph, longest_ps, refuse_many
from fattree.files.memory import Room
from fattree.generators.building import Builder
from fattree.generators.model import Model
from fattree.generators.training_checks import check
from fattree.generators.training_order import (
    Kind,
    Pass,
    dual_pipe,
    interleaved,
    one_forward_one_backward,
    zero_bubble,
)
from fattree.generators.training_stages import BYTES, Stage, Step, stages
from fattree.generators.training_traffic import Traffic, part_of
from fattree.generators.training_unevenness import Float64, expert_loads, inside_loads, with_delays

MAKES_GRADIENTS = (Kind.BACKWARD, Kind.WEIGHTS)


class Round(NamedTuple):
    """A part of a pass that is exchanged together: the load of each rank's experts, if any."""

    loads: Float64 | None


def training_graph(model: Model, step: Step, memory: Room | None = None) -> Graph:
    """Return the graph of a step; raises TrafficError for a step that cannot be spread."""
    check(model, step)
    # Each pass of a microbatch, and each part of the gradients, is at least a node of every rank.
    refuse_many((2 * step.microbatches * step.virtual + step.buckets) * step.ranks)
    return with_delays(_Training(model, step, memory or Room()).graph(), step)


class _Training:
    """The graph while it is put together; stages are numbered through all chunks."""

    def __init__(self, model: Model, step: Step, memory: Room) -> None:
        self._model = model
        self._step = step
        self._stages = stages(model, step)
        self._loads = expert_loads(model, step)
        self._traffic = Traffic(Builder(memory=memory), step)
        # The arrivals at a rank: (is it forward, microbatch, stage, rank).
        self._arrived: dict[tuple[bool, int, int, int], int] = {}
        # After which nodes a part of the gradients of a rank's chunk may leave.
        self._gradients: dict[tuple[int, int], list[list[int]]] = {
            (rank, chunk): [] for rank in range(step.ranks) for chunk in range(step.chunks)
        }

    def graph(self) -> Graph:
        step = self._step
        orders = [list(self._order(pipe_rank)) for pipe_rank in range(step.pipeline)]
        last = [
            {
                ahead.chunk: ahead
                for passes in order
                for ahead in passes
                if ahead.kind in MAKES_GRADIENTS
            }
            for order in orders
        ]

        # A pass can be put in after the passes that it waits for: the stages take turns.
        done = [0] * step.pipeline
        while any(begun < len(order) for begun, order in zip(done, orders, strict=True)):
            for pipe_rank, order in enumerate(orders):
                while done[pipe_rank] < len(order) and all(
                    self._is_ready(pipe_rank, ahead) for ahead in order[done[pipe_rank]]
                ):
                    passes = order[done[pipe_rank]]
                    self._passes(
                        pipe_rank,
                        passes,
                        [ahead is last[pipe_rank][ahead.chunk] for ahead in passes],
                    )
                    done[pipe_rank] += 1

        if step.zero < 3:
            for pipe_rank in range(step.pipeline):
                self._update(pipe_rank)

        return self._traffic.builder.graph()

    def _order(self, pipe_rank: int) -> Iterator[tuple[Pass, ...]]:
        """Yield a GPU's work in order: a pass, or two that overlap."""
        step = self._step
        if step.dual_pipe:
            return dual_pipe(pipe_rank, step.pipeline, step.microbatches)

        if step.zero_bubble:
            order = zero_bubble(pipe_rank, step.pipeline, step.microbatches)
        elif step.virtual > 1:
            order = interleaved(pipe_rank, step.pipeline, step.microbatches, step.virtual)
        else:
            order = one_forward_one_backward(pipe_rank, step.pipeline, step.microbatches)

        return ((single,) for single in order)

    def _is_ready(self, pipe_rank: int, current: Pass) -> bool:
        is_forward = current.kind is Kind.FORWARD
        stage = self._step.stage(pipe_rank, current.chunk)
        is_end = stage == (0 if is_forward else self._step.stages - 1)
        rank = self._step.rank(0, 0, pipe_rank)
        return (
            is_end
            or current.kind is Kind.WEIGHTS
            or (is_forward, current.number, stage, rank) in self._arrived
        )

    def _passes(self, pipe_rank: int, passes: tuple[Pass, ...], is_last: Sequence[bool]) -> None:
        """Add a microbatch's pass through a stage, or two that overlap, of all its ranks."""
        step = self._step
        stages = [step.stage(pipe_rank, single.chunk) for single in passes]
        together = step.replicas if step.zero == 3 else lcm(step.experts, step.context)
        groups = [
            [step.rank(tensor, first + data, pipe_rank) for data in range(together)]
            for tensor in range(step.tensor)
            for first in range(0, step.replicas, together)
        ]
        for group in groups:
            for rank in group:
                for single, stage in zip(passes, stages, strict=True):
                    self._await(rank, stage, single)

            if step.zero == 3:
                self._compute_gathering(group, self._stages[stages[0]], passes[0].kind)
            else:
                lanes = [
                    self._compute_holding(group, self._stages[stage], single, is_end)
                    for single, stage, is_end in zip(passes, stages, is_last, strict=True)
                ]
                self._traffic.take_turns(group, lanes)

            for single, stage in zip(passes, stages, strict=True):
                for rank in group if single.kind is not Kind.WEIGHTS else ():
                    self._hand_on(rank, stage, single)

    def _await(self, rank: int, stage: int, current: Pass) -> None:
        """Let a rank wait for a pass's input from another stage."""
        if current.kind is not Kind.WEIGHTS:
            came = self._arrived.pop(
                (current.kind is Kind.FORWARD, current.number, stage, rank), None
            )
            self._traffic.last[rank] += [] if came is None else [came]

    def _compute_gathering(self, group: list[int], work: Stage, kind: Kind) -> None:
        """Add a pass of replicas each of which has a part of the weights (ZeRO's third stage)."""
        step = self._step
        is_forward = kind is Kind.FORWARD
        time_ps = work.forward_ps if is_forward else work.backward_ps
        time_ps += work.forward_ps if step.recompute and not is_forward else 0
        size = work.dense + work.expert
        parts = step.buckets
        last = self._traffic.last
        after = {rank: last[rank] for rank in group}
        for part in range(parts):
            gathered = self._traffic.over_servers("all_gather", group, -(-size // parts), after)
            for rank in group:
                # The next part is gathered while this part is computed with, not before.
                after[rank] = [gathered[rank], *last[rank]]
                part_ps = part_of(time_ps, parts, part)
                last[rank] = [self._traffic.builder.compute(rank, part_ps, after[rank])]

            if not is_forward:
                gradient = -(-size * step.gradient_bytes // (BYTES * parts))
                self._traffic.over_servers("reduce_scatter", group, gradient, last)

    def _compute_holding(
        self, group: list[int], work: Stage, current: Pass, is_last: bool
    ) -> Iterator[None]:
        """Add a pass of replicas that have all weights; another may go on at each exchange."""
        step = self._step
        if step.recompute and current.kind in (Kind.BACKWARD, Kind.INPUTS):
            again = yield from self._compute_around(group, work, Kind.FORWARD)
            for rank in group:
                self._traffic.compute(rank, again)

        rest = yield from self._compute_around(group, work, current.kind)

        # While a pass goes on its gradients leave: those of the last microbatch are the sum of all,
        # unless no GPU keeps the sum (ZeRO's second stage).
        leaves = is_last or (step.zero == 2 and current.kind in MAKES_GRADIENTS)
        parts = -(-step.buckets // step.chunks) if leaves else 1
        for rank in group:
            for part in range(parts):
                node = self._traffic.compute(rank, part_of(rest, parts, part))
                if leaves:
                    self._gradients[rank, current.chunk].append([node])

    def _compute_around(
        self, group: list[int], work: Stage, kind: Kind
    ) -> Generator[None, None, int]:
        """Add a pass around its exchanges; return how long the computations behind them take."""
        step = self._step
        expert_ps, rest_ps = _times(work, kind)
        rounds = self._rounds(work, kind)
        exchanging = sum(exchange_round.loads is not None for exchange_round in rounds)
        exchanges = 0
        for number, exchange_round in enumerate(rounds):
            part_ps = part_of(rest_ps, len(rounds) + 1, number)
            self._attend(group, part_ps, -(-work.keys // len(rounds)), kind)
            if exchange_round.loads is None:
                continue

            expert_part_ps = part_of(expert_ps, exchanging, exchanges)
            inside_ps = part_of(work.exchange_ps, exchanging, exchanges)
            exchanges += 1
            dispatch, combine = (-(-size // exchanging) for size in work.exchanges)
            for first in range(0, len(group), step.experts):
                ranks = group[first : first + step.experts]
                self._send_tokens(ranks, dispatch, exchange_round.loads, towards_experts=True)
                yield
                inside = inside_loads(exchange_round.loads, step.replicas_per_server)
                for index, rank in enumerate(ranks):
                    time_ps = (
                        expert_part_ps * exchange_round.loads[index] + inside_ps * inside[index]
                    )
                    self._traffic.compute(rank, round(float(time_ps)))

                self._send_tokens(ranks, combine, exchange_round.loads, towards_experts=False)
                yield

        if not exchanging:
            self._compute_experts(group, work, expert_ps)

        return part_of(rest_ps, len(rounds) + 1, len(rounds))

    def _compute_experts(self, group: list[int], work: Stage, time_ps: int) -> None:
        """Add the experts' computations of a pass without exchanges."""
        if not time_ps:
            return

        sparse = sorted(self._model.sparse.intersection(range(work.first, work.end)))
        loads = self._loads[sparse].mean(axis=0)
        for index, rank in enumerate(group):
            self._traffic.compute(rank, round(float(time_ps * loads[index % len(loads)])))

    def _rounds(self, work: Stage, kind: Kind) -> list[Round]:
        """Return in which rounds a pass exchanges tokens, or keys and values."""
        step = self._step
        layers = range(work.first, work.end)
        sparse = sorted(self._model.sparse.intersection(layers))
        has_experts = step.experts > 1 and bool(sparse)
        if kind is Kind.WEIGHTS or not (has_experts or (step.context > 1 and len(layers))):
            return []

        if not step.by_layer:
            return [Round(self._loads[sparse].mean(axis=0) if has_experts else None)]

        order = layers if kind is Kind.FORWARD else reversed(layers)
        return [
            Round(self._loads[layer] if has_experts and layer in sparse else None)
            for layer in order
            if step.context > 1 or layer in sparse
        ]

    def _attend(self, group: list[int], time_ps: int, keys: int, kind: Kind) -> None:
        """Add a part of a pass in which keys and values go round, if sequences have parts."""
        context = self._step.context
        if context == 1:
            for rank in group:
                self._traffic.compute(rank, time_ps)

            return

        for first in range(0, len(group), context):
            ring = group[first : first + context]
            self._traffic.pass_keys(ring, time_ps, keys, with_gradients=kind is not Kind.FORWARD)

    def _send_tokens(
        self, ranks: list[int], size: int, loads: Float64, towards_experts: bool
    ) -> None:
        if bool(np.all(loads == 1)):
            self._traffic.send_tokens(ranks, size)
            return

        def size_of(source: int, destination: int) -> int:
            return round(size * float(loads[destination if towards_experts else source]))

        self._traffic.send_between(ranks, size_of)

    def _hand_on(self, rank: int, stage: int, current: Pass) -> None:
        step = self._step
        is_forward = current.kind is Kind.FORWARD
        towards = stage + (1 if is_forward else -1)
        if 0 <= towards < step.stages:
            places = step.place(towards, current.chunk) - step.place(stage, current.chunk)
            receiver = rank + places * step.tensor * step.replicas
            size = self._stages[stage].activation
            sent = self._traffic.builder.send(rank, receiver, size, self._traffic.last[rank])
            self._arrived[is_forward, current.number, towards, receiver] = sent

    def _update(self, pipe_rank: int) -> None:
        """Add the exchange of gradients and weights of a place's chunks: dense parts and experts.

        Of a pipeline with two directions it is that of one stage, which is at two places.
        """
        step = self._step
        stages = [pipe_rank] if step.dual_pipe else range(pipe_rank, step.stages, step.pipeline)
        places = [step.place(pipe_rank, direction) for direction in range(step.copies)]
        works = [self._stages[stage] for stage in stages]
        for sizes, apart in (
            ([work.dense for work in works], 1),
            ([work.expert for work in works], step.experts),
        ):
            for tensor in range(step.tensor):
                for first in range(apart if any(sizes) else 0):
                    # The ranks that hold it, and which of their chunks its first chunk is.
                    holders = {
                        step.rank(tensor, data, position): direction
                        for direction, position in enumerate(places)
                        for data in range(first, step.replicas, apart)
                    }
                    self._exchange(holders, sizes)

    def _exchange(self, holders: dict[int, int], sizes: list[int]) -> None:
        """Add the exchange of gradients and weights, of so many bytes of weights in each chunk."""
        step = self._step
        traffic = self._traffic
        buckets = -(-step.buckets // step.chunks)
        ranks = list(holders)
        reduced: dict[int, list[int]] = {rank: [] for rank in ranks}
        for chunk, size in enumerate(sizes):
            part = -(-size * step.gradient_bytes // (BYTES * buckets))
            gradients = {rank: self._gradients[rank, chunk + holders[rank]] for rank in ranks}
            for bucket in range(len(gradients[ranks[0]]) if size else 0):
                after = {rank: gradients[rank][bucket] for rank in ranks}
                for rank, end in traffic.over_servers("reduce_scatter", ranks, part, after).items():
                    reduced[rank].append(end)

        traffic.over_servers("all_gather", ranks, sum(sizes), reduced)


def _times(work: Stage, kind: Kind) -> tuple[int, int]:
    """Return how long a pass computes with experts, and with all else."""
    expert = work.expert_ps
    match kind:
        case Kind.FORWARD:
            return expert, work.forward_ps - expert
        case Kind.BACKWARD:
            return 2 * expert, work.backward_ps - 2 * expert
        case Kind.INPUTS:
            return expert, work.backward_ps - work.weights_ps - expert
        case Kind.WEIGHTS:
            return expert, work.weights_ps - expert


def computation_ps(graph: Graph) -> int:
    """Return how long a step would take if the network took no time."""
    return longest_ps(graph, graph.compute_ps)
