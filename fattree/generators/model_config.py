"""The keys of a published model configuration (Hugging Face's `config.json`): known, or refused.

A key that changes sizes and is passed over gives a wrong model without a word. So the keys that are
read here and those that change no matrix are listed; any other with a number, a list, a table or
`true` is refused by name. What no key says (whether a feed-forward layer has a gate, whether
embeddings are tied by default) is in the table of families, after the model classes of the
transformers library.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from fattree.errors import TrafficError
from fattree.files.text_file import read_text

# What makers of models call the same thing.
EXPERTS = ("n_routed_experts", "num_local_experts", "num_experts")
CHOSEN = ("num_experts_per_tok", "num_experts_per_token", "experts_per_token")
SHARED = ("n_shared_experts", "num_shared_experts")
ACTIVATION = ("hidden_act", "hidden_activation", "activation_function")
# The last of every so many layers has experts; or attends to all tokens, the others to a window.
SPARSE_STEPS = ("decoder_sparse_step", "interleave_moe_layer_step")
PATTERNS = ("sliding_window_pattern", "_sliding_window_pattern")

READ = {
    *EXPERTS,
    *CHOSEN,
    *SHARED,
    *ACTIVATION,
    *SPARSE_STEPS,
    *PATTERNS,
    "attention_chunk_size",
    "first_k_dense_replace",
    "head_dim",
    "hidden_size",
    "intermediate_size",
    "intermediate_size_mlp",
    "kv_lora_rank",
    "layer_types",
    "max_window_layers",
    "mlp_only_layers",
    "model_type",
    "moe_intermediate_size",
    "moe_layer_freq",
    "moe_layers",
    "no_rope_layers",
    "num_attention_heads",
    "num_hidden_layers",
    "num_key_value_heads",
    "q_lora_rank",
    "qk_nope_head_dim",
    "qk_rope_head_dim",
    "shared_expert_intermediate_size",
    "sliding_window",
    "tie_word_embeddings",
    "use_sliding_window",
    "v_head_dim",
    "vocab_size",
}
# No matrix has another size for these. Modules that guess tokens ahead
# (num_nextn_predict_layers) are published beside a model's parameters, not among them.
WITHOUT_SIZE = re.compile(
    r"""
    .*(_token_ids?|_token_index|_pdrop|_drop|_eps|_epsilon|_bias|_coef|_coeff|_scale|_theta|_std
       |_loss|_noise|_softcap|_softcapping)
    | (rope|rotary|init|initializer|router_aux|router_jitter)_.*
    | .*(dropout|scaling|cache|dtype).*
    | (embedding|residual|attention|logits)_multiplier
    | architectures | auto_map | quantization_config | transformers_version | _name_or_path
    | attn_temperature_tuning | aux_loss_alpha | bias | ep_size | floor_scale | for_llm_compressor
    | image_size | initial_context_length | is_decoder | max_position_embeddings | model_max_length
    | n_group | no_rope_layer_interval | norm_topk_prob | num_nextn_predict_layers
    | original_max_position_embeddings | output_(attentions|hidden_states|router_logits)
    | partial_rotary_factor | pretraining_tp | qk_head_dim | qk_layernorm | query_pre_attn_scalar
    | seq_aux | seq_length | swiglu_limit | topk_group | topk_method | use_parallel_residual
    | use_qk_norm | vision_config | audio_config
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Family:
    """What models of one `model_type` have and their keys do not say.

    `full_every`: the last of so many layers attends to all earlier tokens, the others to a window;
    0 where all are alike.
    """

    is_gated: bool = True
    is_tied: bool = False
    shared_experts: int = 0
    full_every: int = 0


PLAIN = Family()
UNGATED = Family(is_gated=False)
FAMILIES = {
    "cohere": Family(is_tied=True),
    "cohere2": Family(is_tied=True, full_every=4),
    "gemma": Family(is_tied=True),
    "gemma2": Family(is_tied=True, full_every=2),
    "gemma3": Family(is_tied=True, full_every=6),
    "gemma3_text": Family(is_tied=True, full_every=6),
    "gpt_neox": UNGATED,
    "gpt_oss": Family(full_every=2),
    "llama4": Family(shared_experts=1, full_every=4),
    "llama4_text": Family(shared_experts=1, full_every=4),
    "nemotron": UNGATED,
    "persimmon": UNGATED,
    "phi": UNGATED,
    "smollm3": Family(is_tied=True),
    "starcoder2": Family(is_gated=False, is_tied=True),
}
# Of a model type that is not in the table, these are those of a gate (SwiGLU, Shazeer 2020).
GATED_ACTIVATIONS = ("silu", "swish", "swiglu")


@dataclass(frozen=True, slots=True)
class Config:
    """The keys of one file; its errors name file and key."""

    path: str
    values: dict[str, Any]

    @property
    def model_type(self) -> str:
        """Return what the makers of the model call its kind."""
        return str(self.values.get("model_type", "model"))[:40]

    def error(self, problem: str) -> TrafficError:
        """Return the error of this file."""
        return TrafficError(f"{self.path}: {problem}")

    def number(self, *names: str, default: int | None = None) -> int:
        """Return the first of some keys that is there; raises TrafficError."""
        for name in names:
            value = self.values.get(name)
            if value is not None:
                if type(value) is not int or not 0 <= value < 2**31:
                    raise self.error(f"{name} must be a whole number, not {value!r:.40}")

                return value

        if default is None:
            raise self.error(f"{' or '.join(names)} is missing")

        return default

    def truth(self, name: str, default: bool) -> bool:
        """Return a key that is true or false; raises TrafficError."""
        value = self.values.get(name)
        if value is not None and type(value) is not bool:
            raise self.error(f"{name} must be true or false, not {value!r:.40}")

        return default if value is None else value

    def numbers(self, name: str) -> list[int] | None:
        """Return a key that is a list of whole numbers, None where it is missing."""
        value = self.values.get(name)
        if value is None:
            return None

        if not isinstance(value, list) or any(type(entry) is not int for entry in value):
            raise self.error(f"{name} must be a list of whole numbers, not {value!r:.40}")

        return value

    def of_layers(self, name: str, layers: int) -> list[Any]:
        """Return a list with an entry for each layer, empty where it is missing or empty."""
        value = self.values.get(name) or []
        if not isinstance(value, list) or len(value) not in (0, layers):
            raise self.error(f"{name} must be a list of {layers} entries, one for each layer")

        return value

    def family(self) -> Family:
        """Return what the model's keys do not say; raises TrafficError where nobody can know."""
        known = FAMILIES.get(self.model_type)
        if known:
            return known

        act = next((self.values[name] for name in ACTIVATION if self.values.get(name)), "silu")
        if act not in GATED_ACTIVATIONS:
            raise self.error(
                f"hidden_act {act!r:.40} of model_type {self.model_type}: whether its feed-forward "
                f"layers have a gate is not known here (it is of {', '.join(FAMILIES)})"
            )

        return PLAIN


def read_config(path: str) -> Config:
    """Read a `config.json`, the language model's part of it; raises TrafficError."""
    try:
        config = json.loads(read_text(path, TrafficError))
    except (ValueError, RecursionError):
        raise TrafficError(f"{path}: not JSON") from None

    if not isinstance(config, dict):
        raise TrafficError(f"{path}: expected an object of keys, as in a model's config.json")

    # Models that also see have their language model's keys in a table of its own, but for those
    # that are of the whole.
    inner = config.get("text_config")
    if isinstance(inner, dict):
        whole = {
            name: config[name] for name in ("model_type", "tie_word_embeddings") if name in config
        }
        config = whole | {name: value for name, value in inner.items() if value is not None}

    found = Config(path, config)
    _refuse_unknown(found)
    return found


def _refuse_unknown(config: Config) -> None:
    for name, value in config.values.items():
        # A word and an empty value are no size.
        is_harmless = not value or isinstance(value, str)
        if not is_harmless and name not in READ and not WITHOUT_SIZE.fullmatch(name):
            raise config.error(
                f"{name[:60]} = {value!r:.40} is a key that is not known here, and may "
                "change sizes; where it does not, take it out"
            )
