"""Steps as they were run: Llama 3's and DeepSeek-V3's layouts against their published figures.

Closed forms of published results stand on one side, graphs and stages of the generator on the
other; they share nothing but the models' configurations.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from fattree.generators.model import Model
from fattree.generators.training import computation_ps, training_graph
from fattree.generators.training_stages import Step, stages
from tests.fattree.workloads.models import DEEPSEEK_V3, LLAMA_405B, MEGASCALE_175B, model_of

# NVLink takes no time.
QUICK = 1e12
NVLINK_GBS = 450

# Llama 3 Herd of Models 2024, table 4: GPUs, and TFLOP/s of each.
SEQUENCE = 8192
TOKENS = 16 * 2**20
LLAMA = Step(tensor=8, pipeline=16, virtual=8, thin_ends=True, sequence=SEQUENCE)
# DeepSeek-V3 2024, 3.1 and 4.2; 2,048 GPUs.
DEEPSEEK = Step(
    pipeline=16,
    data=128,
    experts=64,
    batch=15360,
    server=8,
    token_servers=4,
    dispatch_bytes=1,
)


def work(model: Model, step: Step) -> float:
    """Return the floating-point operations of a step, of all GPUs."""
    alone = replace(step, nvlink_gbs=QUICK, token_servers=0, experts=1)
    stage_times = (stage.forward_ps + stage.backward_ps for stage in stages(model, alone))
    gpus = step.tensor * step.replicas
    return sum(stage_times) / 1e12 * step.microbatches * gpus * step.teraflops * 1e12


@pytest.mark.parametrize(
    ("config", "gigaflops"), [(LLAMA_405B, 2448), (DEEPSEEK_V3, 250)], ids=["llama", "deepseek"]
)
def test_work_of_a_token_is_the_published_one(
    tmp_path: Path, config: object, gigaflops: float
) -> None:
    # Insights into DeepSeek-V3 2025, table 2: of a token among 4,096.
    model = model_of(tmp_path, config)
    per_token = work(model, Step(batch=1, sequence=4096)) / 4096 / 1e9
    assert per_token == pytest.approx(gigaflops, rel=0.02)


def seconds_of(model: Model, step: Step) -> float:
    """Return how long computations take: a GPU's, and (p - 1) / (v m) of them for the bubble."""
    stage_times = stages(model, step)
    busiest = max(
        sum(
            stage.forward_ps + stage.backward_ps for stage in stage_times[position :: step.pipeline]
        )
        for position in range(step.pipeline)
    )
    return busiest / 1e12 * (step.microbatches + (step.pipeline - 1) / step.virtual)


# Published rates (430 and 385 TFLOP/s) are those of whole steps: operations over GPUs and seconds.
# So they are to be compared with the work alone, shared by all GPUs without a bubble. As a
# rate of a GPU's computations they would take bubble and all-reduces off twice: 14.0 s instead of
# 12.0. For a whole step a GPU's rate is that of its time without bubble and all-reduces.
LLAMA_8192 = replace(LLAMA, data=64, batch=TOKENS // SEQUENCE)
# 3.8e25 operations for 15.6e12 tokens (Llama 3 Herd of Models 2024, 1 and 3).
LLAMA_SECONDS = 3.8e25 / 15.6e12 * TOKENS / (8192 * 430e12)


def computing_rate(model: Model, step: Step, seconds: float) -> float:
    """Return the TFLOP/s that a GPU must make while it computes, for a step of so many seconds."""
    # Computations grow with 1 / rate; all-reduces over NVLink, with their bubble, do not.
    reduced = seconds_of(model, replace(step, teraflops=1e12, nvlink_gbs=NVLINK_GBS))
    computed = seconds_of(model, replace(step, teraflops=1, nvlink_gbs=QUICK))
    return computed / (seconds - reduced)


def test_llamas_work_alone_takes_as_long_as_published(tmp_path: Path) -> None:
    model = model_of(tmp_path, LLAMA_405B)
    alone = work(model, LLAMA_8192) / (8192 * 430e12)
    assert alone == pytest.approx(LLAMA_SECONDS, rel=0.1)
    # The published rate is none of a GPU that computes: a bubble would come on top of it.
    assert seconds_of(model, replace(LLAMA_8192, teraflops=430)) > 1.1 * alone


# How many chunks a GPU has was not published: the fewer, the more of its time is bubble.
@pytest.mark.parametrize("chunks", [2, 8])
def test_llamas_whole_step_takes_as_long_as_published(tmp_path: Path, chunks: int) -> None:
    model = model_of(tmp_path, LLAMA_405B)
    step = replace(LLAMA_8192, virtual=chunks)
    teraflops = computing_rate(model, step, work(model, step) / (8192 * 430e12))
    # More than 430, and less than an H100's peak of 989.
    assert 430 < teraflops < 650
    # The replicas' computations do not depend on their number: one replica, as a graph.
    replica = replace(step, data=1, batch=32, teraflops=teraflops)
    per_token = computation_ps(training_graph(model, replica)) / 1e12
    # The closed form has a bubble of equal stages; the two ends have a layer less.
    assert per_token == pytest.approx(seconds_of(model, replica), rel=0.02)
    assert per_token == pytest.approx(LLAMA_SECONDS, rel=0.1)


def test_llamas_other_layouts_follow_from_one(tmp_path: Path) -> None:
    model = model_of(tmp_path, LLAMA_405B)
    teraflops = computing_rate(model, LLAMA_8192, work(model, LLAMA_8192) / 8192 / 430e12)

    # Table 4's other rows, each of 16,384 GPUs. The number of chunks was not published: eight, of
    # a layer each. The last row's ring sends 24 blocks of keys a layer: computations alone are less
    # than all that its steps took.
    large = replace(LLAMA_8192, data=128)
    long = replace(large, data=8, context=16, sequence=131_072, batch=TOKENS // 131_072)
    for step, published, lower, upper in ((large, 400, 0.97, 1.03), (long, 380, 1, 1.15)):
        seconds = seconds_of(model, replace(step, teraflops=teraflops))
        per_token = work(model, step) / 16384 / seconds / 1e12
        assert lower < per_token / published < upper


def test_deepseeks_step_takes_as_long_as_its_gpus_make_of_it(tmp_path: Path) -> None:
    model = model_of(tmp_path, DEEPSEEK_V3)
    # Insights into DeepSeek-V3 2025, table 4: 385 TFLOP/s (causal attention), 19.926 s a step of
    # 15,360 sequences of 4,096 tokens.
    seconds = work(model, DEEPSEEK) / (2048 * 385e12)
    assert seconds == pytest.approx(19.926, rel=0.1)
    # DeepSeek-V3 2024, 1: 180,000 GPU hours for a trillion tokens.
    hours = seconds * 2048 / 3600 / (15360 * 4096) * 1e12
    assert hours == pytest.approx(180_000, rel=0.1)


def test_deepseeks_whole_step_takes_as_long_as_published(tmp_path: Path) -> None:
    model = model_of(tmp_path, DEEPSEEK_V3)
    # DualPipe's bubble of equal stages, (PP / 2 - 1)(F&B + B - 3 W), is in the published 385
    # TFLOP/s; B is 2 F, W is F. Exchanges are hidden behind computations there: none here.
    replica = replace(DEEPSEEK, data=1, batch=120, experts=1, token_servers=0, server=0)
    bubble = (16 / 2 - 1) * (1 + 2 + 2 - 3) / (replica.microbatches * 3)
    step = replace(replica, dual_pipe=True, teraflops=385 * (1 + bubble))
    assert computation_ps(training_graph(model, step)) / 1e12 == pytest.approx(19.926, rel=0.1)


def test_deepseeks_tokens_send_86_kilobytes(tmp_path: Path) -> None:
    model = model_of(tmp_path, DEEPSEEK_V3)
    # Two of its 16 stages and a group of experts, one microbatch each.
    step = replace(DEEPSEEK, pipeline=2, data=64, batch=64, sequence=64)
    graph = training_graph(model, step)
    within = graph.source // 64 == graph.destination // 64
    rings = training_graph(model, replace(step, sequence=0))
    of_rings = rings.source // 64 == rings.destination // 64
    exchanged = graph.size[within].sum() - rings.size[of_rings].sum()
    tokens = 64 * 64
    # 4 nodes of 7,168 numbers, 1 byte there and 2 back: 86 KB a layer and pass; of 58 layers, both
    # ways; an eighth stays in the token's own node.
    assert exchanged / tokens / 58 / 2 == pytest.approx(86e3 * 7 / 8, rel=2e-3)
    # Between stages 2 bytes of each of 7,168 numbers, once each way.
    assert graph.size[~within].sum() / tokens == pytest.approx(2 * 2 * 7168)


# MegaScale (Jiang et al. 2024, tables 1 and 2): 12,288 A100 with 300 GB/s of NVLink, 6.34 s a step,
# which are 55.2 % of 312 TFLOP/s; tp 8, pp 8, six chunks a GPU, a batch of 6,144.
MEGASCALE = Step(tensor=8, pipeline=8, virtual=6, data=192, batch=6144, sequence=2048)
MEGASCALE_SECONDS = 6.34


def test_megascales_step_hides_its_all_reduces(tmp_path: Path) -> None:
    model = model_of(tmp_path, MEGASCALE_175B)
    # The rate of a GPU that computes, which is the published one without the bubble: 178 TFLOP/s.
    bubble = (MEGASCALE.pipeline - 1) / (MEGASCALE.virtual * MEGASCALE.microbatches)
    teraflops = 0.552 * 312 * (1 + bubble)
    replica = replace(MEGASCALE, data=1, batch=32, nvlink_gbs=300, teraflops=teraflops)

    def seconds(step: Step) -> float:
        return computation_ps(training_graph(model, step)) / 1e12

    hidden = seconds(replace(replica, tensor_overlap=True))
    # The rest: the last stage multiplies with the vocabulary, too.
    assert hidden == pytest.approx(MEGASCALE_SECONDS, rel=0.03)
    assert hidden == pytest.approx(seconds(replace(replica, nvlink_gbs=QUICK)), rel=1e-6)
    assert seconds(replica) > 1.1 * MEGASCALE_SECONDS
