"""Uneven experts and uneven GPUs: shares, means of draws, and the seed's effect."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fattree.errors import TrafficError
from fattree.generators.training import computation_ps, training_graph
from fattree.generators.training_stages import Step, stages
from fattree.generators.training_unevenness import expert_loads, inside_loads, slow_gpus
from tests.fattree.workloads.models import SMALL, model_of

# With as good as no vocabulary, so that tokens are most of the bytes.
MIXTURE = {**SMALL, "num_local_experts": 8, "num_experts_per_tok": 2, "vocab_size": 1}
# One sequence a GPU; NVLink takes no time.
QUICK = 1e9


def test_tokens_go_where_shares_say(tmp_path: Path) -> None:
    model = model_of(tmp_path, MIXTURE)
    step = Step(data=4, experts=4, batch=4, sequence=1000, shares=(5, 1, 1, 1), dispatch_bytes=1)
    graph = training_graph(model, step)
    # 2 experts a token of 64 numbers, in 4 layers: 5 of 8 go to the first rank, 1 of 8 to each
    # other, in 1 byte a number; back come as many in 2.
    moved = 2 * 1000 * 64 * 4 / 8
    sizes = {}
    for source, destination in ((1, 0), (0, 1), (1, 2)):
        of_pair = (graph.source == source) & (graph.destination == destination)
        sizes[source, destination] = sorted(set(graph.size[of_pair & (graph.size > 60_000)]))

    assert sizes[1, 0] == [2 * moved, 5 * moved]
    assert sizes[0, 1] == [moved, 10 * moved]
    assert sizes[1, 2] == [moved, 2 * moved]


def test_whose_experts_are_chosen_computes_longer(tmp_path: Path) -> None:
    model = model_of(tmp_path, MIXTURE)
    step = Step(data=4, experts=4, batch=4, sequence=1000, shares=(5, 1, 1, 1))
    graph = training_graph(model, step)
    even = training_graph(model, replace(step, shares=()))
    # A token meets 2 experts of 3 matrices of 64 * 256, forward and twice backward; the first rank
    # has 5 of 8 of all tokens' choices where evenly it has 2 of 8.
    experts_ps = 3 * 2 * 1000 * 4 * 2 * (3 * 64 * 256) / 400e12 * 1e12
    for rank, load in ((0, 2.5), (1, 0.5)):
        more = (graph.compute_ps - 0)[graph.source == rank].sum()
        more -= even.compute_ps[even.source == rank].sum()
        assert more == pytest.approx((load - 1) * experts_ps, rel=1e-3)


@pytest.mark.parametrize("skew", [0.5, 1.0, 2.0])
def test_experts_by_zipfs_law(tmp_path: Path, skew: float) -> None:
    model = model_of(tmp_path, MIXTURE)
    loads = expert_loads(model, Step(data=8, experts=8, batch=8, skew=skew))
    law = np.array([1 / rank**skew for rank in range(1, 9)])
    # Every layer has the law's shares, and most have them in an order of their own.
    for layer in loads:
        assert sorted(layer, reverse=True) == pytest.approx(8 * law / law.sum())

    assert len({tuple(np.argsort(layer)) for layer in loads}) > 1
    again, of_seed_2 = (
        expert_loads(model, Step(data=8, experts=8, batch=8, skew=skew, seed=seed))
        for seed in (1, 2)
    )
    assert (again == loads).all() and (of_seed_2 != loads).any()
    # Two experts a rank: their shares together.
    pairs = expert_loads(model, Step(data=4, experts=4, batch=4, skew=skew))
    assert pairs == pytest.approx(loads.reshape(4, 4, 2).mean(axis=2))


def test_uneven_experts_send_as_much_in_all(tmp_path: Path) -> None:
    model = model_of(tmp_path, MIXTURE)
    for by_layer in (True, False):
        step = Step(data=8, experts=8, batch=8, sequence=512, skew=1, by_layer=by_layer)
        uneven, even = (training_graph(model, replace(step, skew=skew)) for skew in (1, 0))
        # A rank's own share stays: more bytes to a popular rank are fewer bytes to the rest.
        assert uneven.size.sum() == pytest.approx(even.size.sum(), rel=1e-3)
        assert uneven.size.max() > 1.2 * even.size.max()


def test_in_a_server_the_busier_end_decides() -> None:
    # Ranks 0 and 1 in one server: 0 sends 1's tokens and gets its own share, from one other.
    assert inside_loads(np.array([3.0, 1.0, 0.0, 0.0]), 2).tolist() == [3, 3, 0, 0]
    # Of four: the first gets 3 shares of 3, all others send it 3 and keep theirs.
    inside = inside_loads(np.array([2.5, 0.5, 0.5, 0.5]), 4)
    assert inside == pytest.approx([2.5, 3.5 / 3, 3.5 / 3, 3.5 / 3])
    assert inside_loads(np.ones(8), 4).tolist() == [1] * 8


@pytest.mark.parametrize(("tensor", "data"), [(1, 16), (4, 4), (2, 1)])
def test_the_slowest_of_many_decides(tmp_path: Path, tensor: int, data: int) -> None:
    model = model_of(tmp_path, SMALL)
    step = Step(tensor=tensor, data=data, batch=data, nvlink_gbs=QUICK, buckets=1, jitter=0.1)
    even = stages(model, step)[0]
    slowest = []
    for seed in range(1, 401):
        graph = training_graph(model, replace(step, seed=seed))
        # The forward pass: the first computation that takes time.
        first = [
            graph.compute_ps[(graph.source == rank) & (graph.compute_ps > 0)][0]
            for rank in range(step.ranks)
        ]
        slowest.append(max(first) / even.forward_ps)

    # The mean of the largest of n exponential delays is the n-th harmonic number.
    harmonic = sum(1 / number for number in range(1, tensor * data + 1))
    assert np.mean(slowest) == pytest.approx(1 + 0.1 * harmonic, abs=0.025)


@pytest.mark.parametrize("stragglers", [1, 3])
def test_slow_gpus_hold_all_others_up(tmp_path: Path, stragglers: int) -> None:
    model = model_of(tmp_path, SMALL)
    step = Step(tensor=2, data=8, batch=16, nvlink_gbs=QUICK)
    usual = computation_ps(training_graph(model, step))
    slow = replace(step, stragglers=stragglers, slowdown=1.1)
    assert slow_gpus(slow).sum() == stragglers
    graph = training_graph(model, slow)
    assert computation_ps(graph) == pytest.approx(1.1 * usual, rel=1e-3)
    # Its neighbour waits in every layer; servers without one lose nothing.
    even = training_graph(model, step)
    longer = {int(rank) // 2 for rank in graph.source[graph.compute_ps > even.compute_ps]}
    assert longer == {int(gpu) // 2 for gpu in np.flatnonzero(slow_gpus(slow))}
    assert (slow_gpus(replace(slow, seed=2)) != slow_gpus(slow)).any()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"skew": 1.0, "experts": 1}, "--expert-skew and --expert-shares: need --ep above 1"),
        ({"skew": 1.0, "token_servers": 2}, "with --token-servers the router evens servers out"),
        ({"skew": 1.0, "shares": (1.0, 1.0)}, "give one of them"),
        ({"shares": (1.0, 2.0, 3.0)}, "3 numbers; needs one for each of 8 experts, or of 4 ranks"),
        ({"shares": (0.0,) * 4}, "their sum must be above 0"),
        ({"stragglers": 5}, "--stragglers 5: there are 4 GPUs"),
    ],
)
def test_what_cannot_be_uneven_is_refused(
    tmp_path: Path, more: dict[str, object], message: str
) -> None:
    step = replace(Step(data=4, experts=4, batch=4), **more)  # type: ignore[arg-type]
    with pytest.raises(TrafficError, match=message):
        training_graph(model_of(tmp_path, MIXTURE), step)
