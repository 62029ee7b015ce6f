"""Refusals of steps that cannot be spread over GPUs, by the names of the options."""

from fattree.errors import TrafficError
from fattree.generators.model import Model
from fattree.generators.training_stages import Step


def check(model: Model, step: Step) -> None:
    """Raise TrafficError for a step that cannot be spread like this."""
    for whole, part, meaning in (
        (step.batch, step.data * step.microbatch, "the batch over replicas and microbatches"),
        (step.replicas, step.experts, "the replicas over the groups of experts"),
        (model.experts or step.experts, step.experts, "the experts over their ranks"),
    ):
        if whole % part or whole < part:
            raise TrafficError(f"{whole} cannot be divided by {part}: {meaning}")

    if step.sequence % step.context:
        raise TrafficError(
            f"{step.sequence} cannot be divided by {step.context}: the sequence over --cp parts"
        )

    if max(step.experts, step.token_servers) > 1 and not model.experts:
        raise TrafficError("--ep and --token-servers: this model has no experts")

    if step.zero == 3 and step.experts > 1:
        raise TrafficError("--zero 3 has all experts on every replica: not with --ep above 1")

    if step.zero == 3 and step.context > 1:
        raise TrafficError("--zero 3 gathers weights in parts of a pass: not with --cp above 1")

    _check_servers(model, step)
    _check_pipeline(model, step)
    _check_experts(model, step)
    if step.stragglers > step.ranks:
        raise TrafficError(f"--stragglers {step.stragglers}: there are {step.ranks:,} GPUs")


def _check_servers(model: Model, step: Step) -> None:
    server, replicas = step.gpus_per_server, step.replicas_per_server
    if server % step.tensor or (step.tensor * step.replicas) % server:
        raise TrafficError(
            f"servers of {server} GPUs: must have whole replicas (tp {step.tensor}) of one stage "
            f"(tp {step.tensor} x dp {step.replicas})"
        )

    if step.tensor_overlap and step.tensor == 1:
        raise TrafficError(
            "--overlap-tp is of tensor parallelism's all-reduces: needs --tp above 1"
        )

    if step.experts % replicas and replicas % step.experts:
        raise TrafficError(
            f"experts over {step.experts} replicas, of which a server has {replicas}: "
            "one must be a multiple of the other"
        )

    if step.context % replicas and replicas % step.context:
        raise TrafficError(
            f"a sequence in --cp {step.context} parts, of which a server has {replicas}: "
            "one must be a multiple of the other"
        )

    most_servers = min(step.expert_servers, model.chosen)
    if step.token_servers > most_servers:
        raise TrafficError(
            f"a token cannot go to {step.token_servers} servers: its {model.chosen} experts are "
            f"spread over {step.expert_servers}"
        )


def _check_pipeline(model: Model, step: Step) -> None:
    if step.stages > model.layers + 2 * step.thin_ends:
        raise TrafficError(f"{model.layers} layers are too few for {step.stages} stages")

    if step.virtual > 1 and step.pipeline == 1:
        raise TrafficError(
            "--virtual-stages has chunks of a pipeline take turns: needs --pp above 1"
        )

    if step.virtual > 1 and step.microbatches % step.pipeline:
        raise TrafficError(
            f"--virtual-stages: {step.microbatches} microbatches of a replica are no multiple of "
            f"--pp {step.pipeline}"
        )

    if step.dual_pipe:
        _check_dual_pipe(step)

    if step.zero_bubble and step.virtual > 1:
        raise TrafficError("--zero-bubble is of one stage a GPU: not with --virtual-stages")

    if step.zero_bubble and step.pipeline == 1:
        raise TrafficError(
            "--zero-bubble: without a pipeline there is no bubble: needs --pp above 1"
        )

    if step.zero_bubble and step.zero == 3:
        raise TrafficError("--zero-bubble keeps weights from pass to pass: not with --zero 3")


def _check_dual_pipe(step: Step) -> None:
    if step.pipeline % 2:
        raise TrafficError(f"--dual-pipe has two directions, half of --pp {step.pipeline} each")

    if step.microbatches % 2 or step.microbatches < 2 * step.pipeline:
        raise TrafficError(
            f"--dual-pipe: {step.microbatches} microbatches of a replica; needs an even number, at "
            f"least twice --pp {step.pipeline}"
        )

    if step.virtual > 1 or step.zero_bubble:
        raise TrafficError(
            "--dual-pipe is an order of its own: not with --virtual-stages, not with --zero-bubble"
        )

    if step.zero == 3:
        raise TrafficError("--dual-pipe keeps weights from pass to pass: not with --zero 3")


def _check_experts(model: Model, step: Step) -> None:
    if step.by_layer and step.experts == 1 and step.context == 1:
        raise TrafficError("--by-layer is of exchanges: needs --ep or --cp above 1")

    is_uneven = bool(step.skew or step.shares)
    if is_uneven and step.experts == 1:
        raise TrafficError("--expert-skew and --expert-shares: need --ep above 1")

    if is_uneven and step.token_servers:
        raise TrafficError(
            "--expert-skew and --expert-shares: with --token-servers the router evens servers out"
        )

    if step.skew and step.shares:
        raise TrafficError("--expert-skew and --expert-shares: give one of them")

    if step.shares and len(step.shares) not in (model.experts, step.experts):
        raise TrafficError(
            f"--expert-shares: {len(step.shares)} numbers; needs one for each of {model.experts} "
            f"experts, or of {step.experts} ranks"
        )

    if step.shares and not sum(step.shares) > 0:
        raise TrafficError("--expert-shares: their sum must be above 0")
