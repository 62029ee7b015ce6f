"""Choose a load balancer for a fabric: from settings to an answer, with the runs in between."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from fattree.errors import ExperimentError
from fattree.experiment.model import Settings
from sim.arrays.network import form_of, refuse_unsupported
from sim.choice.answer import Answer
from sim.choice.candidates import Candidate, Change, fitting
from sim.choice.conditions import conditions_of
from sim.choice.questions import Nics, Question
from sim.choice.ranking import MARGIN
from sim.choice.rounds import Looked, Plan, Progress, Runner, decide
from sim.choice.workloads import OWN, WORKLOADS, workloads_of
from sim.runs.engine import prepare
from sim.sweeps.estimates import LOOKS
from sim.sweeps.sweeping import Run, simulate

STORE = "runs.sqlite"
MINUTES = 2.0
SECONDS = 60
Ready = Callable[[Plan], Run]
Watch = Callable[[int, int, float], None]


def choose(
    fabric: Settings | Question | Mapping[str, object],
    *,
    change: Change = "both",
    nics: Nics = "any",
    policies: Sequence[str] = (),
    own: Sequence[Candidate] = (),
    without: Sequence[str] = (),
    weights: Mapping[str, float] | None = None,
    workloads: Sequence[str] = (),
    margin: float = MARGIN,
    looks: int = LOOKS,
    minutes: float = MINUTES,
    jobs: int = 1,
    seed: int = 1,
    folder: str | Path | None = None,
    ready: Ready | None = None,
    looked: Callable[[Answer], None] = lambda _: None,
    watch: Watch = lambda _finished, _total, _share: None,
) -> Answer:
    """Return the load balancers that fit a fabric, ranked by their worst condition.

    `fabric` is a Question, or the settings of an experiment (or its tables). The default
    `workloads` are four collectives; "yours" is that of the settings. `without` leaves conditions
    out, and `weights` multiply their times. A `folder` keeps all runs: the same call goes on there.
    `ready` returns the function that runs a scenario (kernels); `looked` gets the answer so far.
    Raises FabricError and SimulationError.
    """
    began = time.monotonic()
    settings = settings_of(fabric)
    _refuse_unknown(settings, without, weights or {}, workloads)
    if nics == "in-order" and settings.fabric.is_drawn:
        raise ExperimentError(
            'fabric.plane_use = "draw" reorders the packets of a flow, which NICs that take them in'
            " order throw away"
        )

    is_lossless = settings.fabric.flow_control == "pfc"
    candidates = [*own, *fitting(change, nics, policies, is_lossless=is_lossless)]
    if not candidates:
        raise ExperimentError("no load balancer fits: allow more changes, or name others")

    with TemporaryDirectory(prefix="ofan-choose-") as temporary:
        kept = Path(folder) if folder else Path(temporary)
        kept.mkdir(parents=True, exist_ok=True)
        carried, left_out = workloads_of(settings, kept, _named(workloads))
        if OWN in workloads or not carried:
            carried = {**carried, OWN: settings}

        plan = Plan(
            {candidate.name: candidate for candidate in candidates},
            conditions_of(settings, without),
            carried,
            {name: float(weight) for name, weight in (weights or {}).items()},
            margin,
            seed,
            looks,
        )
        runner = Runner(
            (ready or prepared)(plan),
            jobs,
            kept / STORE if folder else None,
            time.monotonic() + minutes * SECONDS,
            watch,
        )

        def answer(progress: Progress) -> Answer:
            return Answer(settings, progress, tuple(left_out), time.monotonic() - began)

        return answer(decide(plan, runner, _looking(answer, looked)))


def _looking(answer: Callable[[Progress], Answer], looked: Callable[[Answer], None]) -> Looked:
    return lambda progress: looked(answer(progress))


def settings_of(fabric: Settings | Question | Mapping[str, object]) -> Settings:
    """Return the settings of a question, or of the tables of an experiment."""
    if isinstance(fabric, Question):
        return Settings.model_validate(fabric.tables())

    return fabric if isinstance(fabric, Settings) else Settings.model_validate(dict(fabric))


def _named(workloads: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in workloads if name != OWN) if workloads else WORKLOADS


def _refuse_unknown(
    settings: Settings,
    without: Sequence[str],
    weights: Mapping[str, float],
    workloads: Sequence[str],
) -> None:
    conditions = conditions_of(settings)
    for name in (*without, *weights):
        if name not in conditions:
            raise ExperimentError(f"no condition {name!r}; there are {', '.join(conditions)}")

    for name in workloads:
        if name not in (*WORKLOADS, OWN):
            raise ExperimentError(f"no workload {name!r}; there are {', '.join(WORKLOADS)}, {OWN}")

    if not any(weights.get(name, 1.0) > 0 for name in conditions if name not in without):
        raise ExperimentError("all conditions are left out: one must count")


def prepared(plan: Plan) -> Run:
    """Compile the kernels of a plan's runs; return the function that runs a scenario."""
    for scenario in plan.examples():
        refuse_unsupported(scenario)

    for form in {form_of(scenario) for scenario in plan.examples()}:
        prepare(form)

    return simulate
