"""Small pieces of LLVM IR that translated code and its helpers are built of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

from ofan_p4.softswitch.native.context import HASH_FACTOR, TablePlaces
from ofan_p4.softswitch.native.values import I64, Builder


def word(number: int) -> ir.Constant:
    """Return a 64-bit constant."""
    return ir.Constant(I64, number)


def load_word(builder: Builder, base: Any, index: Any) -> Any:
    """Return word `index` behind an address given as a pointer to words."""
    return builder.load(builder.gep(base, [index if not isinstance(index, int) else word(index)]))


def words_at(builder: Builder, address: Any) -> Any:
    """Return a 64-bit address as a pointer to words."""
    return builder.inttoptr(address, I64.as_pointer())


@contextmanager
def counted(builder: Builder, count: Any) -> Iterator[tuple[Any, Any]]:
    """Repeat the code inside for an index from 0 to count - 1; yields (index, leave block)."""
    function = builder.function
    before = builder.block
    head = function.append_basic_block("head")
    body = function.append_basic_block("body")
    after = function.append_basic_block("after")
    builder.branch(head)
    builder.position_at_end(head)
    # The index is 0 on the way in, and one more on the way back from the body.
    index = builder.phi(I64)
    index.add_incoming(word(0), before)
    builder.cbranch(builder.icmp_unsigned("<", index, count), body, after)
    builder.position_at_end(body)
    yield index, after

    following = builder.add(index, word(1))
    index.add_incoming(following, builder.block)
    builder.branch(head)
    builder.position_at_end(after)


def hashed(builder: Builder, key: Sequence[Any]) -> Any:
    """Return the hash of a key's words; `memory` computes the same."""
    mixed: Any = word(0)
    for part in key:
        mixed = builder.mul(builder.xor(mixed, part), word(HASH_FACTOR))
        mixed = builder.xor(mixed, builder.lshr(mixed, word(32)))

    return mixed


def entry_at(builder: Builder, entries: Any, places: TablePlaces, index: Any) -> Any:
    """Return a pointer to the words of an entry."""
    return builder.gep(entries, [builder.mul(index, word(places.entry_words))])


def joined(builder: Builder, words: Sequence[Any]) -> Any:
    """Return words, the lowest first, as one number."""
    if len(words) == 1:
        return words[0]

    type_ = ir.IntType(64 * len(words))
    number: Any = ir.Constant(type_, 0)
    # The lowest word stands at bit 0.
    for i, part in enumerate(words):
        shifted = builder.shl(builder.zext(part, type_), ir.Constant(type_, 64 * i))
        number = builder.or_(number, shifted)

    return number


def folded(builder: Builder, total: Any) -> Any:
    """Return one's complement of a sum of 16-bit words (`hashes.fold`)."""
    ones = word(0xFFFF)
    # Adding with end-around carry is adding modulo 2**16 - 1; but a sum that is not 0 and divides
    # evenly folds to 0xFFFF, not to 0.
    rest = builder.urem(total, ones)
    is_whole = builder.icmp_unsigned("==", rest, word(0))
    is_empty = builder.icmp_unsigned("==", total, word(0))
    folded_ = builder.sub(ones, builder.select(is_whole, ones, rest))

    return builder.select(is_empty, ones, folded_)
