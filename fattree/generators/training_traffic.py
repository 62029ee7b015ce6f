"""Messages between the GPUs of a training step beside their pipeline, put into a graph.

Each function takes every rank's last operations, and leaves its last operations after that. Bytes
that stay in a server take NVLink's time and no fabric.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, pairwise

from fattree.generators.building import Builder
from fattree.generators.training_stages import Step
from fattree.units import PS_PER_SECOND

# The bytes of a message, by the places of its ends among the ranks of a group.
SizeOf = Callable[[int, int], int]
# Of a pass that has no further exchange.
OVER = object()


def part_of(whole: int, parts: int, number: int) -> int:
    """Return part `number` of parts as equal as whole numbers allow; their sum is the whole."""
    return whole * (number + 1) // parts - whole * number // parts


class Traffic:
    """A graph while it is put together, and every rank's last nodes (`last`)."""

    def __init__(self, builder: Builder, step: Step) -> None:
        self.builder = builder
        self.last: dict[int, list[int]] = {rank: [] for rank in range(step.ranks)}
        self._step = step
        # If passes overlap: each rank's last computation, of any of them.
        self._busy: dict[int, list[int]] = {}

    def compute(self, rank: int, time_ps: int) -> int:
        """Let a rank compute, and return the node."""
        node = self._compute_after(rank, time_ps, self.last[rank])
        self.last[rank] = [node]
        return node

    def _compute_after(self, rank: int, time_ps: int, after: Sequence[int]) -> int:
        busy = self._busy.get(rank)
        if busy is None:
            return self.builder.compute(rank, time_ps, after)

        # A GPU computes one thing after the other, whosever pass it is.
        node = self.builder.compute(rank, time_ps, list(dict.fromkeys([*after, *busy])))
        self._busy[rank] = [node]
        return node

    def take_turns(self, group: Sequence[int], lanes: Sequence[Iterator[None]]) -> None:
        """Put passes of a group into the graph, each as far as its next exchange, then another.

        They begin together and are over together; while one exchanges others compute.
        """
        if len(lanes) > 1:
            self._busy = {rank: [] for rank in group}

        reached = [{rank: self.last[rank] for rank in group} for _ in lanes]
        going = list(zip(lanes, reached, strict=True))
        while going:
            lane, last = going.pop(0)
            self.last |= last
            if next(lane, OVER) is not OVER:
                going.append((lane, last))

            last |= {rank: self.last[rank] for rank in group}

        self._busy = {}
        for rank in group:
            self.last[rank] = list(dict.fromkeys(chain(*(last[rank] for last in reached))))

    def servers(self, ranks: Sequence[int]) -> list[list[int]]:
        """Return ranks by server."""
        by_server: dict[int, list[int]] = {}
        for rank in ranks:
            by_server.setdefault(self._server(rank), []).append(rank)

        return list(by_server.values())

    def send_tokens(self, group: Sequence[int], size: int) -> None:
        """Add an exchange of a group's tokens, as many to each: between servers at once."""
        servers = self.servers(group)
        if len(servers) < len(group) and not self._step.token_servers:
            self.send_between(group, lambda source, destination: size)
            return

        # In each server one partner, or all others where a server has one rank of the group.
        for ranks in zip(*servers, strict=True):
            after = [self.last[rank] for rank in ranks]
            ends = self.builder.collective("all_to_all", "direct", ranks, size, after)
            for rank, end in zip(ranks, ends, strict=True):
                self.last[rank] = [end]

    def send_between(self, group: Sequence[int], size_of: SizeOf) -> None:
        """Add messages between all ranks of different servers."""
        servers = self.servers(group)
        index = {rank: number for number, rank in enumerate(group)}
        involved: dict[int, list[int]] = {rank: [] for rank in group}
        pairs = (
            (source, destination)
            for here in servers
            for receivers in servers
            if here is not receivers
            for source in here
            for destination in receivers
        )
        for source, destination in pairs:
            size = size_of(index[source], index[destination])
            sent = self.builder.send(source, destination, size, self.last[source])
            involved[source].append(sent)
            involved[destination].append(sent)

        for rank, nodes in involved.items():
            if nodes:
                self.last[rank] = [self.builder.compute(rank, 0, nodes)]

    def pass_keys(self, ring: Sequence[int], time_ps: int, size: int, with_gradients: bool) -> None:
        """Let a ring compute while each rank's keys and values go round (Liu et al. 2023).

        A rank computes with the block that it holds and passes it on at once. Backward each block's
        gradients go round behind it, one rank more: home.
        """
        count = len(ring)
        held = {rank: self.last[rank] for rank in ring}
        gradients: dict[int, list[int]] = {rank: [] for rank in ring}
        for turn in range(count):
            arriving = self._passed_on(ring, size, held) if turn < count - 1 else {}
            for rank in ring:
                after = list(dict.fromkeys([*held[rank], *self.last[rank]]))
                part_ps = part_of(time_ps, count, turn)
                self.last[rank] = [self._compute_after(rank, part_ps, after)]

            if with_gradients:
                ready = {rank: [*self.last[rank], *gradients[rank]] for rank in ring}
                gradients = self._passed_on(ring, size, ready)

            held = arriving

        for rank in ring:
            self.last[rank] = [*self.last[rank], *gradients[rank]]

    def _passed_on(
        self, ring: Sequence[int], size: int, after: Mapping[int, list[int]]
    ) -> dict[int, list[int]]:
        """Add a message from each rank to the next, and return each rank's arrivals."""
        received: dict[int, list[int]] = {}
        for source, destination in pairwise([*ring, ring[0]]):
            if self._server(source) == self._server(destination):
                # Neighbours in a server go in step: one's block is the other's arrival.
                received[destination] = [self.on_nvlink(destination, size, after[destination])]
            else:
                sent = self.builder.send(source, destination, size, after[source])
                received[destination] = [sent]

        return received

    def over_servers(
        self, matrix: str, ranks: list[int], size: int, after: Mapping[int, list[int]]
    ) -> dict[int, int]:
        """Add a collective by ring, between servers and in them; return each rank's last operation.

        Several ranks of a server reduce before it and gather after it, by NVLink.
        """
        servers = self.servers(ranks)
        beside = len(servers[0])
        inside = round((beside - 1) / beside * size)
        is_before = beside > 1 and matrix == "reduce_scatter"
        begun = {
            rank: [self.on_nvlink(rank, inside, after[rank])] if is_before else after[rank]
            for rank in ranks
        }
        ended: dict[int, int] = {}
        for rail in zip(*servers, strict=True):
            entries = [begun[rank] for rank in rail]
            part = -(-size // beside)
            ends = self.builder.collective(matrix, "ring", rail, part, entries)
            ended |= dict(zip(rail, ends, strict=True))

        if beside > 1 and matrix == "all_gather":
            return {rank: self.on_nvlink(rank, inside, [end]) for rank, end in ended.items()}

        return ended

    def on_nvlink(self, rank: int, size: int, after: Sequence[int]) -> int:
        """Add the time that bytes of a rank take inside its server."""
        seconds = size / (self._step.nvlink_gbs * 1e9)
        return self.builder.compute(rank, round(seconds * PS_PER_SECOND), after)

    def _server(self, rank: int) -> int:
        return rank // self._step.gpus_per_server
