"""Features that most runs lack, so that their kernels are compiled without them.

Kernels are written once, for all features of a run. A check for an absent feature (`if
constants.lanes > 0`) costs a load and a branch for each packet, and the code behind it room in the
processor's caches. So they are compiled twice: a run without the features below gets kernels in
which these numbers are known, and the compiler leaves out dead code. The type of `World.features`
selects the form: None, or a number.
"""

from enum import Enum, auto

from numba import types
from numba.extending import intrinsic, overload

from sim.kernels.bundles import Bundle
from sim.kernels.jit import INLINED
from sim.kernels.state import Constants, World

# Parallel links, planes, lanes for trimmed packets, late queue lengths, links that lose packets or
# slow down, pauses, shared memory; jitter, trimming, fewer ACKs than packets.
PLAIN = {
    "constants": {
        "edge_agg_links": 1,
        "agg_core_links": 1,
        "planes": 1,
        "lanes": 0,
        "is_stale": 0,
        "is_lossy": 0,
        "is_slowed": 0,
        "is_pausing": 0,
        "is_drawing": 0,
        "alpha": 0,
    },
    "rules": {"jitter_permille": 0, "trimming": 0, "acks_first": 0, "packets_per_ack": 1},
}


class Form(Enum):
    """Which kernels a run has: plain ones, ones that do all but pause, or those of pauses.

    The last have hosts' kernels from the second form, and switches of their own
    (`sim.kernels.events`).
    """

    PLAIN = auto()
    GENERAL = auto()
    PAUSING = auto()


def form_needed(constants: Constants, rules: object) -> Form:
    """Return the form of a run's kernels."""
    if constants.is_pausing:
        return Form.PAUSING

    return Form.PLAIN if features(constants, rules) is None else Form.GENERAL


def features(constants: Constants, rules: object) -> int | None:
    """Return how many numbers of a run are not the plain ones, None where all are."""
    parts = {"constants": constants, "rules": rules}
    return (
        sum(
            getattr(parts[part], name) != number
            for part, numbers in PLAIN.items()
            for name, number in numbers.items()
        )
        or None
    )


def known(world: World) -> World:
    """Return the world unchanged; in a plain world the compiler then knows the plain numbers."""
    return world


@intrinsic
def _known(_typing, world):
    def generate(context, builder, _signature, arguments):
        value = arguments[0]
        for part, numbers in PLAIN.items():
            index = world.fields.index(part)
            part_type = world.types[index]
            for name, number in numbers.items():
                constant = context.get_constant(types.int64, number)
                value = builder.insert_value(value, constant, [index, part_type.fields.index(name)])

        return value

    return world(world), generate


@intrinsic
def _known_by_address(_typing, world):
    def generate(_context, _builder, _signature, arguments):
        return arguments[0]

    return world.knowing(PLAIN)(world), generate


@overload(known, jit_options=INLINED)
def _compiled_known(world):
    is_plain = isinstance(world.types[world.fields.index("features")], types.NoneType)
    if is_plain and isinstance(world, Bundle):
        return lambda world: _known_by_address(world)

    if is_plain:
        return lambda world: _known(world)

    return lambda world: world
