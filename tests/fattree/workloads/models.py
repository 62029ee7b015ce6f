"""Published configurations of models, as far as they decide sizes, and their parameters."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from fattree.generators.model import Model, read_model


class Published(NamedTuple):
    """A configuration; its parameters in billions, in all and active (0: not published)."""

    config: dict[str, Any]
    billions: float
    active: float = 0
    # Of which the embeddings' tables: those that are multiplied with, none, or both.
    tables: int = 1


def model_of(folder: Path, config: Any) -> Model:
    """Return the model of a configuration, by way of a file."""
    path = folder / "config.json"
    path.write_text(json.dumps(config))
    return read_model(str(path))


SMALL = {
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 256,
    "vocab_size": 1000,
}
LLAMA_405B = {
    "hidden_size": 16384,
    "num_hidden_layers": 126,
    "num_attention_heads": 128,
    "num_key_value_heads": 8,
    "intermediate_size": 53248,
    "vocab_size": 128256,
}
# MegaScale's (Jiang et al. 2024, table 1), a GPT with a vocabulary of 64,000.
MEGASCALE_175B = {
    "model_type": "gpt_neox",
    "hidden_size": 12288,
    "num_hidden_layers": 96,
    "num_attention_heads": 128,
    "intermediate_size": 49152,
    "vocab_size": 64000,
    "tie_word_embeddings": True,
}
MIXTRAL_8X22B = {
    "hidden_size": 6144,
    "num_hidden_layers": 56,
    "num_attention_heads": 48,
    "num_key_value_heads": 8,
    "intermediate_size": 16384,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "vocab_size": 32768,
}
DEEPSEEK_V3 = {
    "hidden_size": 7168,
    "num_hidden_layers": 61,
    "num_attention_heads": 128,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "intermediate_size": 18432,
    "moe_intermediate_size": 2048,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "first_k_dense_replace": 3,
    "vocab_size": 129280,
}
LLAMA_4_MAVERICK = {
    "model_type": "llama4",
    "tie_word_embeddings": False,
    "text_config": {
        "model_type": "llama4_text",
        "attention_chunk_size": 8192,
        "head_dim": 128,
        "hidden_act": "silu",
        "hidden_size": 5120,
        "interleave_moe_layer_step": 2,
        "intermediate_size": 8192,
        "intermediate_size_mlp": 16384,
        "no_rope_layers": [],
        "num_attention_heads": 40,
        "num_experts_per_tok": 1,
        "num_hidden_layers": 48,
        "num_key_value_heads": 8,
        "num_local_experts": 128,
        "use_qk_norm": False,
        "vocab_size": 202048,
    },
    "vision_config": {"hidden_size": 1408},
}
NEMOTRON_4_340B = {
    "model_type": "nemotron",
    "hidden_act": "relu2",
    "hidden_size": 18432,
    "intermediate_size": 73728,
    "num_attention_heads": 96,
    "num_hidden_layers": 96,
    "num_key_value_heads": 8,
    "tie_word_embeddings": False,
    "vocab_size": 256000,
}
GPT_NEOX_20B = {
    "model_type": "gpt_neox",
    "hidden_act": "gelu_fast",
    "hidden_size": 6144,
    "intermediate_size": 24576,
    "num_attention_heads": 64,
    "num_hidden_layers": 44,
    "rotary_emb_base": 10000,
    "tie_word_embeddings": False,
    "vocab_size": 50432,
}
GEMMA_2_27B = {
    "model_type": "gemma2",
    "head_dim": 128,
    "hidden_act": "gelu_pytorch_tanh",
    "hidden_size": 4608,
    "intermediate_size": 36864,
    "num_attention_heads": 32,
    "num_hidden_layers": 46,
    "num_key_value_heads": 16,
    "query_pre_attn_scalar": 144,
    "sliding_window": 4096,
    "vocab_size": 256000,
}
GPT_OSS_120B = {
    "model_type": "gpt_oss",
    "experts_per_token": 4,
    "head_dim": 64,
    "hidden_act": "silu",
    "hidden_size": 2880,
    "intermediate_size": 2880,
    "layer_types": ["sliding_attention", "full_attention"] * 18,
    "num_attention_heads": 64,
    "num_experts_per_tok": 4,
    "num_hidden_layers": 36,
    "num_key_value_heads": 8,
    "num_local_experts": 128,
    "sliding_window": 128,
    "swiglu_limit": 7.0,
    "tie_word_embeddings": False,
    "vocab_size": 201088,
}
GPT_OSS_20B = GPT_OSS_120B | {
    "layer_types": ["sliding_attention", "full_attention"] * 12,
    "num_hidden_layers": 24,
    "num_local_experts": 32,
}
GLM_4_5 = {
    "model_type": "glm4_moe",
    "first_k_dense_replace": 3,
    "head_dim": 128,
    "hidden_act": "silu",
    "hidden_size": 5120,
    "intermediate_size": 12288,
    "moe_intermediate_size": 1536,
    "n_group": 1,
    "n_routed_experts": 160,
    "n_shared_experts": 1,
    "num_attention_heads": 96,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 92,
    "num_key_value_heads": 8,
    "num_nextn_predict_layers": 1,
    "tie_word_embeddings": False,
    "vocab_size": 151552,
}
QWEN3_235B = {
    "model_type": "qwen3_moe",
    "decoder_sparse_step": 1,
    "head_dim": 128,
    "hidden_act": "silu",
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "max_window_layers": 94,
    "mlp_only_layers": [],
    "moe_intermediate_size": 1536,
    "num_attention_heads": 64,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 94,
    "num_key_value_heads": 4,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "use_sliding_window": False,
    "vocab_size": 151936,
}
GEMMA_3_27B = {
    "model_type": "gemma3",
    "text_config": {
        "model_type": "gemma3_text",
        "head_dim": 128,
        "hidden_size": 5376,
        "intermediate_size": 21504,
        "num_attention_heads": 32,
        "num_hidden_layers": 62,
        "num_key_value_heads": 16,
        "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
        "sliding_window": 1024,
        "vocab_size": 262208,
    },
    "vision_config": {"hidden_size": 1152},
}

# Billions of model cards and papers: Llama 3.1 (Grattafiori et al. 2024), Mixtral 8x22B,
# DeepSeek-V3 (2024), Llama 4 (its language model), Nemotron-4 340B (2024),
# GPT-NeoX-20B (Black et al. 2022), Gemma 2 and 3 (26.0 and 1.2; 25.6 and 1.4), GPT-OSS (2025),
# GLM-4.5 (2025: without embeddings, with its module for guessing ahead), Qwen3 (2025).
PUBLISHED = {
    "llama 405b": Published(LLAMA_405B, 405.8),
    "mixtral 8x22b": Published(MIXTRAL_8X22B, 140.6, 39),
    "deepseek-v3": Published(DEEPSEEK_V3, 671, 37),
    "llama 4 maverick": Published(LLAMA_4_MAVERICK, 400.7, 17, tables=2),
    "nemotron-4 340b": Published(NEMOTRON_4_340B, 341.0),
    "gpt-neox 20b": Published(GPT_NEOX_20B, 20.6),
    "gemma 2 27b": Published(GEMMA_2_27B, 27.2),
    "gemma 3 27b": Published(GEMMA_3_27B, 27.0),
    "gpt-oss 120b": Published(GPT_OSS_120B, 116.83, 5.13),
    "gpt-oss 20b": Published(GPT_OSS_20B, 20.91, 3.61),
    "glm-4.5": Published(GLM_4_5, 355, 32, tables=0),
    "qwen3-235b": Published(QWEN3_235B, 235, 22, tables=2),
}
