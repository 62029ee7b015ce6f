"""A published model configuration (Hugging Face's `config.json`): its parameters and its work.

Counted are the matrices of a decoder: attention (grouped queries, or DeepSeek's latent ones),
feed-forward layers with a gate (three matrices) or without (two), experts with their router,
embeddings. Norms and biases are left out: they are less than a thousandth. Of a model that also
sees, the language model is counted.
"""

from dataclasses import dataclass

from fattree.generators.model_config import (
    CHOSEN,
    EXPERTS,
    PATTERNS,
    SHARED,
    SPARSE_STEPS,
    Config,
    Family,
    read_config,
)

FULL, SLIDING, CHUNKED = "full_attention", "sliding_attention", "chunked_attention"


@dataclass(frozen=True, slots=True)
class Model:
    """Weights of a layer's parts, in numbers, and which layers are of which kind.

    `attention_out` and `feed_forward_out` are those of the last matrix of attention and of a
    feed-forward layer. `expert` is one expert's; `router` and `shared` are there beside the routed
    ones. `attended` is heads * (query and value dimensions) / 2: the multiplications of a token
    with each other token. `sparse` are the layers with experts. `windows` are how many tokens each
    layer looks back, 0 for all; with chunks (`is_chunked`), a token sees those of its own chunk of
    so many. `keys` are the numbers of keys and values that a layer keeps of a token.
    """

    name: str
    hidden: int
    layers: int
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
    sparse: frozenset[int] = frozenset()
    windows: tuple[int, ...] = ()
    is_chunked: bool = False
    keys: int = 0
    attention_out: int = 0
    feed_forward_out: int = 0

    @property
    def parameters(self) -> int:
        """Return the parameters of the whole model."""
        sparse = len(self.sparse)
        return (
            self.layers * self.attention
            + (self.layers - sparse) * self.feed_forward
            + sparse * (self.experts * self.expert + self.shared + self.router)
            + self.embeddings * self.embedding
        )

    @property
    def active_parameters(self) -> int:
        """Return the parameters that a token is multiplied with: words are looked up."""
        return sum(map(self.active, range(self.layers))) + self.embedding

    def active(self, layer: int) -> int:
        """Return the parameters of a layer that one token meets."""
        if layer not in self.sparse:
            return self.attention + self.feed_forward

        return self.attention + self.chosen * self.expert + self.shared + self.router

    def context(self, layer: int, sequence: int) -> int:
        """Return twice the mean of the tokens that a token of a sequence attends to in a layer.

        Without a window that is the sequence's length, as a token sees half of it in the mean.
        """
        window = self.windows[layer] if self.windows else 0
        if not 0 < window < sequence:
            return sequence

        # The first tokens of a sequence see less than the window; those of every chunk do.
        return window if self.is_chunked else window * (2 * sequence - window) // sequence


def read_model(path: str) -> Model:
    """Read a `config.json`; raises TrafficError naming a missing, wrong or unknown key."""
    config = read_config(path)
    family = config.family()
    hidden = config.number("hidden_size")
    layers = config.number("num_hidden_layers")
    experts = config.number(*EXPERTS, default=0)
    width = config.number("intermediate_size")
    dense_width = config.number("intermediate_size_mlp", default=width)
    expert_width = config.number("moe_intermediate_size", default=width)
    beside = expert_width * config.number(*SHARED, default=family.shared_experts)
    shared = config.number("shared_expert_intermediate_size", default=beside)
    attention, attended, keys, attention_out = _attention(config, hidden)
    matrices = 3 if family.is_gated else 2

    return Model(
        name=config.model_type,
        hidden=hidden,
        layers=layers,
        attention=attention,
        attended=attended,
        feed_forward=matrices * hidden * dense_width,
        expert=matrices * hidden * expert_width,
        experts=experts,
        chosen=config.number(*CHOSEN, default=0 if not experts else None),
        shared=matrices * hidden * shared,
        router=hidden * experts,
        embedding=config.number("vocab_size") * hidden,
        embeddings=1 if config.truth("tie_word_embeddings", default=family.is_tied) else 2,
        sparse=_sparse(config, layers) if experts else frozenset(),
        windows=_windows(config, family, layers),
        is_chunked=config.values.get("attention_chunk_size") is not None,
        keys=keys,
        attention_out=attention_out,
        feed_forward_out=hidden * dense_width,
    )


def _attention(config: Config, hidden: int) -> tuple[int, int, int, int]:
    """Return a layer's `Model.attention`, `attended`, `keys` and `attention_out`."""
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
        # Kept are the narrow numbers, of which keys and values are made again.
        out = heads * value * hidden
        return queries + keys + out, (query + heads * value) // 2, low + turned, out

    size = config.number("head_dim", default=hidden // max(heads, 1))
    groups = config.number("num_key_value_heads", default=heads)
    weights, out = 2 * hidden * size * (heads + groups), hidden * size * heads
    return weights, heads * size, 2 * groups * size, out


def _sparse(config: Config, layers: int) -> frozenset[int]:
    """Return the layers with experts: those listed, or all that no key takes out."""
    listed = config.numbers("moe_layers")
    if listed is not None:
        return frozenset(listed).intersection(range(layers))

    first = config.number("first_k_dense_replace", default=0)
    dense = config.numbers("mlp_only_layers") or ()
    has_experts = _frequency(config, layers)
    return frozenset(
        layer
        for layer in range(layers)
        if layer >= first and layer not in dense and has_experts[layer]
    )


def _frequency(config: Config, layers: int) -> list[bool]:
    """Return of each layer whether it is one of every so many."""
    if isinstance(config.values.get("moe_layer_freq"), list):
        return [flag == 1 for flag in config.of_layers("moe_layer_freq", layers)]

    # DeepSeek counts layers from 0, Qwen and Llama from 1.
    every = config.number("moe_layer_freq", default=1)
    last_of = config.number(*SPARSE_STEPS, default=1)
    if not every or not last_of:
        raise config.error(f"moe_layer_freq and {' or '.join(SPARSE_STEPS)} must be at least 1")

    return [layer % every == 0 and (layer + 1) % last_of == 0 for layer in range(layers)]


def _windows(config: Config, family: Family, layers: int) -> tuple[int, ...]:
    """Return how many tokens each layer looks back, 0 for all; empty where all look at all."""
    window = config.number("sliding_window", "attention_chunk_size", default=0)
    kinds = config.of_layers("layer_types", layers)
    for kind in kinds:
        if kind not in (FULL, SLIDING, CHUNKED):
            raise config.error(f"layer_types has {kind!r:.40}, whose sizes are not known here")

    if not window or not config.truth("use_sliding_window", default=True):
        return ()

    if kinds:
        return tuple(0 if kind == FULL else window for kind in kinds)

    # Qwen's first layers have no window; nor have Llama 4's that turn no positions (a 0).
    first = config.number("max_window_layers", default=0)
    every = config.number(*PATTERNS, default=family.full_every)
    has_window = config.of_layers("no_rope_layers", layers) or [
        not every or (layer + 1) % every for layer in range(layers)
    ]
    return tuple(window if layer >= first and has_window[layer] else 0 for layer in range(layers))
