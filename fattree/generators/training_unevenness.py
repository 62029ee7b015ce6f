"""Unevenness in a training step: the tokens' choice of experts, and the GPUs' times.

All of it is drawn by the step's seed, as a pure function of the draw's subject.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fattree.demand.workloads.graph import Graph
from fattree.draws import Stream, component, mix
from fattree.generators.model import Model
from fattree.generators.training_stages import Step

Float64 = NDArray[np.float64]
DRAWS = 2**32


def expert_loads(model: Model, step: Step) -> Float64:
    """Return how loaded the ranks of experts are, as (layers, ranks); 1 is the mean of a layer.

    By Zipf's law the expert of rank r among X is chosen with weight r**-skew; which expert has
    which rank is drawn for each layer. Shares that are given are those of every layer.
    """
    ranks = step.experts
    if step.shares:
        shares = np.tile(np.array(step.shares, dtype=np.float64), (model.layers, 1))
    elif step.skew:
        numbers = np.arange(model.experts, dtype=np.int64)
        popular = np.power(numbers + 1.0, -step.skew, dtype=np.float64)
        parts = np.array([component(Stream.EXPERT, layer) for layer in range(model.layers)])
        drawn = np.asarray(mix(step.seed, parts[:, None], numbers))
        shares = popular[np.argsort(np.argsort(drawn, axis=1, kind="stable"), axis=1)]
    else:
        return np.ones((model.layers, ranks))

    of_rank = shares.reshape(model.layers, ranks, -1).sum(axis=2)
    loads: Float64 = of_rank / of_rank.mean(axis=1, keepdims=True)
    return loads


def inside_loads(loads: Float64, replicas: int) -> Float64:
    """Return NVLink's load of each rank's exchange; even shares carry 1.

    A server has `replicas` of the ranks; a rank sends to all others there, and all send to it.
    """
    beside = min(replicas, len(loads))
    if beside == 1:
        return np.ones(len(loads))

    of_server = loads.reshape(-1, beside)
    sent = of_server.sum(axis=1, keepdims=True) - of_server
    inside: Float64 = np.maximum(sent / (beside - 1), of_server).ravel()
    return inside


def with_delays(graph: Graph, step: Step) -> Graph:
    """Return the graph with computations that take longer, by jitter and on slow GPUs.

    A delay is exponential: noise only adds. The GPUs of a replica's stage meet in every layer's
    all-reduces, so that the slowest of them decides.
    """
    if not step.jitter and not step.stragglers:
        return graph

    work = np.flatnonzero(graph.compute_ps)
    rank = graph.source[work]
    slow = slow_gpus(step)
    # The k-th computation of each rank: those of one tensor group's ranks are the same pass.
    order = np.argsort(rank, kind="stable")
    counts = np.bincount(rank, minlength=step.ranks)
    turn = np.empty(len(work), dtype=np.int64)
    turn[order] = np.arange(len(work)) - np.repeat(np.cumsum(counts) - counts, counts)

    factor = np.zeros(len(work))
    group = rank // step.tensor
    for tensor in range(step.tensor):
        gpu = group * step.tensor + tensor
        drawn = np.asarray(mix(step.seed, (int(Stream.COMPUTATION) << 32) + gpu, turn))
        delay = -np.log((drawn + 0.5) / DRAWS)
        longer = np.where(slow[gpu], step.slowdown, 1.0) * (1 + step.jitter * delay)
        factor = np.maximum(factor, longer)

    compute_ps = graph.compute_ps.copy()
    compute_ps[work] = np.rint(graph.compute_ps[work] * factor).astype(np.int64)
    return replace(graph, compute_ps=compute_ps)


def slow_gpus(step: Step) -> NDArray[np.bool_]:
    """Return which GPUs are slow: those with the lowest draws."""
    drawn = np.asarray(mix(step.seed, component(Stream.STRAGGLER, 0), np.arange(step.ranks)))
    is_slow = np.zeros(step.ranks, dtype=np.bool_)
    is_slow[np.argsort(drawn, kind="stable")[: step.stragglers]] = True
    return is_slow
