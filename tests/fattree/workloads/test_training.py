"""Training steps: work and bytes as the papers' formulas."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fattree.errors import TrafficError
from fattree.generators.model import Model
from fattree.generators.training import computation_ps, training_graph
from fattree.generators.training_order import Kind, one_forward_one_backward
from fattree.generators.training_stages import Step, stages
from tests.fattree.workloads.models import DEEPSEEK_V3, LLAMA_405B, SMALL, model_of


def test_a_step_is_six_times_weights_times_tokens_and_attention(tmp_path: Path) -> None:
    model = model_of(tmp_path, LLAMA_405B)
    step = Step(data=8, batch=8, sequence=4096, teraflops=400)
    (stage,) = stages(model, step)
    weights = model.parameters - model.embedding
    attention = 6 * 126 * 4096 * 4096 * 16384
    seconds = (6 * weights * 4096 + attention) / 400e12
    stage_ps = stage.forward_ps + stage.backward_ps
    assert stage_ps / 1e12 == pytest.approx(seconds)


def test_a_step_of_one_gpu_only_computes(tmp_path: Path) -> None:
    model = model_of(tmp_path, SMALL)
    graph = training_graph(model, Step(batch=3))
    assert graph.size.sum() == 0
    assert computation_ps(graph) == pytest.approx(9 * stages(model, Step())[0].forward_ps, abs=20)


def test_bytes_of_data_parallelism_are_two_rings(tmp_path: Path) -> None:
    model = model_of(tmp_path, SMALL)
    graph = training_graph(model, Step(data=4, batch=4, buckets=1))
    # Reduce-scatter and all-gather: each rank sends 3 quarters of 2 bytes a parameter, twice.
    assert graph.size.sum() == pytest.approx(4 * 2 * 3 / 4 * 2 * model.parameters, rel=1e-3)


def test_bytes_between_stages_and_of_tensor_parallelism(tmp_path: Path) -> None:
    model = model_of(tmp_path, SMALL)
    step = Step(tensor=2, pipeline=2, batch=3, sequence=10, nvlink_gbs=1e-6)
    graph = training_graph(model, step)
    # Half of 10 tokens of 64 numbers of 2 bytes, there and back, of 2 ranks, 3 times.
    assert graph.size[graph.size > 0].tolist() == [640] * 12
    # All-reduces dominate: 2 forward, of 2 layers, 1280 bytes each, at 1 kB/s.
    assert stages(model, step)[0].forward_ps == pytest.approx(2 * 2 * 1280e-3 * 1e12, rel=1e-3)


@pytest.mark.parametrize(
    ("recompute", "zero", "numbers"), [(False, 1, 8), (True, 1, 12), (False, 3, 8)]
)
def test_all_reduces_of_a_layer_are_those_of_megatron(
    tmp_path: Path, recompute: bool, zero: int, numbers: int
) -> None:
    model = model_of(tmp_path, SMALL)
    layers, tokens, hidden, rate = 4, 10, 64, 1e3
    step = Step(
        tensor=4,
        batch=3,
        sequence=tokens,
        nvlink_gbs=rate / 1e9,
        recompute=recompute,
        zero=zero,
    )
    graph = training_graph(model, step)
    # Narayanan et al. 2021, 3.2: a device passes 8 b s h (t - 1) / t numbers for each layer and
    # microbatch; half as many again where the forward pass is made twice. All else takes 3 us.
    seconds = 3 * layers * numbers * tokens * hidden * 3 / 4 * 2 / rate
    assert graph.compute_ps[graph.source == 0].sum() / 1e12 == pytest.approx(seconds, rel=1e-4)


def gathered_and_multiplied(tensor: int, sent: float, multiplied: float) -> float:
    """Return when a matrix is done of whose input a part comes after the other, round a ring."""
    done = 0.0
    for part in range(tensor):
        done = max(done, part * sent) + multiplied
    return done


def multiplied_and_scattered(tensor: int, multiplied: float, sent: float) -> float:
    """Return when a matrix is done whose parts are added up round a ring as they are ready."""
    came = 0.0
    for part in range(1, tensor):
        came = max(came, part * multiplied) + sent
    return max(came, tensor * multiplied)


# NVLink that hides all, some matrices' parts, and none.
@pytest.mark.parametrize("nvlink_gbs", [1e9, 1.6e-3, 1.2e-3, 0.6e-3, 1e-6])
@pytest.mark.parametrize("tensor", [2, 4])
def test_all_reduces_beside_matrices_go_on_part_by_part(
    tmp_path: Path, nvlink_gbs: float, tensor: int
) -> None:
    model = model_of(tmp_path, SMALL)
    layers, tokens, hidden, wide, vocabulary, rate = 4, 12, 64, 256, 1000, 1e9
    step = Step(
        tensor=tensor,
        sequence=tokens,
        nvlink_gbs=nvlink_gbs,
        teraflops=rate / 1e12,
        tensor_overlap=True,
    )
    (stage,) = stages(model, step)
    sent = tokens * hidden * 2 / tensor / (nvlink_gbs * 1e9)
    queries_keys_values, out, gate_and_up, down = (
        2 * tokens * weights / tensor / tensor / rate
        for weights in (3 * hidden**2, hidden**2, 2 * hidden * wide, hidden * wide)
    )
    layer = (
        gathered_and_multiplied(tensor, sent, queries_keys_values)
        + multiplied_and_scattered(tensor, out, sent)
        + gathered_and_multiplied(tensor, sent, gate_and_up)
        + multiplied_and_scattered(tensor, down, sent)
    )
    scores = 2 * tokens * tokens * hidden * layers / tensor / rate
    logits = 2 * tokens * vocabulary * hidden / tensor / rate
    forward = layers * layer + scores + logits
    assert stage.forward_ps / 1e12 == pytest.approx(forward, rel=1e-9)
    # Backward twice the work, with as much that takes time of its own.
    quick = stages(model, replace(step, nvlink_gbs=1e12))[0].forward_ps
    assert stage.backward_ps - 2 * quick == pytest.approx(stage.forward_ps - quick, abs=4)


def test_all_reduces_of_experts_take_their_time(tmp_path: Path) -> None:
    model = model_of(tmp_path, DEEPSEEK_V3)
    step = Step(tensor=8, nvlink_gbs=450, tensor_overlap=True)
    both = [stages(model, replace(step, tensor_overlap=hides))[0] for hides in (True, False)]
    # Hidden are attention's of 61 layers, and those of the three without experts.
    reduced = 2 * 7 / 8 * 4096 * 7168 * 2 / 450e9
    saved = (both[1].forward_ps - both[0].forward_ps) / 1e12
    assert saved == pytest.approx((61 + 3) * reduced, rel=1e-6)


def test_bytes_of_experts(tmp_path: Path) -> None:
    config = {**SMALL, "num_local_experts": 4, "num_experts_per_tok": 2}
    model = model_of(tmp_path, config)
    graph = training_graph(model, Step(data=2, experts=2, batch=2, sequence=10, buckets=1))
    sent = graph.size[(graph.size > 0)]
    # To the other rank half of 2 x 10 tokens of 128 bytes in 4 layers: dispatch and combine,
    # forward and backward, of 2 ranks.
    exchanged = 4 * 2 * 10 * 128 // 2
    assert (sent == exchanged).sum() == 8
    # Experts have no other replica; all else is added up as before.
    dense = model.parameters - 4 * 4 * model.expert
    assert sent.sum() == pytest.approx(8 * exchanged + 2 * 2 * dense, rel=1e-2)


# DeepSeek-V3 2024, 3.1: experts over 64 GPUs of 8 nodes, no tensor parallelism.
ON_NODES = Step(data=64, experts=64, batch=64, sequence=64, server=8, dispatch_bytes=1)
OF_NODES = Step(
    data=64, experts=64, batch=64, sequence=64, server=8, dispatch_bytes=1, token_servers=4
)


def sent_a_token(model: Model, step: Step) -> float:
    """Return the bytes on the fabric of one token, in one layer with experts, in one pass."""
    graph = training_graph(model, step)
    # Experts have no other replica: without the bytes of the dense parts' rings, experts are left.
    rings = training_graph(model, replace(step, experts=step.data, sequence=0)).size.sum()
    tokens = step.batch * step.sequence
    return float((graph.size.sum() - rings) / tokens / len(model.sparse) / 2)


def test_a_token_goes_to_its_servers_once(tmp_path: Path) -> None:
    model = model_of(tmp_path, DEEPSEEK_V3)
    # 4 nodes, 7168 numbers of 1 byte there and 2 back: 86 KB, of which an eighth is the own node's.
    limited = sent_a_token(model, OF_NODES)
    assert limited == pytest.approx(4 * 7168 * 3 * 7 / 8, rel=1e-3)
    # Without a limit to each of 8 experts by itself.
    assert sent_a_token(model, ON_NODES) == pytest.approx(8 * 7168 * 3 * 7 / 8, rel=1e-3)
    # As all parts of a GPU's node were on the fabric, and of 2 bytes: 229 KB.
    plain = replace(ON_NODES, server=0, dispatch_bytes=2)
    assert sent_a_token(model, plain) == pytest.approx(229_376 * 63 / 64, rel=1e-3)


def test_a_token_goes_to_as_many_servers_as_have_experts(tmp_path: Path) -> None:
    model = model_of(tmp_path, DEEPSEEK_V3)
    with pytest.raises(
        TrafficError, match="cannot go to 9 servers: its 8 experts are spread over 8"
    ):
        training_graph(model, replace(OF_NODES, token_servers=9))


def test_groups_of_experts_and_servers_must_go_together(tmp_path: Path) -> None:
    model = model_of(tmp_path, {**SMALL, "num_experts": 6, "num_experts_per_tok": 2})
    with pytest.raises(TrafficError, match="experts over 3 replicas, of which a server has 2"):
        training_graph(model, Step(data=6, experts=3, batch=6, server=2))
    with pytest.raises(TrafficError, match="--zero 3 has all experts on every replica"):
        training_graph(model, Step(data=6, experts=3, batch=6, zero=3))


def test_what_stays_in_a_server_takes_nvlinks_time(tmp_path: Path) -> None:
    model = model_of(tmp_path, DEEPSEEK_V3)
    (inside,) = stages(model, OF_NODES)
    # 8 experts, of which an eighth is at the GPU that the token has come to; 58 layers.
    moved = 58 * 64 * 8 * 7168 * 3 * 7 / 8
    assert inside.exchange_ps == pytest.approx(moved / 450e9 * 1e12)
    # Experts in one server send nothing on the fabric.
    alone = Step(data=8, experts=8, batch=8, sequence=64, server=8)
    assert training_graph(model, alone).size.sum() == 0
    assert stages(model, alone)[0].exchange_ps > 0


def test_no_message_stays_in_a_server(tmp_path: Path) -> None:
    config = {**SMALL, "num_local_experts": 16, "num_experts_per_tok": 2}
    model = model_of(tmp_path, config)
    for step in (
        Step(data=16, experts=16, batch=16, sequence=10, server=4),
        Step(data=16, experts=2, batch=16, sequence=10, server=4, token_servers=1),
        Step(tensor=2, data=8, experts=8, batch=8, sequence=10, server=4, token_servers=2),
        Step(tensor=2, pipeline=2, data=8, experts=4, batch=8, sequence=10, server=8),
    ):
        graph = training_graph(model, step)
        sent = graph.size > 0
        servers = graph.source[sent] // step.server, graph.destination[sent] // step.server
        assert (servers[0] != servers[1]).all()


def test_rings_between_servers_carry_a_part_of_each_gpu(tmp_path: Path) -> None:
    model = model_of(tmp_path, SMALL)
    step = Step(data=16, batch=16, server=4, buckets=1, nvlink_gbs=1e-3)
    graph = training_graph(model, step)
    # A quarter each, by rings of 4 servers: 3 quarters of it, twice, of 16 ranks.
    weights = 2 * model.parameters
    assert graph.size.sum() == pytest.approx(16 * 2 * 3 / 4 * weights / 4, rel=1e-3)
    # In a server 3 quarters of all, before and after, at 1 MB/s.
    inside = np.sort(graph.compute_ps)[-32:]
    assert inside == pytest.approx(3 / 4 * weights / 1e6 * 1e12, rel=1e-3)


def test_recomputation_makes_a_third_more_work(tmp_path: Path) -> None:
    model = model_of(tmp_path, SMALL)
    usual, again = (
        computation_ps(training_graph(model, Step(batch=3, recompute=recompute)))
        for recompute in (False, True)
    )
    # 8 N D in the place of 6 N D.
    assert again / usual == pytest.approx(4 / 3, rel=1e-4)


def test_recomputation_exchanges_tokens_once_more(tmp_path: Path) -> None:
    model = model_of(tmp_path, {**SMALL, "num_experts": 4, "num_experts_per_tok": 2})
    usual, again = (
        training_graph(model, Step(data=4, experts=4, batch=4, recompute=recompute)).size
        for recompute in (False, True)
    )
    # Exchanges are the largest messages of this step.
    assert (again == again.max()).sum() == 3 / 2 * (usual == usual.max()).sum()


@pytest.mark.parametrize(("microbatches", "server"), [(1, 0), (3, 0), (1, 2)])
def test_zeros_third_stage_sends_half_as_much_again(
    tmp_path: Path, microbatches: int, server: int
) -> None:
    model = model_of(tmp_path, SMALL)
    step = Step(data=4, batch=4, server=server)
    usual = training_graph(model, step).size.sum()
    third = replace(step, zero=3, batch=4 * microbatches)
    # Rajbhandari et al. 2020, 7.2.2: 3 times the parameters in the place of twice.
    stage_ps = training_graph(model, third).size.sum()
    assert stage_ps == pytest.approx(3 / 2 * microbatches * usual, rel=1e-3)


def test_zeros_third_stage_computes_as_long(tmp_path: Path) -> None:
    model = model_of(tmp_path, SMALL)
    usual, third = (
        computation_ps(training_graph(model, Step(data=2, batch=4, pipeline=2, zero=zero)))
        for zero in (1, 3)
    )
    assert third == pytest.approx(usual, abs=100)


def test_gradients_of_four_bytes(tmp_path: Path) -> None:
    model = model_of(tmp_path, SMALL)
    graph = training_graph(model, Step(data=4, batch=4, buckets=1, gradient_bytes=4))
    assert graph.size.sum() == pytest.approx(4 * 3 / 4 * (4 + 2) * model.parameters, rel=1e-3)


@pytest.mark.parametrize(("stage", "count"), [(0, 5), (1, 5), (3, 5), (0, 2), (3, 1)])
def test_a_stage_takes_every_microbatch_once_each_way(stage: int, count: int) -> None:
    order = list(one_forward_one_backward(stage, 4, count))
    for kind in (Kind.FORWARD, Kind.BACKWARD):
        assert [gpu_pass.number for gpu_pass in order if gpu_pass.kind is kind] == list(
            range(count)
        )
    # Never more under way than stages are left.
    held = np.cumsum([1 if gpu_pass.kind is Kind.FORWARD else -1 for gpu_pass in order])
    assert held.max() == min(4 - stage, count)


def test_a_pipeline_has_its_bubble(tmp_path: Path) -> None:
    model = model_of(tmp_path, {**SMALL, "vocab_size": 1})
    step = Step(pipeline=4, batch=8)
    part_ps = stages(model, step)[0].forward_ps
    # Narayanan et al. 2021: (stages - 1) / microbatches more than the work itself.
    stage_ps = computation_ps(training_graph(model, step))
    assert stage_ps == pytest.approx(3 * part_ps * (8 + 3), rel=1e-3)


def test_a_scale_divides_bytes_and_computations(tmp_path: Path) -> None:
    model = model_of(tmp_path, LLAMA_405B)
    whole, part = (
        training_graph(model, Step(tensor=8, pipeline=2, data=4, batch=8, scale=scale))
        for scale in (1, 64)
    )
    assert len(whole) == len(part)
    assert whole.size.sum() / part.size.sum() == pytest.approx(64, rel=1e-4)
    assert computation_ps(whole) / computation_ps(part) == pytest.approx(64, rel=1e-4)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (Step(data=3, batch=4), "4 cannot be divided by 3: the batch"),
        (Step(pipeline=5, batch=4), "4 layers are too few for 5 stages"),
        (Step(data=4, experts=3, batch=4), "4 cannot be divided by 3: the replicas"),
        (Step(data=4, batch=4, experts=2, zero=3), "this model has no experts"),
        (Step(data=4, experts=2, batch=4), "this model has no experts"),
        (Step(data=4, batch=4, token_servers=2), "--token-servers: this model has no experts"),
        (Step(tensor=2, data=4, batch=4, server=3), "servers of 3 GPUs: must have whole replicas"),
        (Step(data=4, batch=4, server=8), "servers of 8 GPUs: must have whole replicas"),
    ],
)
def test_what_cannot_be_spread_is_refused(tmp_path: Path, step: Step, message: str) -> None:
    with pytest.raises(TrafficError, match=message):
        training_graph(model_of(tmp_path, SMALL), step)
