"""A served model as a graph: prompts are prefilled, keys and values handed over, tokens decoded.

Ranks are those of the instances that prefill, one after the other, then of those that decode; an
instance has T GPUs, in whole servers or several to a server. Request r is prefilled by instance r
modulo their number, in turn, and decoded by instance r modulo theirs, all requests of an instance
together as soon as their keys and values are there. Of s tokens of a prompt, with L layers of
hidden size h (Splitwise, Patel et al. 2024; DistServe, Zhong et al. 2024):

    prefill     2 s (active weights) + 2 s**2 (heads' dimensions) a layer, over T GPUs
    hand-over   s L (keys and values of a token in a layer) numbers, each GPU's part to those that
                decode it, in as many parts as `parts`, each as soon as its layers are through
    decode      a token of each request at a time: weights, and keys and values of all tokens, are
                read from the GPU's memory, or the token's multiplications take longer (Pope et al.
                2022)
    tensor      two all-reduces a layer of 2 h bytes a token (Shoeybi et al. 2019): in a server 2
                (T - 1) / T of it over NVLink, as time; over S servers of G GPUs a reduce-scatter
                and an all-gather in each, and between them a ring of each place's part, 1 / G of it

Of experts those are read that some token of the batch has chosen, if choices are independent. An
instance has all experts: exchanges of tokens among several are left out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fattree.demand.workloads.graph import Graph, refuse_many
from fattree.errors import TrafficError
from fattree.files.memory import Room
from fattree.generators.building import Builder
from fattree.generators.model import Model
from fattree.generators.training_stages import ALL_REDUCES, BYTES
from fattree.generators.training_traffic import part_of
from fattree.units import PS_PER_SECOND


@dataclass(frozen=True, slots=True)
class Serving:
    """A service: instances of GPUs, requests, tokens of a prompt and of an answer.

    `teraflops` is the rate that a GPU reaches, `nvlink_gbs` and `memory_gbs` are GB/s of NVLink in
    one direction and of the GPU's memory. A number of keys and values has `key_bytes`.
    """

    prefill: int = 1
    decode: int = 1
    tensor: int = 8
    decode_tensor: int = 8
    server: int = 8
    requests: int = 1
    prompt: int = 4096
    tokens: int = 16
    parts: int = 4
    key_bytes: int = BYTES
    teraflops: float = 400
    nvlink_gbs: float = 450
    memory_gbs: float = 3350
    scale: int = 1

    @property
    def ranks(self) -> int:
        """Return the number of GPUs."""
        return self.prefill * self.tensor + self.decode * self.decode_tensor


def check(model: Model, serving: Serving) -> None:
    """Raise TrafficError for instances that servers cannot hold."""
    server = serving.server
    for name, instances, tensor in (
        ("--tp", serving.prefill, serving.tensor),
        ("--decode-tp", serving.decode, serving.decode_tensor),
    ):
        if tensor % server and server % tensor:
            raise TrafficError(
                f"{name} {tensor}: servers of {server} GPUs hold whole instances, or instances "
                "whole servers"
            )

        if instances * tensor % server:
            raise TrafficError(
                f"{instances} instances of {name} {tensor} do not fill servers of {server} GPUs: "
                "none may both prefill and decode"
            )

    if serving.parts > model.layers:
        raise TrafficError(f"--kv-parts {serving.parts}: there are {model.layers} layers")


def kept_bytes(model: Model, serving: Serving) -> int:
    """Return the bytes of keys and values that are kept of a token."""
    return model.layers * model.keys * serving.key_bytes


def reduced_bytes(model: Model, tensor: int) -> float:
    """Return the bytes that a GPU sends of a token in all-reduces, over NVLink or the fabric."""
    return 2 * (tensor - 1) / tensor * ALL_REDUCES * model.layers * model.hidden * BYTES


def serving_graph(model: Model, serving: Serving, memory: Room | None = None) -> Graph:
    """Return the graph of all requests; raises TrafficError if it cannot be served."""
    check(model, serving)
    tensor = max(serving.tensor, serving.decode_tensor)
    refuse_many((serving.requests * serving.parts + serving.tokens) * tensor)
    return _Service(model, serving, memory or Room()).graph()


class _Service:
    """The graph while it is put together, with every rank's last nodes."""

    def __init__(self, model: Model, serving: Serving, memory: Room) -> None:
        self._model = model
        self._serving = serving
        self._builder = Builder(memory=memory)
        self._last: dict[int, list[int]] = {rank: [] for rank in range(serving.ranks)}
        # The keys and values that a decoding rank has been sent.
        self._got: dict[int, list[int]] = {rank: [] for rank in range(serving.ranks)}

    def graph(self) -> Graph:
        serving = self._serving
        for request in range(serving.requests):
            self._prefill(request)

        for instance in range(min(serving.decode, serving.requests)):
            batch = len(range(instance, serving.requests, serving.decode))
            ranks = self._decoding(instance)
            for rank in ranks:
                self._last[rank] = self._got[rank]

            for token in range(serving.tokens):
                self._decode(ranks, batch, serving.prompt + token)

        return self._builder.graph()

    def _decoding(self, instance: int) -> range:
        serving = self._serving
        first = serving.prefill * serving.tensor + instance * serving.decode_tensor
        return range(first, first + serving.decode_tensor)

    def _prefill(self, request: int) -> None:
        serving, model = self._serving, self._model
        first = request % serving.prefill * serving.tensor
        ranks = range(first, first + serving.tensor)
        seconds = _prefill_work(model, serving.prompt) / (serving.tensor * serving.teraflops * 1e12)
        for part in range(serving.parts):
            layers = part_of(model.layers, serving.parts, part)
            self._compute(ranks, seconds * layers / model.layers, layers, serving.prompt)
            self._hand_over(ranks, request, layers)

    def _hand_over(self, ranks: range, request: int, layers: int) -> None:
        """Send the keys and values of some layers to those who decode with them."""
        serving = self._serving
        receivers = self._decoding(request % serving.decode)
        size = serving.prompt * layers * self._model.keys * serving.key_bytes
        for source, destination, overlap in _overlaps(ranks, receivers, size):
            bytes_there = -(-overlap // serving.scale)
            sent = self._builder.send(source, destination, bytes_there, self._last[source])
            self._got[destination].append(sent)

    def _decode(self, ranks: range, batch: int, context: int) -> None:
        """Add one token of all requests of an instance."""
        serving, model = self._serving, self._model
        read = _weights_read(model, batch) * BYTES + batch * context * kept_bytes(model, serving)
        work = batch * _decode_work(model, context)
        seconds = max(
            read / (len(ranks) * serving.memory_gbs * 1e9),
            work / (len(ranks) * serving.teraflops * 1e12),
        )
        self._compute(ranks, seconds, model.layers, batch)

    def _compute(self, ranks: range, seconds: float, layers: int, tokens: int) -> None:
        """Let an instance compute layers, with the all-reduces of so many tokens in each."""
        serving = self._serving
        size = tokens * self._model.hidden * BYTES
        count = ALL_REDUCES * layers
        if len(ranks) <= serving.server:
            inside = 2 * (len(ranks) - 1) / len(ranks) * count * size / (serving.nvlink_gbs * 1e9)
            self._take(ranks, seconds + inside)
            return

        inside = (serving.server - 1) / serving.server * size / (serving.nvlink_gbs * 1e9)
        for _ in range(count):
            self._take(ranks, seconds / count + inside)
            self._reduce_between(ranks, size)
            self._take(ranks, inside)

    def _take(self, ranks: Sequence[int], seconds: float) -> None:
        time_ps = round(seconds * PS_PER_SECOND / self._serving.scale)
        for rank in ranks:
            self._last[rank] = [self._builder.compute(rank, time_ps, self._last[rank])]

    def _reduce_between(self, ranks: range, size: int) -> None:
        """Add an all-reduce between the servers of an instance, of each GPU's part."""
        server = self._serving.server
        part = -(-size // (server * self._serving.scale))
        for offset in range(server):
            rail = list(ranks[offset::server])
            after = [self._last[rank] for rank in rail]
            ends = self._builder.collective("all_reduce", "ring", rail, part, after)
            for rank, end in zip(rail, ends, strict=True):
                self._last[rank] = [end]


def _prefill_work(model: Model, prompt: int) -> float:
    """Return the operations of a prompt, of which the last token alone meets the vocabulary."""
    layers = range(model.layers)
    weights = prompt * sum(map(model.active, layers)) + model.embedding
    scores = prompt * model.attended * sum(model.context(layer, prompt) for layer in layers)
    return 2 * (weights + scores)


def _decode_work(model: Model, context: int) -> float:
    """Return the operations of a token behind `context` others."""
    windows = model.windows or (0,) * model.layers
    seen = sum(min(window, context) if window else context for window in windows)
    return 2 * (model.active_parameters + 2 * model.attended * seen)


def _weights_read(model: Model, batch: int) -> float:
    """Return the weights that a batch of tokens meets."""
    sparse = len(model.sparse)
    chosen = 1 - (1 - model.chosen / model.experts) ** batch if sparse else 0
    met = model.experts * chosen - model.chosen if sparse else 0
    return model.active_parameters + sparse * met * model.expert


def _overlaps(sources: range, destinations: range, size: int) -> Iterator[tuple[int, int, int]]:
    """Yield who sends how much to whom, where each end has an equal part of the same bytes."""
    for number, source in enumerate(sources):
        first, end = (size * edge // len(sources) for edge in (number, number + 1))
        for index, destination in enumerate(destinations):
            begins, ends = (size * edge // len(destinations) for edge in (index, index + 1))
            shared = min(end, ends) - max(first, begins)
            if shared > 0:
                yield source, destination, shared
