"""Exchanges of GPUs beside the pipeline: keys and values, gradients, tokens layer by layer."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fattree.errors import TrafficError
from fattree.generators.training import computation_ps, training_graph
from fattree.generators.training_memory import memory
from fattree.generators.training_stages import Step
from tests.fattree.workloads.models import DEEPSEEK_V3, LLAMA_405B, SMALL, model_of

# 4 layers; 2 groups of keys and values of 16 numbers each.
GROUPED = {**SMALL, "num_key_value_heads": 2}
MIXTURE = {**SMALL, "num_local_experts": 8, "num_experts_per_tok": 2}


@pytest.mark.parametrize(("parts", "tensor", "microbatches"), [(2, 1, 1), (4, 1, 2), (4, 2, 1)])
def test_keys_and_values_go_round(
    tmp_path: Path, parts: int, tensor: int, microbatches: int
) -> None:
    model = model_of(tmp_path, GROUPED)
    step = Step(tensor=tensor, context=parts, batch=microbatches, sequence=64)
    graph = training_graph(model, step)
    alone = training_graph(model, replace(step, sequence=0)).size.sum()
    # Liu et al. 2023: a block of keys and values, 2 of 2 heads of 16 numbers, makes C - 1 turns
    # forward and C - 1 backward, and its gradients C turns: of C blocks in 4 layers.
    block = 64 // parts * 2 * 2 * 16 * 2
    turns = (parts - 1) + (parts - 1) + parts
    assert graph.size.sum() - alone == pytest.approx(
        microbatches * parts * turns * block * 4, rel=0.01
    )


def test_of_latent_attention_the_narrow_numbers_go_round(tmp_path: Path) -> None:
    # DeepSeek-V3 keeps 512 + 64 numbers of a token and layer (2024, 2.1.1), Llama 3 2 * 8 * 128.
    assert model_of(tmp_path, DEEPSEEK_V3).keys == 576
    assert model_of(tmp_path, LLAMA_405B).keys == 2048


def test_parts_of_a_sequence_share_its_work(tmp_path: Path) -> None:
    model = model_of(tmp_path, LLAMA_405B)
    whole, parts = (
        computation_ps(training_graph(model, Step(context=parts, batch=2, sequence=8192)))
        for parts in (1, 4)
    )
    assert whole / parts == pytest.approx(4, rel=1e-6)
    held = [
        memory(model, Step(context=contexts, batch=2, sequence=8192))[0].activations
        for contexts in (1, 4)
    ]
    assert held[0] / held[1] == pytest.approx(4)


def test_a_ring_computes_while_keys_are_under_way(tmp_path: Path) -> None:
    model = model_of(tmp_path, GROUPED)
    graph = training_graph(model, Step(context=4, batch=1, sequence=64, buckets=1))
    # Of four parts of a forward pass the first waits for nothing: three wait for a block.
    waits = graph.size[graph.awaited] > 0
    is_work = (graph.compute_ps > 0) & (graph.source == 0)
    blocked = np.unique(graph.waiting[waits & is_work[graph.waiting]])
    # Forward 4 and 1 around, backward 4 and 1: the last of the backward pass waits for gradients.
    assert is_work.sum() == 10
    assert len(blocked) == 3 + 3 + 1


def test_a_ring_in_a_server_takes_nvlinks_time(tmp_path: Path) -> None:
    model = model_of(tmp_path, GROUPED)
    step = Step(context=4, data=2, batch=2, sequence=64, server=4, nvlink_gbs=1e-6)
    graph = training_graph(model, step)
    # Only gradients and weights leave, to the GPU of the same place.
    sent = graph.size > 0
    assert (abs(graph.source - graph.destination)[sent] == 4).all()
    # A block takes 16 tokens * 4 layers * 64 numbers * 2 bytes at 1 kB/s: 3 turns forward, then
    # backward 3, each with gradients behind it; those go home in a fourth.
    block_ps = 16 * 4 * 64 * 2 / 1e3 * 1e12
    turns = np.isclose(graph.compute_ps[graph.source == 0], block_ps).sum()
    assert turns == 3 + 3 + 4
    half = training_graph(model, replace(step, context=8, data=1, batch=1))
    sent = half.size > 0
    assert sent.any()
    assert (half.source[sent] // 4 != half.destination[sent] // 4).all()


def test_zeros_second_stage_scatters_every_microbatch(tmp_path: Path) -> None:
    model = model_of(tmp_path, SMALL)
    # Rajbhandari et al. 2020, 7.2.1: with one microbatch as much as in the first stage; gradients
    # that nobody keeps leave once more with each other one.
    for microbatches in (1, 3):
        step = Step(data=4, batch=4 * microbatches, zero=2)
        exchanged = training_graph(model, step).size.sum()
        expected = 4 * 3 / 4 * (microbatches + 1) * 2 * model.parameters
        assert exchanged == pytest.approx(expected, rel=2e-3)
        assert computation_ps(training_graph(model, step)) == pytest.approx(
            computation_ps(training_graph(model, replace(step, zero=1))), abs=100
        )


def test_states_of_zeros_second_stage(tmp_path: Path) -> None:
    # Rajbhandari et al. 2020, figure 1: 7.5 billion parameters on 64 GPUs take 16.6 GB.
    model = model_of(tmp_path, SMALL)
    (exchanged,) = memory(model, Step(data=64, batch=64, zero=2))
    assert exchanged.states / model.parameters == pytest.approx(16.6 / 7.5, rel=3e-3)


@pytest.mark.parametrize(("token_servers", "partners"), [(0, 6), (2, 3)])
def test_layer_by_layer_as_many_bytes_in_more_messages(
    tmp_path: Path, token_servers: int, partners: int
) -> None:
    model = model_of(tmp_path, MIXTURE)
    step = Step(data=8, experts=8, batch=8, sequence=512, server=2, token_servers=token_servers)
    together, apart = (
        training_graph(model, replace(step, by_layer=by_layer)) for by_layer in (False, True)
    )
    assert apart.size.sum() == pytest.approx(together.size.sum(), rel=1e-3)
    assert computation_ps(apart) == pytest.approx(computation_ps(together), rel=1e-6)
    # Of 4 layers 3 more, dispatch and combine, forward and backward, of 8 ranks to their partners.
    few, many = ((graph.size > 0).sum() for graph in (together, apart))
    assert many - few == 3 * 2 * 2 * 8 * partners


def test_layer_by_layer_a_dense_layer_exchanges_nothing(tmp_path: Path) -> None:
    model = model_of(tmp_path, {**MIXTURE, "first_k_dense_replace": 3})
    step = Step(data=8, experts=8, batch=8, sequence=512)
    together, apart = (
        training_graph(model, replace(step, by_layer=by_layer)) for by_layer in (False, True)
    )
    assert len(together) == len(apart)
    assert (together.size == apart.size).all()


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (Step(context=3, batch=1, sequence=64), "64 cannot be divided by 3: the sequence"),
        (Step(context=2, data=2, batch=2, zero=3), "--zero 3 .* not with --cp above 1"),
        (
            Step(context=3, data=2, batch=2, sequence=63, server=2),
            "--cp 3 parts, of which a server has 2",
        ),
        (Step(data=2, batch=2, by_layer=True), "--by-layer is of exchanges: needs --ep or --cp"),
    ],
)
def test_what_cannot_be_exchanged_is_refused(tmp_path: Path, step: Step, message: str) -> None:
    with pytest.raises(TrafficError, match=message):
        training_graph(model_of(tmp_path, SMALL), step)
