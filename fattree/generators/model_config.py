"""The keys of a published model configuration (Hugging Face's `config.json`): known, or refused.

A key that changes sizes and is passed over gives a wrong model without a word. So the keys that are
read here and those that change no matrix are listed; any other with a number, a list, a table or
`true` is refused by name. Properties without a key (whether a feed-forward layer has a gate,
whether embeddings are tied by default) are in the table of families, after the model classes of the
transformers library.
"""

import json
import re
from dataclasses import dataclass
from fnmatch import translate
from typing import Any

from fattree.errors import TrafficError
from fattree.files.fields import Fields, Use, names
from fattree.files.text_file import read_text

# Names that makers of models give to the same thing.
EXPERTS = ("n_routed_experts", "num_local_experts", "num_experts")
CHOSEN = ("num_experts_per_tok", "num_experts_per_token", "experts_per_token")
SHARED = ("n_shared_experts", "num_shared_experts")
ACTIVATION = ("hidden_act", "hidden_activation", "activation_function")
# The last of every so many layers has experts; or attends to all tokens, the others to a window.
SPARSE_STEPS = ("decoder_sparse_step", "interleave_moe_layer_step")
PATTERNS = ("sliding_window_pattern", "_sliding_window_pattern")

TABLE = (
    Fields(("hidden_size", "num_hidden_layers", "vocab_size", "tie_word_embeddings"), Use.USED, ""),
    Fields(
        (
            "num_attention_heads",
            "num_key_value_heads",
            "head_dim",
            "kv_lora_rank",
            "q_lora_rank",
            "qk_nope_head_dim",
            "qk_rope_head_dim",
            "v_head_dim",
        ),
        Use.USED,
        "attention",
    ),
    Fields(
        (
            "attention_chunk_size",
            "layer_types",
            "max_window_layers",
            "no_rope_layers",
            "sliding_window",
            "use_sliding_window",
            *PATTERNS,
        ),
        Use.USED,
        "how far layers look back",
    ),
    Fields(
        ("intermediate_size", "intermediate_size_mlp", "model_type", *ACTIVATION),
        Use.USED,
        "feed-forward layers: their width, and whether they have a gate",
    ),
    Fields(
        (
            *EXPERTS,
            *CHOSEN,
            *SHARED,
            *SPARSE_STEPS,
            "first_k_dense_replace",
            "mlp_only_layers",
            "moe_intermediate_size",
            "moe_layer_freq",
            "moe_layers",
            "shared_expert_intermediate_size",
        ),
        Use.USED,
        "experts, and which layers have some",
    ),
    Fields(("text_config",), Use.USED, "the language model's keys of a model that also sees"),
    Fields(("vision_config", "audio_config", "image_size"), Use.LEFT_OUT, "towers are not counted"),
    Fields(
        ("num_nextn_predict_layers",),
        Use.LEFT_OUT,
        "modules that guess tokens ahead are published beside the parameters",
    ),
    Fields(
        ("quantization_config", "*dtype*"),
        Use.LEFT_OUT,
        "numbers have 2 bytes, on their way as many as the options say",
    ),
    Fields(
        ("*_bias", "bias", "*_eps", "*_epsilon", "qk_layernorm", "use_qk_norm", "norm_topk_prob"),
        Use.LEFT_OUT,
        "norms and biases: less than a thousandth",
    ),
    Fields(
        (
            "rope_*",
            "rotary_*",
            "*_theta",
            "attn_temperature_tuning",
            "floor_scale",
            "initial_context_length",
            "max_position_embeddings",
            "model_max_length",
            "no_rope_layer_interval",
            "original_max_position_embeddings",
            "partial_rotary_factor",
            "qk_head_dim",
            "query_pre_attn_scalar",
            "seq_length",
        ),
        Use.LEFT_OUT,
        "positions: no matrix",
    ),
    Fields(
        (
            "*_softcap",
            "*_softcapping",
            "*_scale",
            "*scaling*",
            "swiglu_limit",
            "embedding_multiplier",
            "residual_multiplier",
            "attention_multiplier",
            "logits_multiplier",
        ),
        Use.LEFT_OUT,
        "factors and limits of numbers",
    ),
    Fields(("use_parallel_residual",), Use.LEFT_OUT, "the same matrices, side by side"),
    Fields(
        (
            "n_group",
            "topk_group",
            "topk_method",
            "ep_size",
            "router_aux_*",
            "router_jitter_*",
            "*_noise",
        ),
        Use.LEFT_OUT,
        "how experts are chosen: `--expert-skew`, `--token-servers`, `--ep` say it",
    ),
    Fields(
        (
            "*_coef",
            "*_coeff",
            "*_drop",
            "*_loss",
            "*_pdrop",
            "*_std",
            "*dropout*",
            "aux_loss_alpha",
            "init_*",
            "initializer_*",
            "seq_aux",
        ),
        Use.LEFT_OUT,
        "training's losses, dropout and first numbers",
    ),
    Fields(
        (
            "*_token_id",
            "*_token_ids",
            "*_token_index",
            "*cache*",
            "_name_or_path",
            "architectures",
            "auto_map",
            "for_llm_compressor",
            "is_decoder",
            "output_attentions",
            "output_hidden_states",
            "output_router_logits",
            "pretraining_tp",
            "transformers_version",
        ),
        Use.LEFT_OUT,
        "names, and settings of programs",
    ),
    Fields(("any other",), Use.REFUSED, "if it is a number above 0, a list, a table or true"),
)
# A `text_config` that is an object is taken apart before.
READ = frozenset(names(TABLE, Use.USED)) - {"text_config"}
WITHOUT_SIZE = re.compile("|".join(map(translate, names(TABLE, Use.LEFT_OUT))))


@dataclass(frozen=True, slots=True)
class Family:
    """Properties of models of one `model_type` that are not in their keys.

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
        """Return the kind of model, by its makers' name."""
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
        """Return the properties outside the model's keys; raises TrafficError if unknown."""
        listed = FAMILIES.get(self.model_type)
        if listed:
            return listed

        act = next((self.values[name] for name in ACTIVATION if self.values.get(name)), "silu")
        if act not in GATED_ACTIVATIONS:
            raise self.error(
                f"hidden_act {act!r:.40} of model_type {self.model_type}: whether its feed-forward "
                f"layers have a gate is not known here (it is of {', '.join(FAMILIES)})"
            )

        return PLAIN


def read_config(path: str) -> Config:
    """Read a `config.json`, the language model's part of it; raises TrafficError."""
    text = read_text(path, TrafficError)
    try:
        config = json.loads(text)
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

    made = Config(path, config)
    _refuse_unknown(made)
    return made


def _refuse_unknown(config: Config) -> None:
    # Nothing is quoted of a file that is no model's configuration.
    config.number("hidden_size")
    for name, value in config.values.items():
        # A word and an empty value are no size.
        is_harmless = not value or isinstance(value, str)
        if not is_harmless and name not in READ and not WITHOUT_SIZE.fullmatch(name):
            raise config.error(
                f"{name[:60]} = {value!r:.40} is a key that is not known here, and may "
                "change sizes; where it does not, take it out"
            )
