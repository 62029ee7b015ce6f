"""Models: parameters as published; unknown keys of a configuration are refused by name."""

from pathlib import Path
from typing import Any

import pytest

from fattree.errors import TrafficError
from fattree.generators.model_config import FAMILIES
from tests.fattree.workloads.models import (
    GEMMA_2_27B,
    GPT_OSS_20B,
    LLAMA_4_MAVERICK,
    PUBLISHED,
    SMALL,
    model_of,
)

EXPERTS = {**SMALL, "num_experts": 8, "num_experts_per_tok": 2}


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_those_that_are_published(tmp_path: Path, name: str) -> None:
    published = PUBLISHED[name]
    model = model_of(tmp_path, published.config)
    assert model.parameters / 1e9 == pytest.approx(published.billions, rel=1e-2)


@pytest.mark.parametrize("name", [name for name, figures in PUBLISHED.items() if figures.active])
def test_active_parameters_are_those_that_are_published(tmp_path: Path, name: str) -> None:
    published = PUBLISHED[name]
    model = model_of(tmp_path, published.config)
    active = model.active_parameters + (published.tables - 1) * model.embedding
    # Some are published as whole billions.
    close = 0.5 if published.active == int(published.active) else published.active / 100
    assert active / 1e9 == pytest.approx(published.active, abs=close)


@pytest.mark.parametrize(
    ("keys", "sparse"),
    [
        ({}, [0, 1, 2, 3]),
        ({"first_k_dense_replace": 3}, [3]),
        ({"moe_layer_freq": 2}, [0, 2]),
        ({"moe_layer_freq": [0, 1, 1, 0]}, [1, 2]),
        ({"decoder_sparse_step": 2}, [1, 3]),
        ({"interleave_moe_layer_step": 4}, [3]),
        ({"mlp_only_layers": [0, 2]}, [1, 3]),
        ({"moe_layers": [2]}, [2]),
    ],
)
def test_layers_with_experts(tmp_path: Path, keys: dict[str, Any], sparse: list[int]) -> None:
    assert sorted(model_of(tmp_path, EXPERTS | keys).sparse) == sparse


@pytest.mark.parametrize(
    ("keys", "windows"),
    [
        ({}, ()),
        ({"sliding_window": 8}, (8, 8, 8, 8)),
        ({"sliding_window": 8, "use_sliding_window": False}, ()),
        ({"sliding_window": 8, "max_window_layers": 3}, (0, 0, 0, 8)),
        ({"sliding_window": 8, "sliding_window_pattern": 2}, (8, 0, 8, 0)),
        ({"sliding_window": 8, "model_type": "gemma2"}, (8, 0, 8, 0)),
        (
            {"sliding_window": 8, "layer_types": ["sliding_attention", *["full_attention"] * 3]},
            (8, 0, 0, 0),
        ),
        ({"attention_chunk_size": 8, "model_type": "llama4_text"}, (8, 8, 8, 0)),
        ({"attention_chunk_size": 8, "no_rope_layers": [0, 1, 1, 1]}, (0, 8, 8, 8)),
    ],
)
def test_layers_that_look_back_on_a_window(
    tmp_path: Path, keys: dict[str, Any], windows: tuple[int, ...]
) -> None:
    assert model_of(tmp_path, SMALL | keys).windows == windows


@pytest.mark.parametrize("name", ["sliding_window", "attention_chunk_size"])
def test_a_window_is_as_the_mean_of_all_tokens(tmp_path: Path, name: str) -> None:
    model = model_of(tmp_path, SMALL | {name: 100})
    seen = [position % 100 if model.is_chunked else min(position, 100) for position in range(1000)]
    assert model.context(0, 1000) == pytest.approx(2 * sum(seen) / 1000, rel=2e-2)
    assert model.context(0, 50) == 50


def test_a_window_changes_no_size(tmp_path: Path) -> None:
    for config in (GEMMA_2_27B, GPT_OSS_20B):
        without = {key: value for key, value in config.items() if key != "sliding_window"}
        wide, narrow = (model_of(tmp_path, keys) for keys in (without, config))
        assert wide.parameters == narrow.parameters
        assert wide.context(0, 16384) > narrow.context(0, 16384)


def test_the_language_model_is_counted_of_one_that_sees(tmp_path: Path) -> None:
    alone = model_of(tmp_path, LLAMA_4_MAVERICK["text_config"])
    assert model_of(tmp_path, LLAMA_4_MAVERICK) == alone


def test_keys_without_a_size_are_passed_over(tmp_path: Path) -> None:
    keys: dict[str, Any] = {
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": True,
        "bos_token_id": 128000,
        "eos_token_id": [128001, 128008, 128009],
        "max_position_embeddings": 131072,
        "pretraining_tp": 1,
        "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
        "rms_norm_eps": 1e-5,
        "rope_scaling": {"factor": 8.0, "rope_type": "llama3"},
        "rope_theta": 500000,
        "topk_group": 4,
        "torch_dtype": "bfloat16",
        "use_cache": True,
    }
    assert model_of(tmp_path, SMALL | keys) == model_of(tmp_path, SMALL)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_may_have_any_activation(tmp_path: Path, family: str) -> None:
    model = model_of(tmp_path, {**SMALL, "model_type": family, "hidden_act": "gelu"})
    matrices = 3 if FAMILIES[family].is_gated else 2
    assert model.feed_forward == matrices * 64 * 256
    assert model.embeddings == (1 if FAMILIES[family].is_tied else 2)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({**SMALL, "hidden_size": None}, "hidden_size is missing"),
        ({**SMALL, "hidden_size": "9" * 999}, "hidden_size must be a whole number, not '9{39}$"),
        ({**SMALL, "hidden_size": "big"}, "hidden_size must be a whole number, not 'big'"),
        ({**SMALL, "num_experts": 8}, "num_experts_per_tok or .* is missing"),
        ({**SMALL, "tie_word_embeddings": 1}, "tie_word_embeddings must be true or false, not 1"),
        ({**SMALL, "mamba_d_state": 128}, "mamba_d_state = 128 is a key that is not known here"),
        ({**SMALL, "ffn_config": {"d": 8}}, "ffn_config = {'d': 8} is a key that is not known"),
        ({**SMALL, "multi_query": True}, "multi_query = True is a key that is not known here"),
        ({**SMALL, "mlp_ratio": 2.5}, "mlp_ratio = 2.5 is a key that is not known here"),
        ({**SMALL, "ffn_multipliers": [0.5]}, "ffn_multipliers = .* is a key that is not known"),
        ({**SMALL, "hidden_act": "gelu"}, "hidden_act 'gelu' of model_type model: whether its"),
        ({**SMALL, "layer_types": ["full_attention"]}, "layer_types must be a list of 4 entries"),
        ({**SMALL, "layer_types": ["mamba"] * 4}, "layer_types has 'mamba', whose sizes are not"),
        ({**EXPERTS, "decoder_sparse_step": 0}, "must be at least 1"),
        ({**EXPERTS, "moe_layers": [[]]}, "moe_layers must be a list of whole numbers"),
        ([], "expected an object of keys"),
    ],
)
def test_what_is_no_configuration_is_refused(tmp_path: Path, config: Any, message: str) -> None:
    with pytest.raises(TrafficError, match=message):
        model_of(tmp_path, config)
