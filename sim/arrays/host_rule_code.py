"""A user's host rule, compiled: C functions over addresses, which the simulator's kernels call."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import carray, cfunc, njit, types
from numba.np.numpy_support import from_dtype

from hostagent.own_rule import OwnRule, own_rule
from hostagent.rule_reader import evaluated
from hostagent.rule_words import NEXT_LABEL, ON_ACK
from hostagent.transports.state import PACKET, SENDER, Rules

RULES = np.dtype([(name, np.int64) for name in Rules._fields], align=True)
_ready: Any = njit(error_model="numpy", nogil=True)


# A rule's numbers wrap around. Signed numbers must not, as numba declares to LLVM ("nsw"), which
# then takes x + x < 0 for false where x > 0.
@_ready
def _add(a, b):
    return np.int64(np.uint64(a) + np.uint64(b))


@_ready
def _sub(a, b):
    return np.int64(np.uint64(a) - np.uint64(b))


@_ready
def _mul(a, b):
    return np.int64(np.uint64(a) * np.uint64(b))


@_ready
def _neg(a):
    return _sub(0, a)


@_ready
def _div(a, b):
    # The machine's own division has no answer for either.
    if b == 0:
        return np.int64(0)
    if b == -1:
        return _neg(a)

    return np.int64(a) // np.int64(b)


@_ready
def _mod(a, b):
    if b == 0 or b == -1:
        return np.int64(0)

    return np.int64(a) % np.int64(b)


@_ready
def _shl(number, bits):
    return np.int64(number) << np.int64(bits) if 0 <= bits < 64 else np.int64(0)


@_ready
def _shr(number, bits):
    return np.int64(number) >> np.int64(min(bits, 63)) if bits >= 0 else np.int64(0)


@_ready
def _inv(a):
    return ~np.int64(a)


@_ready
def _int(a):
    return np.int64(a)


@_ready
def _abs(a):
    return _neg(a) if a < 0 else np.int64(a)


@_ready
def _min(a, b):
    return min(a, b)


@_ready
def _max(a, b):
    return max(a, b)


NATIVE = {
    "_add": _add,
    "_sub": _sub,
    "_mul": _mul,
    "_div": _div,
    "_mod": _mod,
    "_shl": _shl,
    "_shr": _shr,
    "_neg": _neg,
    "_inv": _inv,
    "_int": _int,
    "_abs": _abs,
    "_min": _min,
    "_max": _max,
}


class Compiled(NamedTuple):
    """C functions, with addresses that are good while these are held, and a flow's first state."""

    next_label: Any
    on_ack: Any
    state: np.dtype[np.void]
    first: Any


@cache
def compiled(text: str, name: str) -> Compiled:
    """Compile a rule; raises ExperimentError where it cannot be."""
    rule = own_rule(text, name)
    state = _state(rule)
    names = {**NATIVE, **rule.constants}
    functions = evaluated(rule.definitions, name, names, _ready)
    choose, learn = functions[NEXT_LABEL], functions[ON_ACK]
    rule_state, sender, rules, packets = (
        types.CPointer(from_dtype(kind)) for kind in (state, SENDER, RULES, PACKET)
    )
    word = types.int64

    def next_label(rule_state, sender, rules, packets, length, now_ps):
        return np.int64(
            choose(
                carray(rule_state, 1)[0],
                carray(sender, 1)[0],
                carray(rules, 1)[0],
                carray(packets, length),
                now_ps,
            )
        )

    def on_ack(rule_state, sender, rules, label, marked, now_ps):
        learn(
            carray(rule_state, 1)[0],
            carray(sender, 1)[0],
            carray(rules, 1)[0],
            label,
            marked,
            now_ps,
        )
        return np.int64(0)

    options = {"error_model": "numpy"}
    return Compiled(
        cfunc(word(rule_state, sender, rules, packets, word, word), **options)(next_label),
        cfunc(word(rule_state, sender, rules, word, word, word), **options)(on_ack),
        state,
        np.array([tuple(rule.state.values())], state) if rule.state else np.zeros(1, state),
    )


def _state(rule: OwnRule) -> np.dtype[np.void]:
    fields: list[Any] = [
        (name, np.int64, (len(value),)) if isinstance(value, tuple) else (name, np.int64)
        for name, value in rule.state.items()
    ]
    # A record has a field at least.
    return np.dtype(fields or [("nothing", np.int64)], align=True)
