"""A step's memory: published sizes of ZeRO, and of activations."""

from dataclasses import replace
from pathlib import Path

import pytest

from fattree.errors import TrafficError
from fattree.generators.training_memory import fitting, memory
from fattree.generators.training_stages import Step
from tests.fattree.workloads.models import LLAMA_405B, SMALL, model_of

# GPT-3's, of matrices 4 h wide without a gate.
GPT = {
    "model_type": "gpt_neox",
    "hidden_size": 12288,
    "num_hidden_layers": 96,
    "num_attention_heads": 96,
    "intermediate_size": 4 * 12288,
    "vocab_size": 51200,
}


@pytest.mark.parametrize(
    ("replicas", "zero", "bytes_each"),
    [(64, 1, 31.4 / 7.5), (64, 3, 1.875 / 7.5), (1, 1, 120 / 7.5)],
)
def test_states_are_those_of_zeros_stages(
    tmp_path: Path, replicas: int, zero: int, bytes_each: float
) -> None:
    # Rajbhandari et al. 2020, figure 1: 7.5 billion parameters take 120 GB, on 64 GPUs 31.4 in the
    # first stage and 1.9 in the third.
    model = model_of(tmp_path, SMALL)
    (held,) = memory(model, Step(data=replicas, batch=replicas, zero=zero))
    assert held.states / model.parameters == pytest.approx(bytes_each, rel=2e-3)


def test_activations_are_those_of_korthikanti(tmp_path: Path) -> None:
    model = model_of(tmp_path, GPT)
    step = Step(tensor=8, pipeline=8, batch=64, sequence=2048)
    first, *_, last = memory(model, step)
    # 34 s b h / t a layer; the first stage has as many microbatches under way as there are stages.
    assert first.activations == pytest.approx(34 * 2048 * 12288 * 96 / 8, rel=1e-3)
    assert first.activations == pytest.approx(8 * last.activations)
    again = memory(model, replace(step, recompute=True))[0]
    assert again.activations == pytest.approx(2 * 2048 * 12288 * 96 / 8)


def test_experts_states_are_shared_by_those_that_hold_them(tmp_path: Path) -> None:
    model = model_of(tmp_path, {**SMALL, "num_experts": 8, "num_experts_per_tok": 2})
    experts = 4 * 8 * model.expert
    dense = model.parameters - experts
    (held,) = memory(model, Step(data=8, experts=4, batch=8))
    expected = dense * (4 + 12 / 8) + experts / 4 * (4 + 12 / 2)
    assert held.states == pytest.approx(expected, rel=1e-3)


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    model = model_of(tmp_path, LLAMA_405B)
    step = Step(tensor=8, pipeline=16, data=8, batch=128, sequence=8192, scale=64)
    assert "GB of a GPU's memory (stage 1)" in fitting(model, step, 140)
    advice = "there are 80: more --tp or --pp, or --zero 3, or --recompute$"
    with pytest.raises(TrafficError, match=advice):
        fitting(model, step, 80)

    tight = replace(step, recompute=True, zero=3)
    with pytest.raises(TrafficError, match=r"there are 1: more --tp or --pp$"):
        fitting(model, tight, 1)

    experts = model_of(tmp_path, {**SMALL, "num_experts": 8, "num_experts_per_tok": 2})
    with pytest.raises(TrafficError, match=r"more --tp, --pp or --ep, or --recompute$"):
        fitting(experts, Step(batch=1), 1e-9)

    assert fitting(model, replace(step, recompute=True), 80)
