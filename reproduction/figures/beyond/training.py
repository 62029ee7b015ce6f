"""A training step of a dense model and of a mixture of experts (docs/workloads.md).

ofan workload from-model experiments/llama_405b.json experiments/step_dense_128.parquet
    --gpus 128 --tp 8 --pp 4 --batch 64 --scale 512
ofan workload from-model experiments/deepseek_v3.json experiments/step_moe_128.parquet
    --gpus 128 --tp 8 --pp 4 --ep 4 --batch 64 --scale 512
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from fattree.experiment.model import Scenario
from fattree.texts.shipped import EXPERIMENTS
from reproduction.figures.beyond.shared import (
    CHOSEN,
    NO_ROTATION,
    groups,
    next_best,
    seeds_of,
    slower,
    spans,
)
from reproduction.report import schemes, style
from reproduction.report.claims import decide
from reproduction.report.figure import Data, Figure, Preset, Verdict, grid, parts
from reproduction.report.schemes import not_so, of_policy, percent
from reproduction.report.statements import STATEMENTS
from reproduction.report.statistics import Estimate, estimate, every, paired

DENSE = "dense"
MIXTURE = "mixture of experts"
FILES = {DENSE: "step_dense_128.parquet", MIXTURE: "step_moe_128.parquet"}
PACKED = "packed"
AT_RANDOM = "at random"
# Without Host Pkt, which is as Host Pkt AR: a run has 40,000 transfers and computations.
SHOWN = tuple(policy for policy in CHOSEN if policy != "host_pkt")
OTHERS = tuple(policy for policy in NO_ROTATION if policy != "host_pkt")
PACKETS = tuple(policy for policy in SHOWN if policy not in ("flow", "ofan"))
HARDLY = 0.01


def part(model: str, placement: str) -> str:
    """Return the name of a model's runs at a placement."""
    return f"{model}, {placement}"


PARTS = tuple(part(model, placement) for model in FILES for placement in (PACKED, AT_RANDOM))


def scenarios(preset: Preset) -> list[Scenario]:
    """Return a step of both models, ranks in order and at random."""
    # A packet stands for 16 of 4 KB, queues for 16 of 800 KB, as in experiments/step_405b.toml.
    base = {
        "fabric__k": 8,
        "fabric__queue_bytes": 12_800_000,
        "packets__payload_bytes": 65_000,
        "collective__matrix": "workload",
    }
    return [
        scenario
        for model, file in FILES.items()
        for placement, value in ((PACKED, "packed"), (AT_RANDOM, "random"))
        for scenario in grid(
            {
                **base,
                "name": part(model, placement),
                "collective__file": str(EXPERIMENTS / file),
                "collective__placement": value,
            },
            SHOWN,
            preset.seeds(1, 10, 20),
        )
    ]


def with_exposed(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the rows with `exposed`, the share of the step that is not its computations."""
    return frame.with_columns(exposed=1 - pl.col("compute_ps") / pl.col("cct_ps"))


def _parts(data: Data) -> dict[str, pl.DataFrame]:
    return {name: with_exposed(rows) for name, rows in data.parts(*PARTS).items()}


def draw(data: Data) -> dict[str, Any]:
    """Draw exposed communication and the longest queue."""
    shown = {name.replace(", ", ",\n"): rows for name, rows in _parts(data).items()}
    return {
        "exposed communication": _panel(
            shown, "exposed", "exposed communication\n(% of the step)", 100
        ),
        "longest queue": _panel(shown, "max_queue_packets", "longest queue\n(packets)", 1),
    }


def _panel(frames: dict[str, pl.DataFrame], column: str, text: str, scale: float) -> Any:
    picture, axes = style.panel(5.2, 3.2)
    spans(picture, axes, groups(frames, SHOWN, column), text, scale)
    if column == "max_queue_packets":
        style.buffer_line(axes, is_right=True)

    return picture


def table(data: Data) -> pl.DataFrame:
    """Return the times of the whole step, with the exposed share."""
    rows = []
    for name, frame in _parts(data).items():
        for policy in SHOWN:
            times = _whole_ms(frame, policy)
            rows.append(
                {
                    "step": name,
                    "scheme": style.label(policy),
                    "step (ms)": f"{times:.1f}",
                    "computations alone (ms)": f"{frame['compute_ps'][0] * _scale(frame):.1f}",
                    "exposed": percent(schemes.mean_of(frame, policy, "exposed"), 2),
                    "seeds": times.count,
                }
            )

    return pl.DataFrame(rows)


def _scale(frame: pl.DataFrame) -> float:
    """Return how many milliseconds of the whole step a picosecond of a run is."""
    return float(frame["scale"][0]) / 1e9


def _whole_ms(frame: pl.DataFrame, policy: str) -> Estimate:
    return estimate(of_policy(frame, policy, "cct_ps") * _scale(frame))


def claims(data: Data) -> Iterator[Verdict]:
    """Decide B09 to B11."""
    frames = {name: with_exposed(data.named(name)) for name in PARTS}
    yield hardly_matters(frames[part(DENSE, PACKED)])
    yield less_exposed({name: frames[part(MIXTURE, name)] for name in (PACKED, AT_RANDOM)})
    yield worth_more(frames)


def hardly_matters(frame: pl.DataFrame) -> Verdict:
    """Decide B09."""
    margin = STATEMENTS["B09"].margin
    gaps = {policy: slower(frame, policy) for policy in ("flow", *PACKETS)}
    checks = {
        f"{style.label(policy)} is within 1 % of Ofan": gaps[policy].within(-HARDLY, HARDLY, margin)
        for policy in PACKETS
    }
    checks["Flow is not"] = gaps["flow"].above(HARDLY, margin)
    return Verdict(
        "B09",
        decide(
            [every(checks[name] for name in checks if name != "Flow is not"), checks["Flow is not"]]
        ),
        "a step is longer than with Ofan: "
        + ", ".join(f"{style.label(policy)} {percent(gap, 2)}" for policy, gap in gaps.items()),
        why=not_so(checks),
        seeds=schemes.seeds_of(frame),
        needs=parts(part(DENSE, PACKED)),
    )


def less_exposed(frames: dict[str, pl.DataFrame]) -> Verdict:
    """Decide B10."""
    checks = {
        f"less is exposed with Ofan, {name}": schemes.lowest(
            frame, "ofan", OTHERS, "exposed", STATEMENTS["B10"].margin
        )
        for name, frame in frames.items()
    }
    return Verdict(
        "B10",
        decide(list(checks.values())),
        "exposed share of the step: "
        + "; ".join(
            f"{name}: {next_best(rows, OTHERS, 'exposed')}" for name, rows in frames.items()
        ),
        why=not_so(checks),
        evidence="; ".join(
            f"{name}: {schemes.listed(rows, SHOWN, 1, 'exposed')}" for name, rows in frames.items()
        ),
        seeds=seeds_of(frames.values()),
        needs=parts(
            *(
                part(MIXTURE, name)
                for name in frames
                if checks[f"less is exposed with Ofan, {name}"] is None
            )
        ),
    )


def worth_more(frames: dict[str, pl.DataFrame]) -> Verdict:
    """Decide B11."""
    by_placement = {
        placement: [slower(frames[part(model, placement)], "flow") for model in (MIXTURE, DENSE)]
        for placement in (PACKED, AT_RANDOM)
    }
    checks = {
        f"a mixture gains more, {placement}": paired(
            *(_ratios(frames[part(model, placement)]) for model in (MIXTURE, DENSE))
        ).above(0, STATEMENTS["B11"].margin)
        for placement in by_placement
    }
    return Verdict(
        "B11",
        decide(list(checks.values())),
        "; ".join(
            f"{placement}: a step with Flow is longer by {percent(mixture)} (mixture of experts) "
            f"and {percent(dense)} (dense)"
            for placement, (mixture, dense) in by_placement.items()
        ),
        why=not_so(checks),
        seeds=seeds_of(frames.values()),
        needs=parts(
            *(
                part(model, placement)
                for placement in by_placement
                for model in FILES
                if checks[f"a mixture gains more, {placement}"] is None
            )
        ),
    )


def _ratios(frame: pl.DataFrame) -> Any:
    return np.divide(of_policy(frame, "flow", "cct_ps"), of_policy(frame, "ofan", "cct_ps"))


FIGURE = Figure(
    name="training",
    title="A training step",
    paper="docs/workloads.md",
    caption=(
        "Llama 3.1 405B and DeepSeek-V3 on 128 GPUs, 8 in a server, 4 pipeline stages, 4 "
        "replicas, 64 sequences of 4,096 tokens; a run is 1/512 of the step. Exposed "
        "communication is the step's time less that of its computations, packets taking no time."
    ),
    scenarios=scenarios,
    draw=draw,
    claims=claims,
    table=table,
)
