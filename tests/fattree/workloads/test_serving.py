"""Served models: published sizes of keys and values, closed forms of times and bytes."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fattree.errors import TrafficError
from fattree.generators.serving import Serving, kept_bytes, reduced_bytes, serving_graph
from fattree.generators.training import computation_ps
from tests.fattree.workloads.models import DEEPSEEK_V3, LLAMA_405B, SMALL, model_of

QWEN_72B = {
    "model_type": "qwen2",
    "hidden_size": 8192,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "intermediate_size": 29568,
    "vocab_size": 152064,
}


@pytest.mark.parametrize(
    ("config", "kilobytes"),
    [(DEEPSEEK_V3, 70.272), (QWEN_72B, 327.680), (LLAMA_405B, 516.096)],
    ids=["deepseek", "qwen", "llama"],
)
def test_handed_over_is_what_a_token_keeps(
    tmp_path: Path, config: object, kilobytes: float
) -> None:
    # Insights into DeepSeek-V3 2025, table 1: keys and values of a token, in 2 bytes a number.
    model = model_of(tmp_path, config)
    assert kept_bytes(model, Serving()) == round(kilobytes * 1000)
    serving = Serving(prefill=2, decode=1, requests=3, prompt=100, tokens=2)
    graph = serving_graph(model, serving)
    assert graph.size.sum() == pytest.approx(3 * 100 * kilobytes * 1000, rel=1e-6)
    # In a byte a number half as much.
    half = serving_graph(model, replace(serving, key_bytes=1)).size.sum()
    assert 2 * half == graph.size.sum()


@pytest.mark.parametrize(("tensor", "decode_tensor"), [(8, 8), (8, 4), (4, 8), (8, 16)])
def test_every_gpu_hands_over_its_part(tmp_path: Path, tensor: int, decode_tensor: int) -> None:
    model = model_of(tmp_path, LLAMA_405B)
    serving = Serving(
        prefill=2, decode=2, tensor=tensor, decode_tensor=decode_tensor, requests=4, prompt=64
    )
    graph = serving_graph(model, replace(serving, tokens=0))
    sent = graph.size > 0
    whole = 4 * 64 * 516_096
    for ranks, end in ((2 * tensor, graph.source), (2 * decode_tensor, graph.destination)):
        parts = np.bincount(end[sent], weights=graph.size[sent])
        assert parts[parts > 0] == pytest.approx([whole / ranks] * ranks, rel=1e-3)

    # From those that prefill, 0 to 2 T - 1, to those that decode.
    assert graph.source[sent].max() < 2 * tensor <= graph.destination[sent].min()


def test_a_prompt_takes_two_operations_a_weight(tmp_path: Path) -> None:
    model = model_of(tmp_path, LLAMA_405B)
    serving = Serving(prompt=8192, tokens=0, nvlink_gbs=1e9)
    graph = serving_graph(model, serving)
    # 2 N D of the layers' weights, the vocabulary's once; attention sees half of all tokens.
    weights = 8192 * (405.8e9 - 2 * 128_256 * 16_384) + 128_256 * 16_384
    attention = 8192**2 * 126 * 16_384
    expected = 2 * (weights + attention) / (8 * 400e12)
    assert computation_ps(graph) / 1e12 == pytest.approx(expected, rel=1e-3)


def test_a_token_reads_all_weights(tmp_path: Path) -> None:
    model = model_of(tmp_path, LLAMA_405B)
    serving = Serving(requests=1, prompt=1, tokens=10, nvlink_gbs=1e9)
    with_tokens, without = (
        computation_ps(serving_graph(model, replace(serving, tokens=tokens))) for tokens in (10, 0)
    )
    # 2 bytes of each weight but the words', over 8 GPUs of 3.35 TB/s.
    expected = 10 * (405.8e9 - 128_256 * 16_384) * 2 / (8 * 3.35e12)
    assert (with_tokens - without) / 1e12 == pytest.approx(expected, rel=1e-3)


def test_many_long_requests_read_what_they_keep(tmp_path: Path) -> None:
    model = model_of(tmp_path, LLAMA_405B)
    serving = Serving(requests=64, prompt=100_000, tokens=1, nvlink_gbs=1e9, teraflops=1e6)
    read = (405.8e9 - 128_256 * 16_384) * 2 + 64 * 100_000 * 516_096
    graph = serving_graph(model, serving)
    longest = graph.compute_ps[graph.source == 8].max()
    assert longest / 1e12 == pytest.approx(read / (8 * 3.35e12), rel=1e-3)


@pytest.mark.parametrize("tokens", [2, 100])
def test_each_token_reads_what_those_before_it_have_added(tmp_path: Path, tokens: int) -> None:
    model = model_of(tmp_path, LLAMA_405B)
    serving = Serving(requests=64, prompt=1000, tokens=tokens, nvlink_gbs=1e9, teraflops=1e6)
    graph = serving_graph(model, serving)
    decoding = graph.compute_ps[(graph.source == 8) & (graph.compute_ps > 0)] / 1e12
    # Of each of 64 requests 516,096 bytes a token more than the token before, over 8 GPUs.
    assert np.diff(decoding) == pytest.approx([64 * 516_096 / (8 * 3.35e12)] * (tokens - 1))


@pytest.mark.parametrize(("server", "servers"), [(2, 2), (2, 4), (4, 2)])
def test_all_reduces_of_several_servers_take_nvlinks_time_in_each(
    tmp_path: Path, server: int, servers: int
) -> None:
    model = model_of(tmp_path, SMALL)
    gpus, nvlink = server * servers, 1e-3
    serving = Serving(
        tensor=gpus, decode_tensor=gpus, server=server, prompt=50, tokens=0, nvlink_gbs=nvlink
    )
    longest = computation_ps(serving_graph(model, serving)) / 1e12
    # Twice in each of 4 layers a reduce-scatter and an all-gather among S GPUs of 50 tokens of 64
    # numbers of 2 bytes: (S - 1) / S of it each. The computations take a millionth of that.
    reduced = 4 * 2 * 2 * (server - 1) / server * 50 * 64 * 2 / (nvlink * 1e9)
    assert longest == pytest.approx(reduced, rel=1e-4)


def test_a_batch_reads_the_experts_that_it_meets(tmp_path: Path) -> None:
    model = model_of(tmp_path, DEEPSEEK_V3)
    times = {}
    for requests in (1, 4096):
        serving = Serving(requests=requests, prompt=1, tokens=1, nvlink_gbs=1e9, teraflops=1e6)
        graph = serving_graph(model, replace(serving, memory_gbs=1))
        times[requests] = graph.compute_ps[graph.source == 8].max() / 1e12 * 8e9

    # One token meets 37 billion parameters, thousands all 671 (less words that are looked up).
    embedding = 129_280 * 7168
    assert times[1] == pytest.approx(2 * 37e9, rel=0.02)
    kept = 4096 * 70_272
    assert times[4096] == pytest.approx(2 * (671e9 - embedding) + kept, rel=0.01)


def test_all_reduces_in_a_server_take_nvlinks_time(tmp_path: Path) -> None:
    model = model_of(tmp_path, LLAMA_405B)
    serving = Serving(prompt=1000, tokens=0, teraflops=1e9, nvlink_gbs=450)
    # Shoeybi et al. 2019: two a layer of 2 h bytes a token, by ring: 2 (T - 1) / T of it.
    of_token = 126 * 2 * 2 * 7 / 8 * 2 * 16_384
    assert reduced_bytes(model, 8) == pytest.approx(of_token)
    longest = computation_ps(serving_graph(model, serving)) / 1e12
    assert longest == pytest.approx(1000 * of_token / 450e9, rel=1e-3)


def test_an_instance_of_several_servers_reduces_over_the_fabric(tmp_path: Path) -> None:
    model = model_of(tmp_path, SMALL)
    serving = Serving(tensor=4, decode_tensor=8, server=2, requests=2, prompt=50, tokens=3, parts=1)
    graph = serving_graph(model, serving)
    handed = 2 * 50 * kept_bytes(model, serving)
    # Two all-reduces in each of 4 layers, of a half each of 64 numbers of 2 bytes: 2 requests of 50
    # tokens over 2 servers, 3 times 2 tokens over 4; of n a GPU sends 2 (n - 1) / n.
    prefill = 4 * 2 * (2 - 1) / 2 * 2 * 50
    decode = 8 * 2 * (4 - 1) / 4 * 3 * 2
    reduced = (prefill + decode) * 4 * 2 * 64 * 2 / 2
    assert graph.size.sum() == pytest.approx(handed + reduced, rel=1e-3)
    sent = graph.size > 0
    assert (graph.source[sent] // 2 != graph.destination[sent] // 2).all()


def test_decoding_begins_when_all_its_keys_are_there(tmp_path: Path) -> None:
    model = model_of(tmp_path, SMALL)
    serving = Serving(tensor=2, decode_tensor=2, server=2, requests=3, tokens=2, parts=2)
    graph = serving_graph(model, serving)
    first = int(np.flatnonzero((graph.source == 2) & (graph.compute_ps > 0))[0])
    awaited = graph.awaited[graph.waiting == first]
    # Of three requests two parts each.
    assert graph.destination[awaited].tolist() == [2] * 6
    assert (graph.size[awaited] > 0).all()


def test_a_scale_divides_bytes_and_times(tmp_path: Path) -> None:
    model = model_of(tmp_path, LLAMA_405B)
    whole, part = (
        serving_graph(model, Serving(requests=2, tokens=3, scale=scale)) for scale in (1, 64)
    )
    assert whole.size.sum() / part.size.sum() == pytest.approx(64, rel=1e-4)
    assert computation_ps(whole) / computation_ps(part) == pytest.approx(64, rel=1e-4)


@pytest.mark.parametrize(
    ("serving", "message"),
    [
        (Serving(tensor=6), "--tp 6: servers of 8 GPUs hold whole instances"),
        (Serving(decode_tensor=12), "--decode-tp 12: servers of 8 GPUs"),
        (Serving(prefill=3, tensor=4), "3 instances of --tp 4 do not fill servers of 8 GPUs"),
        (Serving(parts=5), "--kv-parts 5: there are 4 layers"),
    ],
)
def test_what_cannot_be_served_is_refused(tmp_path: Path, serving: Serving, message: str) -> None:
    with pytest.raises(TrafficError, match=message):
        serving_graph(model_of(tmp_path, SMALL), serving)


def test_gpus_that_decode_are_counted_before_the_graph_is_built(tmp_path: Path) -> None:
    serving = Serving(requests=64, tokens=1000, decode_tensor=10**6)

    with pytest.raises(TrafficError, match="transfers and computations, more than"):
        serving_graph(model_of(tmp_path, SMALL), serving)
