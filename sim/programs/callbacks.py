"""C functions that compiled programs call: random numbers, and the bytes of a dropped packet.

They get the address of a few 64-bit words of the switch.
"""

from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from fattree.draws import mix, scramble
from hostagent.transports.parts import part
from sim.kernels.jit import c_function

for rule in (scramble, mix):
    part(rule)

# A switch's words for `draw`: the seed, its component of it, and how many it has drawn.
SEED, COMPONENT, COUNT = range(3)
DRAW_WORDS = 3
WORD = types.int64


@intrinsic
def _load(_typing, address):
    def generate(_context, builder, _signature, arguments):
        return builder.load(builder.inttoptr(arguments[0], ir.IntType(64).as_pointer()))

    return WORD(WORD), generate


@intrinsic
def _store(_typing, address, value):
    def generate(context, builder, _signature, arguments):
        place = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        builder.store(arguments[1], place)
        return context.get_dummy_value()

    return types.void(WORD, WORD), generate


@intrinsic
def _take(_typing, address, size):
    def generate(_context, builder, _signature, arguments):
        cell = ir.IntType(32)
        place = builder.inttoptr(arguments[0], cell.as_pointer())
        taken = builder.trunc(arguments[1], cell)
        builder.store(builder.sub(builder.load(place), taken), place)
        return ir.Constant(ir.IntType(64), 0)

    return WORD(WORD, WORD), generate


def _draw(words, low, high):
    """Return an integer from low to high, as `emulation.virtual.control.SwitchDraws`."""
    count = _load(words + 8 * COUNT)
    _store(words + 8 * COUNT, count + 1)
    draw = mix(_load(words + 8 * SEED), _load(words + 8 * COMPONENT), count)
    # In two halves, of which the lower has a product of 64 bits.
    span = high - low + 1
    rest = np.int64(np.uint64(draw) * np.uint64(span & 0xFFFFFFFF) >> np.uint64(32))
    return low + draw * (span >> 32) + rest


def _forget(cells, port, size):
    """Take bytes out of a port's cell, of 32 bits."""
    return _take(cells + 4 * port, size)


@cache
def draw_function() -> Any:
    """Return `draw(words, low, high)`; its `address` is good while it is held."""
    return c_function(WORD(WORD, WORD, WORD), _draw)


@cache
def forget_function() -> Any:
    """Return `forget(cells, port, size)`; its `address` is good while it is held."""
    return c_function(WORD(WORD, WORD, WORD), _forget)
