"""A published model configuration (Hugging Face's `config.json`): its parameters and its work.

Counted are the matrices of a decoder: attention (grouped queries, or DeepSeek's latent ones), gated
feed-forward layers, experts with their router, embeddings. Norms and biases are left out: they are
less than a thousandth.
"""

import json
from dataclasses import dataclass
from typing import Any

from fattree.errors import TrafficError
from fattree.files.text_file import read_text

# What makers of models call the same thing.
EXPERTS = ("n_routed_experts", "num_local_experts", "num_experts")


@dataclass(frozen=True, slots=True)
class Model:
    """Weights of a layer's parts, in numbers, and how many layers there are of each kind.

    `expert` is one expert's; `router` and `shared` are there beside the routed ones. `attended` is
    heads * (query and value dimensions) / 2: what each token multiplies with each other one.
    """

    name: str
    hidden: int
    layers: int
    dense_layers: int
    attention: int
    attended: int
    feed_forward: int
    expert: int
    experts: int
    chosen: int
    shared: int
    router: int
    embedding: int
    embeddings: int

    @property
    def parameters(self) -> int:
        """Return the parameters of the whole model."""
        sparse = self.layers - self.dense_layers
        return (
            self.layers * self.attention
            + self.dense_layers * self.feed_forward
            + sparse * (self.experts * self.expert + self.shared + self.router)
            + self.embeddings * self.embedding
        )

    def active(self, layer: int) -> int:
        """Return the parameters of a layer that one token meets."""
        if layer < self.dense_layers:
            return self.attention + self.feed_forward

        return self.attention + self.chosen * self.expert + self.shared + self.router


def read_model(path: str) -> Model:
    """Read a `config.json`; raises TrafficError naming the key that is missing or wrong."""
    try:
        config = json.loads(read_text(path, TrafficError))
    except (ValueError, RecursionError):
        raise TrafficError(f"{path}: not JSON") from None

    if not isinstance(config, dict):
        raise TrafficError(f"{path}: expected an object of keys, as in a model's config.json")

    # Models that also see have their language model's keys in a table of its own.
    inner = config.get("text_config")
    return _model(_Config(path, inner if isinstance(inner, dict) else config))


@dataclass(frozen=True, slots=True)
class _Config:
    path: str
    values: dict[str, Any]

    def number(self, *names: str, default: int | None = None) -> int:
        """Return the first of some keys that is there; raises TrafficError."""
        for name in names:
            value = self.values.get(name)
            if value is not None:
                if type(value) is not int or not 0 <= value < 2**31:
                    raise TrafficError(
                        f"{self.path}: {name} must be a whole number, not {value!r:.40}"
                    )

                return value

        if default is None:
            raise TrafficError(f"{self.path}: {' or '.join(names)} is missing")

        return default


def _model(config: _Config) -> Model:
    hidden = config.number("hidden_size")
    layers = config.number("num_hidden_layers")
    width = config.number("intermediate_size")
    experts = config.number(*EXPERTS, default=0)
    each = config.number("moe_intermediate_size", default=width)
    beside = each * config.number("n_shared_experts", default=0)
    shared = config.number("shared_expert_intermediate_size", default=beside)
    vocabulary = config.number("vocab_size")
    attention, attended = _attention(config, hidden)
    is_tied = config.values.get("tie_word_embeddings") is True
    dense = config.number("first_k_dense_replace", default=0) if experts else layers

    return Model(
        name=str(config.values.get("model_type", "model"))[:40],
        hidden=hidden,
        layers=layers,
        dense_layers=min(dense, layers),
        attention=attention,
        attended=attended,
        feed_forward=3 * hidden * width,
        expert=3 * hidden * each,
        experts=experts,
        chosen=config.number("num_experts_per_tok", default=0 if not experts else None),
        shared=3 * hidden * shared,
        router=hidden * experts,
        embedding=vocabulary * hidden,
        embeddings=1 if is_tied else 2,
    )


def _attention(config: _Config, hidden: int) -> tuple[int, int]:
    """Return the weights of a layer's attention, and its heads' dimensions (`Model.attended`)."""
    heads = config.number("num_attention_heads")
    low = config.number("kv_lora_rank", default=0)
    if low:
        # DeepSeek-V2's latent attention (2024): keys and values through a narrow matrix.
        plain, turned = config.number("qk_nope_head_dim"), config.number("qk_rope_head_dim")
        value = config.number("v_head_dim")
        query = heads * (plain + turned)
        narrow = config.number("q_lora_rank", default=0)
        queries = narrow * (hidden + query) if narrow else hidden * query
        keys = hidden * (low + turned) + low * heads * (plain + value)
        return queries + keys + heads * value * hidden, (query + heads * value) // 2

    size = config.number("head_dim", default=hidden // max(heads, 1))
    groups = config.number("num_key_value_heads", default=heads)
    return 2 * hidden * size * (heads + groups), heads * size
