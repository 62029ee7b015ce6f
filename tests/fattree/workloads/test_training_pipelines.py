"""Pipelines: bubbles and bytes as published; microbatches under way."""

from collections import Counter
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest

from fattree.demand.workloads.graph import longest_ps
from fattree.errors import TrafficError
from fattree.generators.model import Model
from fattree.generators.training import computation_ps, training_graph
from fattree.generators.training_memory import memory
from fattree.generators.training_order import (
    Kind,
    Pass,
    dual_pipe,
    interleaved,
    one_forward_one_backward,
    zero_bubble,
)
from fattree.generators.training_stages import Step
from fattree.generators.training_stages import stages as stages_of
from tests.fattree.workloads.models import LLAMA_405B, SMALL, model_of

# Of matrices 4 h wide without a gate, as the papers have it; as good as no vocabulary.
HIDDEN, LAYERS = 64, 16
GPT = {
    **SMALL,
    "model_type": "gpt_neox",
    "hidden_size": HIDDEN,
    "num_hidden_layers": LAYERS,
    "vocab_size": 1,
}
RATE = 1e9


def gpt(folder: Path) -> Model:
    return model_of(folder, GPT)


def step_of(stages: int, microbatches: int, **more: object) -> Step:
    step = Step(pipeline=stages, batch=microbatches, sequence=128, teraflops=RATE / 1e12)
    return replace(step, **more)  # type: ignore[arg-type]


def mixture(folder: Path) -> Model:
    """Return a model all of whose layers have experts, which compute as long as all else."""
    more = {"num_local_experts": 4, "num_experts_per_tok": 2, "model_type": "mixtral"}
    return model_of(folder, {**SMALL, "num_hidden_layers": 4, "vocab_size": 1, **more})


def longer_by(model: Model, step: Step, share: float) -> float:
    """Return how many exchanges a step's longest chain has, if each takes a share of a part.

    A part is the shortest computation, and messages of stages and replicas take no time.
    """
    graph = training_graph(model, step)
    delay = round(share * int(graph.compute_ps[graph.compute_ps > 0].min()))
    exchanges = {size for stage in stages_of(model, step) for size in stage.exchanges}
    times = graph.compute_ps + delay * np.isin(graph.size, list(exchanges))
    return (longest_ps(graph, times) - longest_ps(graph, graph.compute_ps)) / delay


def seconds_of(step: Step) -> tuple[float, float, float]:
    """Return F, B and W of a GPU and microbatch (Qi et al. 2023, table 1, causal attention)."""
    layers = LAYERS / step.pipeline
    weights = 24 * step.sequence * HIDDEN**2 * layers / RATE
    scores = 2 * step.sequence**2 * HIDDEN * layers / RATE
    return weights + scores, 2 * (weights + scores), weights


@pytest.mark.parametrize(
    ("stages", "microbatches", "chunks"), [(2, 4, 2), (4, 8, 2), (4, 4, 4), (2, 2, 8), (8, 16, 2)]
)
def test_an_interleaved_pipeline_has_its_bubble(
    tmp_path: Path, stages: int, microbatches: int, chunks: int
) -> None:
    step = step_of(stages, microbatches, virtual=chunks)
    forward, backward, _ = seconds_of(step)
    # Narayanan et al. 2021, 2.2.2: (p - 1) / (v m) of the time without a bubble.
    whole = microbatches * (forward + backward)
    expected = whole * (1 + (stages - 1) / (chunks * microbatches))
    actual = computation_ps(training_graph(gpt(tmp_path), step))
    assert actual / 1e12 == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(("stages", "microbatches"), [(2, 4), (4, 8), (8, 8), (4, 5)])
def test_a_zero_bubble_is_that_of_zb_h1(tmp_path: Path, stages: int, microbatches: int) -> None:
    step = step_of(stages, microbatches, zero_bubble=True)
    forward, backward, weights = seconds_of(step)
    # Qi et al. 2023, table 2: (p - 1)(T_F + T_B - T_W), T_B without T_W.
    expected = microbatches * (forward + backward) + (stages - 1) * (
        forward + backward - 2 * weights
    )
    actual = computation_ps(training_graph(gpt(tmp_path), step))
    assert actual / 1e12 == pytest.approx(expected, rel=1e-3)


def test_without_attention_a_third_of_the_bubble_is_left(tmp_path: Path) -> None:
    model = gpt(tmp_path)
    usual, less = (
        computation_ps(training_graph(model, step_of(4, 8, sequence=1, zero_bubble=is_less)))
        for is_less in (False, True)
    )
    forward, backward, _ = seconds_of(step_of(4, 8, sequence=1))
    whole = 8 * (forward + backward) * 1e12
    assert (less - whole) / (usual - whole) == pytest.approx(1 / 3, rel=0.02)


@pytest.mark.parametrize("stage", range(4))
def test_every_pass_is_made_once(stage: int) -> None:
    made = Counter(interleaved(stage, 4, 8, 2))
    expected = [
        Pass(kind, number, chunk)
        for kind in (Kind.FORWARD, Kind.BACKWARD)
        for number in range(8)
        for chunk in range(2)
    ]
    assert made == Counter(expected)
    made = Counter(zero_bubble(stage, 4, 3))
    kinds = (Kind.FORWARD, Kind.INPUTS, Kind.WEIGHTS)
    assert made == Counter(Pass(kind, number) for kind in kinds for number in range(3))


def test_chunks_send_more_often(tmp_path: Path) -> None:
    step = step_of(4, 8, virtual=2, tensor=2)
    graph = training_graph(gpt(tmp_path), step)
    # Narayanan et al. 2021, 2.2.2: v times the messages; each goes to the next GPU, the last one's
    # to the first; 7 boundaries of 8 stages, there and back, of 2 ranks, 8 times.
    sizes = graph.size[graph.size > 0]
    assert sizes.tolist() == [128 * HIDDEN] * (7 * 2 * 2 * 8)
    sent = graph.size > 0
    towards = (graph.destination[sent] // 2 - graph.source[sent] // 2) % 4
    assert set(towards.tolist()) == {1, 3}


@pytest.mark.parametrize(("chunks", "buckets"), [(1, 4), (2, 4), (4, 4), (4, 2), (2, 3)])
def test_chunks_share_their_gradients(tmp_path: Path, chunks: int, buckets: int) -> None:
    model = gpt(tmp_path)
    step = step_of(2, 4, data=4, batch=16, virtual=chunks, buckets=buckets)
    graph = training_graph(model, step)
    between = graph.source // 4 != graph.destination // 4
    of_gradients = graph.size[~between].sum()
    assert of_gradients == pytest.approx(4 * 2 * 3 / 4 * 2 * model.parameters, rel=5e-3)


def test_zero_bubbles_gradients_leave_when_they_are_complete(tmp_path: Path) -> None:
    model = gpt(tmp_path)
    usual, less = (
        training_graph(model, step_of(4, 8, data=2, batch=16, zero_bubble=is_less))
        for is_less in (False, True)
    )
    assert usual.size.sum() == less.size.sum()
    # Whoever sends gradients has made those of the last microbatch: nothing is computed after.
    work = less.compute_ps > 0
    sends = (less.size > 0) & (less.source // 2 == less.destination // 2)
    first = int(less.depth()[sends].min())
    assert (less.depth()[work & (less.source == 7)] < first + 4).all()


@pytest.mark.parametrize(("stages", "microbatches"), [(2, 4), (4, 8), (4, 10), (8, 16), (8, 32)])
def test_dual_pipe_has_its_bubble(tmp_path: Path, stages: int, microbatches: int) -> None:
    # Of one token, with as good as no attention: F, W and the rest of B are equal.
    step = step_of(stages, microbatches, sequence=1, dual_pipe=True)
    forward, backward, weights = seconds_of(step)
    # DeepSeek-V3 2024, table 2: (PP / 2 - 1)(F&B + B - 3 W); where nothing is exchanged two passes
    # together take as long as one after the other.
    bubble = (stages / 2 - 1) * (forward + 2 * backward - 3 * weights)
    actual = computation_ps(training_graph(gpt(tmp_path), step))
    assert actual / 1e12 == pytest.approx(microbatches * (forward + backward) + bubble, rel=1e-3)


@pytest.mark.parametrize(("stages", "microbatches"), [(2, 4), (4, 8), (8, 16), (8, 22)])
@pytest.mark.parametrize("end", ["first", "middle"])
def test_dual_pipe_makes_every_pass_once_and_holds_one_more(
    stages: int, microbatches: int, end: str
) -> None:
    order = list(dual_pipe(0 if end == "first" else stages // 2, stages, microbatches))
    by_kind: dict[Kind, set[tuple[int, int]]] = {kind: set() for kind in Kind}
    for gpu_pass in (gpu_pass for passes in order for gpu_pass in passes):
        assert (gpu_pass.number, gpu_pass.chunk) not in by_kind[gpu_pass.kind]
        by_kind[gpu_pass.kind].add((gpu_pass.number, gpu_pass.chunk))

    half = microbatches // 2
    assert by_kind[Kind.FORWARD] == {(number, number // half) for number in range(microbatches)}
    assert by_kind[Kind.BACKWARD] | by_kind[Kind.INPUTS] == by_kind[Kind.FORWARD]
    assert not by_kind[Kind.BACKWARD] & by_kind[Kind.INPUTS]
    assert by_kind[Kind.INPUTS] == by_kind[Kind.WEIGHTS]

    # Activations of two passes are held together. DeepSeek-V3 2024, table 2: activations of PP + 1.
    held = peak = 0
    for passes in order:
        kinds = {gpu_pass.kind for gpu_pass in passes}
        held += Kind.FORWARD in kinds
        peak = max(peak, held)
        held -= bool(kinds & {Kind.BACKWARD, Kind.INPUTS})

    assert peak == stages + 1


# DeepSeek-V3 2024, figure 5 and the order of its public code, of four places and of two: forward,
# backward, gradients of inputs, of weights; of the direction that enters first (0) or last (1);
# two that overlap stand together.
DUAL_PIPES = {
    (0, 4, 8): "F0 F0 F0 F1 I1 W1 F1 F0B1 F1B0 B1 F1B0 B1 I0 W0 I0 W0",
    (1, 4, 8): "F0 F1 F0 F1 F0 B1 F1B0 F0B1 F1B0 B1 B0 I1 I0 W1 W0",
    (2, 4, 8): "F1 F0 F1 F0 F1 B0 F0B1 F1B0 F0B1 B0 B1 I0 I1 W0 W1",
    (3, 4, 8): "F1 F1 F1 F0 I0 W0 F0 F1B0 F0B1 B0 F0B1 B0 I1 W1 I1 W1",
    (0, 2, 4): "F0 F1 F0 B1 F1B0 B1 I0 W0",
    (1, 2, 4): "F1 F0 F1 B0 F0B1 B0 I1 W1",
}


@pytest.mark.parametrize("where", DUAL_PIPES)
def test_dual_pipes_order_is_the_published_one(where: tuple[int, int, int]) -> None:
    slots = (
        "".join(f"{gpu_pass.kind.name[0]}{gpu_pass.chunk}" for gpu_pass in now)
        for now in dual_pipe(*where)
    )
    assert " ".join(slots) == DUAL_PIPES[where]


def test_dual_pipe_keeps_weights_twice(tmp_path: Path) -> None:
    model = gpt(tmp_path)
    usual = memory(model, step_of(4, 8))
    both = memory(model, step_of(4, 8, dual_pipe=True))
    # Two stages' weights and gradients, 2 bytes each; the optimizer's 12 bytes are shared by both.
    first, last = (stage.states / 16 for stage in (usual[0], usual[3]))
    assert both[0].states == pytest.approx((2 + 2 + 12 / 2) * (first + last))
    # PP + 1 microbatches' worth, the first stage of one forward, one backward has PP.
    layer = (usual[0].activations / 4 + usual[3].activations) / 2
    assert both[0].activations == pytest.approx(5 * layer)
    assert both[0] == both[3]


def test_dual_pipes_gradients_go_round_among_both_copies(tmp_path: Path) -> None:
    model = gpt(tmp_path)
    step = step_of(4, 8, data=2, batch=16, dual_pipe=True)
    graph = training_graph(model, step)
    source, destination = graph.source // 2, graph.destination // 2
    is_gradient = (source == destination) | (source + destination == 3)
    # Passes go to neighbours; those in the middle have copies of each other's stages, too.
    assert (abs(source - destination)[~is_gradient] == 1).all()
    # At the ends two stages, each of which has a ring of four ranks: of gradients and of weights, 2
    # bytes each, three quarters leave each rank.
    sent = graph.size[is_gradient & (source % 3 == 0)].sum()
    assert sent == pytest.approx(2 * 4 * 3 / 4 * 2 * 2 * model.parameters / 4, rel=5e-3)


def test_dual_pipe_hides_the_exchanges_of_one_direction_behind_the_other(tmp_path: Path) -> None:
    model = mixture(tmp_path)
    for microbatches in (4, 8, 12):
        step = step_of(2, microbatches, data=2, batch=2 * microbatches, experts=2, dual_pipe=True)
        usual = replace(step, dual_pipe=False)
        # An exchange takes as long as a tenth of the computations between two exchanges.
        times = [longer_by(model, pipeline, 0.1) for pipeline in (step, usual)]
        # Of DualPipe's passes six are alone, with a dispatch and a combine each, however many there
        # are. Else all are alone, and those of one microbatch more are the bubble.
        assert times[0] == pytest.approx(6 * 2, rel=1e-3)
        assert times[1] == pytest.approx(2 * 2 * (microbatches + 1), rel=1e-3)


def test_thin_ends_have_a_layer_less(tmp_path: Path) -> None:
    model = model_of(tmp_path, LLAMA_405B)
    # Llama 3 Herd of Models 2024, 3.3.2: 126 layers, one less at either end of 16 stages of 8.
    step = Step(tensor=8, pipeline=16, thin_ends=True)
    layers = [end - first for first, end in (step.layers(model, stage) for stage in range(16))]
    assert layers == [7, *[8] * 14, 7]
    whole = replace(step, virtual=8)
    assert [whole.layers(model, stage) for stage in (0, 1, 126, 127)] == [
        (0, 0),
        (0, 1),
        (125, 126),
        (126, 126),
    ]


def test_more_is_under_way_with_chunks(tmp_path: Path) -> None:
    model = gpt(tmp_path)
    first = {
        chunks: memory(model, step_of(4, 16, virtual=chunks))[0].activations for chunks in (1, 2, 4)
    }
    # Korthikanti et al. 2022, 4.2.3: 1 + (p - 1) / (p m) of that without, with m chunks.
    for chunks in (2, 4):
        assert first[chunks] / first[1] == pytest.approx(1 + 3 / (4 * chunks))


@pytest.mark.parametrize("chunks", [2, 4])
def test_as_many_are_under_way_as_memory_counts(chunks: int) -> None:
    order = interleaved(0, 4, 16, chunks)
    held = max(accumulate(1 if gpu_pass.kind is Kind.FORWARD else -1 for gpu_pass in order))
    # Korthikanti et al. 2022, 4.2.3: p + (p - 1) / v microbatches' worth, in chunks of a v-th.
    assert held / chunks == 4 + 3 / chunks


@pytest.mark.parametrize("microbatches", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("more", [{}, {"virtual": 2}, {"virtual": 4}, {"zero_bubble": True}])
def test_memory_is_of_the_passes_under_way_also_of_few_microbatches(
    tmp_path: Path, microbatches: int, more: dict[str, int]
) -> None:
    chunks = more.get("virtual", 1)
    count = microbatches * (4 if chunks > 1 else 1)
    step = step_of(4, count, **more)
    # 34 h bytes of each token and layer (Korthikanti et al. 2022, 4.2), of a chunk's layers.
    of_chunk = 34 * HIDDEN * step.sequence * LAYERS / 4 / chunks
    for stage, actual in enumerate(memory(gpt(tmp_path), step)):
        if chunks > 1:
            order = interleaved(stage, 4, count, chunks)
        elif step.zero_bubble:
            order = zero_bubble(stage, 4, count)
        else:
            order = one_forward_one_backward(stage, 4, count)

        last = Kind.WEIGHTS if step.zero_bubble else Kind.BACKWARD
        held = accumulate(
            (gpu_pass.kind is Kind.FORWARD) - (gpu_pass.kind is last) for gpu_pass in order
        )
        assert actual.activations / of_chunk == pytest.approx(max(held))


def test_with_a_zero_bubble_all_hold_as_much_as_the_first(tmp_path: Path) -> None:
    actual = memory(gpt(tmp_path), step_of(4, 16, zero_bubble=True))
    usual = memory(gpt(tmp_path), step_of(4, 16))
    # Qi et al. 2023, 2.1: the peak of one forward, one backward; here at every stage.
    assert {stage.activations for stage in actual} == {usual[0].activations}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"virtual": 2, "batch": 6}, "6 microbatches of a replica are no multiple of --pp 4"),
        ({"virtual": 8}, "16 layers are too few for 32 stages"),
        ({"virtual": 2, "pipeline": 1}, "--virtual-stages .* needs --pp above 1"),
        ({"virtual": 2, "zero_bubble": True}, "--zero-bubble .* not with --virtual-stages"),
        ({"zero_bubble": True, "pipeline": 1}, "--zero-bubble: .* needs --pp above 1"),
        ({"zero_bubble": True, "zero": 3}, "--zero-bubble .* not with --zero 3"),
        ({"tensor": 1, "tensor_overlap": True}, "--overlap-tp is of .* needs --tp above 1"),
        ({"dual_pipe": True, "pipeline": 1}, "--dual-pipe .* half of --pp 1 each"),
        ({"dual_pipe": True, "batch": 6}, "6 microbatches .* even number, at least twice --pp 4"),
        ({"dual_pipe": True, "batch": 9}, "9 microbatches .* even number"),
        ({"dual_pipe": True, "zero_bubble": True}, "--dual-pipe .* not with --zero-bubble"),
        ({"dual_pipe": True, "zero": 3}, "--dual-pipe .* not with --zero 3"),
    ],
)
def test_what_no_pipeline_can_do_is_refused(
    tmp_path: Path, more: dict[str, int], message: str
) -> None:
    with pytest.raises(TrafficError, match=message):
        training_graph(gpt(tmp_path), step_of(4, 8, **more))
