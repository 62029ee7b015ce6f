"""In which order a pipeline's GPUs take the passes of microbatches.

A GPU has one stage, or with V virtual ones every P-th of P V (Narayanan et al. 2021, 2.2): its
chunks. Where sends take no time, the bubble of a step, with forward and backward passes of a
microbatch taking F and B on a GPU, of which W for the gradients of weights, is

    one forward, one backward    (P - 1) (F + B)        PipeDream-Flush; Narayanan et al. 2021
    interleaved                  (P - 1) (F + B) / V    the same
    zero bubble, ZB-H1           (P - 1) (F + B - 2 W)  Qi et al. 2023, 2.3, whose T_B is B - W
"""

from collections.abc import Iterator
from enum import Enum, auto
from typing import NamedTuple


class Kind(Enum):
    """What a pass makes: activations, gradients of inputs and weights, or of one of these."""

    FORWARD = auto()
    BACKWARD = auto()
    INPUTS = auto()
    WEIGHTS = auto()


class Pass(NamedTuple):
    """A pass of a microbatch through one of a GPU's chunks."""

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

    def of(kind: Kind, place: int) -> Pass:
        group, within = divmod(place, stages * chunks)
        chunk, number = divmod(within, stages)
        is_forward = kind is Kind.FORWARD
        return Pass(kind, group * stages + number, chunk if is_forward else chunks - 1 - chunk)

    yield from (of(Kind.FORWARD, place) for place in range(early))
    for place in range(total - early):
        yield of(Kind.FORWARD, early + place)
        yield of(Kind.BACKWARD, place)

    yield from (of(Kind.BACKWARD, place) for place in range(total - early, total))


def zero_bubble(stage: int, stages: int, count: int) -> Iterator[Pass]:
    """Yield the passes of a stage whose gradients of weights wait (ZB-H1).

    They wait for as many microbatches as stages lie before, so that each stage has as many under
    way: what the first ones begin early, the last ones end late.
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
