"""Training steps: work and bytes as the papers' formulas."""

from pathlib import Path

import numpy as np
import pytest

from fattree.errors import TrafficError
from fattree.generators.training import (
    Step,
    computation_ps,
    one_forward_one_backward,
    stages,
    training_graph,
)
from tests.fattree.workloads.models import LLAMA_405B, SMALL, model_of


def test_a_step_is_six_times_weights_times_tokens_and_attention(tmp_path: Path) -> None:
    model = model_of(tmp_path, LLAMA_405B)
    step = Step(data=8, batch=8, sequence=4096, teraflops=400)
    (stage,) = stages(model, step)
    weights = model.parameters - model.embedding
    attention = 6 * 126 * 4096 * 4096 * 16384
    seconds = (6 * weights * 4096 + attention) / 400e12
    assert 3 * stage.forward_ps / 1e12 == pytest.approx(seconds)


def test_a_step_of_one_gpu_only_computes(tmp_path: Path) -> None:
    model = model_of(tmp_path, SMALL)
    graph = training_graph(model, Step(batch=3))
    assert graph.size.sum() == 0
    assert computation_ps(graph) == pytest.approx(9 * stages(model, Step())[0].forward_ps, abs=20)


def test_bytes_of_data_parallelism_are_two_rings(tmp_path: Path) -> None:
    model = model_of(tmp_path, SMALL)
    graph = training_graph(model, Step(data=4, batch=4, buckets=1))
    # Reduce-scatter and all-gather: each rank sends 3 quarters of 2 bytes a parameter, twice.
    assert graph.size.sum() == pytest.approx(4 * 2 * 3 / 4 * 2 * model.parameters, rel=1e-3)


def test_bytes_between_stages_and_of_tensor_parallelism(tmp_path: Path) -> None:
    model = model_of(tmp_path, SMALL)
    step = Step(tensor=2, pipeline=2, batch=3, sequence=10, nvlink_gbs=1e-6)
    graph = training_graph(model, step)
    # Half of 10 tokens of 64 numbers of 2 bytes, there and back, of 2 ranks, 3 times.
    assert graph.size[graph.size > 0].tolist() == [640] * 12
    # All-reduces dominate: 2 forward, of 2 layers, 1280 bytes each, at 1 kB/s.
    assert stages(model, step)[0].forward_ps == pytest.approx(2 * 2 * 1280e-3 * 1e12, rel=1e-3)


def test_bytes_of_experts(tmp_path: Path) -> None:
    config = {**SMALL, "num_local_experts": 4, "num_experts_per_tok": 2}
    model = model_of(tmp_path, config)
    graph = training_graph(model, Step(data=2, experts=2, batch=2, sequence=10, buckets=1))
    sent = graph.size[(graph.size > 0)]
    # To the other rank half of 2 x 10 tokens of 128 bytes in 4 layers: dispatch and combine,
    # forward and backward, of 2 ranks.
    exchanged = 4 * 2 * 10 * 128 // 2
    assert (sent == exchanged).sum() == 8
    # Experts have no other replica; all else is added up as before.
    dense = model.parameters - 4 * 4 * model.expert
    assert sent.sum() == pytest.approx(8 * exchanged + 2 * 2 * dense, rel=1e-2)


@pytest.mark.parametrize(("stage", "count"), [(0, 5), (1, 5), (3, 5), (0, 2), (3, 1)])
def test_a_stage_takes_every_microbatch_once_each_way(stage: int, count: int) -> None:
    order = list(one_forward_one_backward(stage, 4, count))
    for is_forward in (True, False):
        assert [number for way, number in order if way == is_forward] == list(range(count))
    # Never more under way than stages are left.
    held = np.cumsum([1 if is_forward else -1 for is_forward, _ in order])
    assert held.max() == min(4 - stage, count)


def test_a_pipeline_has_its_bubble(tmp_path: Path) -> None:
    model = model_of(tmp_path, {**SMALL, "vocab_size": 1})
    step = Step(pipeline=4, batch=8)
    part_ps = stages(model, step)[0].forward_ps
    # Narayanan et al. 2021: (stages - 1) / microbatches more than the work itself.
    found = computation_ps(training_graph(model, step))
    assert found == pytest.approx(3 * part_ps * (8 + 3), rel=1e-3)


def test_a_scale_divides_bytes_and_computations(tmp_path: Path) -> None:
    model = model_of(tmp_path, LLAMA_405B)
    whole, part = (
        training_graph(model, Step(tensor=8, pipeline=2, data=4, batch=8, scale=scale))
        for scale in (1, 64)
    )
    assert len(whole) == len(part)
    assert whole.size.sum() / part.size.sum() == pytest.approx(64, rel=1e-4)
    assert computation_ps(whole) / computation_ps(part) == pytest.approx(64, rel=1e-4)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (Step(data=3, batch=4), "4 cannot be divided by 3: the batch"),
        (Step(pipeline=5, batch=4), "4 layers are too few for 5 stages"),
        (Step(data=4, experts=3, batch=4), "4 cannot be divided by 3: the replicas"),
        (Step(data=4, experts=2, batch=4), "this model has no experts"),
    ],
)
def test_what_cannot_be_spread_is_refused(tmp_path: Path, step: Step, message: str) -> None:
    with pytest.raises(TrafficError, match=message):
        training_graph(model_of(tmp_path, SMALL), step)
