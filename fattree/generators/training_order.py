"""In which order a pipeline's GPUs take the passes of microbatches.

A GPU has one stage, or with V virtual ones every P-th of P V (Narayanan et al. 2021, 2.2): its
chunks. In DualPipe half of the microbatches go through the stages the other way round: a GPU has
two stages, and each stage is on two GPUs. Where sends take no time, the bubble of a step, with
forward and backward passes of a microbatch taking F and B on a GPU, of which W for the gradients of
weights, is

    one forward, one backward    (P - 1) (F + B)        PipeDream-Flush; Narayanan et al. 2021
    interleaved                  (P - 1) (F + B) / V    the same
    zero bubble, ZB-H1           (P - 1) (F + B - 2 W)  Qi et al. 2023, 2.3, whose T_B is B - W
    DualPipe                     (P / 2 - 1) (F&B + B - 3 W), where F&B is the time of both,
                                 F + B here; DeepSeek-V3 2024, 3.2.1
"""

from collections.abc import Iterator
from enum import Enum, auto
from typing import NamedTuple


class Kind(Enum):
    """The results of a pass: activations, gradients of inputs and weights, or of either."""

    FORWARD = auto()
    BACKWARD = auto()
    INPUTS = auto()
    WEIGHTS = auto()


class Pass(NamedTuple):
    """A pass of a microbatch through a chunk of a GPU."""

    kind: Kind
    number: int
    chunk: int = 0


def one_forward_one_backward(stage: int, stages: int, count: int) -> Iterator[Pass]:
    """Yield the passes of `count` microbatches in the order in which a stage takes them."""
    early = min(stages - 1 - stage, count)
    yield from (Pass(Kind.FORWARD, number) for number in range(early))
    for number in range(count - early):
        yield Pass(Kind.FORWARD, early + number)
        yield Pass(Kind.BACKWARD, number)

    yield from (Pass(Kind.BACKWARD, number) for number in range(count - early, count))


def interleaved(stage: int, stages: int, count: int, chunks: int) -> Iterator[Pass]:
    """Yield the passes of a stage with several chunks; `count` is a multiple of the stages.

    As many microbatches as there are stages go through one chunk, then through the next.
    """
    total = count * chunks
    early = min(2 * (stages - 1 - stage) + (chunks - 1) * stages, total)

    def of(kind: Kind, position: int) -> Pass:
        group, within = divmod(position, stages * chunks)
        chunk, number = divmod(within, stages)
        is_forward = kind is Kind.FORWARD
        return Pass(kind, group * stages + number, chunk if is_forward else chunks - 1 - chunk)

    yield from (of(Kind.FORWARD, position) for position in range(early))
    for position in range(total - early):
        yield of(Kind.FORWARD, early + position)
        yield of(Kind.BACKWARD, position)

    yield from (of(Kind.BACKWARD, position) for position in range(total - early, total))


def zero_bubble(stage: int, stages: int, count: int) -> Iterator[Pass]:
    """Yield the passes of a stage in which gradients of weights wait (ZB-H1).

    They wait for as many microbatches as stages lie before, so that each stage has as many under
    way: passes that the first stages begin early, the last stages end late.
    """
    early = min(stages - 1 - stage, count)
    late = min(stage, count)
    yield from (Pass(Kind.FORWARD, number) for number in range(early))
    for number in range(count):
        if early + number < count:
            yield Pass(Kind.FORWARD, early + number)

        yield Pass(Kind.INPUTS, number)
        if number >= late:
            yield Pass(Kind.WEIGHTS, number - late)

    yield from (Pass(Kind.WEIGHTS, number) for number in range(count - late, count))


class _BothWays:
    """Progress of a place of DualPipe in both directions; `near` enters nearer to it than `far`.

    `beyond` is how many places lie between it and the middle.
    """

    def __init__(self, position: int, places: int, count: int) -> None:
        self.near, self.far = (0, 1) if position < places // 2 else (1, 0)
        self.beyond = places // 2 - 1 - min(position, places - 1 - position)
        self.half = count // 2
        self.waiting: list[Pass] = []
        self._forward = [0, 0]
        self._backward = [0, 0]

    def of(self, kind: Kind, way: int) -> Pass:
        """Return the next pass of a direction."""
        done = self._forward if kind is Kind.FORWARD else self._backward
        made = Pass(kind, way * self.half + done[way], way)
        done[way] += 1
        if kind is Kind.INPUTS:
            self.waiting.append(made._replace(kind=Kind.WEIGHTS))

        return made

    def both(self, forward: int, backward: int) -> tuple[Pass, ...]:
        """Return a forward pass of one direction and a backward pass of the other."""
        return self.of(Kind.FORWARD, forward), self.of(Kind.BACKWARD, backward)


def dual_pipe(position: int, places: int, count: int) -> Iterator[tuple[Pass, ...]]:
    """Yield a place's work: one pass, or a forward and a backward pass of both directions.

    `places` is even, and `count` even and at least twice as many. The first half of the
    microbatches enters at the first place and is chunk 0, the second half at the last place and is
    chunk 1 (DeepSeek-V3 2024, 3.2.1; the order is that of its public code).
    """
    ways = _BothWays(position, places, count)
    near, far = ways.near, ways.far
    within = places // 2 - ways.beyond

    # Until the first microbatches of the far direction come, those of the near one.
    yield from ((ways.of(Kind.FORWARD, near),) for _ in range(2 * ways.beyond))
    yield from ((ways.of(Kind.FORWARD, way),) for way in (near, far) * within)
    # Gradients of weights fill the time until the near direction's first one is back.
    for _ in range(ways.beyond):
        yield (ways.of(Kind.INPUTS, far),)
        yield (ways.waiting.pop(0),)
        yield (ways.of(Kind.FORWARD, far),)

    yield from _overlapping(ways, ways.half - places + within)
    # From the middle of these on gradients of weights wait: the other places want those of inputs.
    for number, way in enumerate((far, near) * within):
        yield (ways.of(Kind.BACKWARD if number < within else Kind.INPUTS, way),)

    for _ in range(ways.beyond):
        yield (ways.waiting.pop(0),)
        yield (ways.of(Kind.INPUTS, near),)

    yield from ((waiting_pass,) for waiting_pass in ways.waiting)


def _overlapping(ways: _BothWays, count: int) -> Iterator[tuple[Pass, ...]]:
    """Yield the steady part: `count` times both pairs, then the far direction's own passes."""
    near, far = ways.near, ways.far
    for number in range(count):
        if number or ways.beyond:
            yield ways.both(near, far)
        else:
            # A place in the middle waits for no place: its neighbour gets this pass earlier.
            yield (ways.of(Kind.FORWARD, near),)
            yield (ways.of(Kind.BACKWARD, far),)

        yield ways.both(far, near)

    for _ in range(ways.beyond):
        yield (ways.of(Kind.BACKWARD, far),)
        yield ways.both(far, near)
