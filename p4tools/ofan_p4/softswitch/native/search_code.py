"""Searches of tables, action profiles and value sets, in LLVM IR."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ofan_p4.softswitch.codegen.program import USE_MEMBER
from ofan_p4.softswitch.native import context
from ofan_p4.softswitch.native.build import (
    counted,
    entry_at,
    hashed,
    joined,
    load_word,
    word,
    words_at,
)
from ofan_p4.softswitch.native.context import NO_RANK, TablePlaces
from ofan_p4.softswitch.native.made_once import MadeOnce
from ofan_p4.softswitch.native.values import I1, I32, I64, Builder


class SearchCode(MadeOnce):
    """Functions that find entries."""

    def probe(self, key_words: int) -> ir.Function:
        """Return `i64 probe(slots, mask, key...)`: the index of a key's entry plus 1, else 0."""
        keys = [I64] * key_words
        return self._function(
            f"probe_{key_words}", I64, [I64.as_pointer(), I64, *keys], self._probe
        )

    @staticmethod
    def _probe(builder: Builder, slots: Any, mask: Any, *key: Any) -> None:
        function = builder.function
        # A slot is a key and, in its last word, the index of its entry plus 1.
        width = word(len(key) + 1)
        first = builder.and_(hashed(builder, key), mask)
        entry = builder.block
        look = function.append_basic_block("look")
        compare = function.append_basic_block("compare")
        further = function.append_basic_block("further")
        done = function.append_basic_block("done")
        builder.branch(look)

        builder.position_at_end(look)
        # The index begins at the hash, and moves on by one each time round.
        index = builder.phi(I64)
        index.add_incoming(first, entry)
        slot = builder.gep(slots, [builder.mul(index, width)])
        number = load_word(builder, slot, len(key))
        # A free slot ends the search: keys lie behind their home without a gap.
        builder.cbranch(builder.icmp_unsigned("==", number, word(0)), done, compare)

        builder.position_at_end(compare)
        # All words of the key are compared without a branch: most probes hit at once.
        same: Any = ir.Constant(I1, 1)
        for i, part in enumerate(key):
            same = builder.and_(
                same, builder.icmp_unsigned("==", load_word(builder, slot, i), part)
            )

        builder.cbranch(same, done, further)
        builder.position_at_end(further)
        # Behind the last slot comes the first.
        index.add_incoming(builder.and_(builder.add(index, word(1)), mask), further)
        builder.branch(look)
        builder.position_at_end(done)
        builder.ret(number)

    def walk(self) -> ir.Function:
        """Return `i64 walk(levels, cells, key)`: the index of a key's entry plus 1, else 0."""
        pointer = I64.as_pointer()
        return self._function("walk", I64, [pointer, I32.as_pointer(), I64], self._walk)

    @staticmethod
    def _walk(builder: Builder, levels: Any, cells: Any, key: Any) -> None:
        function = builder.function
        entry = builder.block
        look = function.append_basic_block("look")
        inside = function.append_basic_block("inside")
        deeper = function.append_basic_block("deeper")
        done = function.append_basic_block("done")
        builder.branch(look)

        builder.position_at_end(look)
        level = builder.phi(levels.type)
        level.add_incoming(levels, entry)
        node = builder.phi(I64)
        node.add_incoming(word(0), entry)
        part = builder.and_(key, load_word(builder, level, context.SHARED))
        shared = load_word(builder, level, context.SHARED_VALUE)
        node_cell = builder.load(builder.gep(cells, [node]))
        builder.cbranch(builder.icmp_unsigned("==", part, shared), inside, done)

        builder.position_at_end(inside)
        index = node
        above = load_word(builder, level, context.RUN_ABOVE)
        for shift, ones, distance in (
            (context.RUN_SHIFT, context.RUN_ONES, above),
            (context.LOW_SHIFT, context.LOW_ONES, word(0)),
        ):
            run = builder.lshr(key, load_word(builder, level, shift))
            run = builder.and_(run, load_word(builder, level, ones))
            index = builder.add(index, builder.shl(run, distance))

        # A node's own cell comes first.
        cell = builder.load(builder.gep(cells, [builder.add(index, word(1))]))
        is_node = builder.icmp_signed("<", cell, ir.Constant(I32, 0))
        builder.cbranch(is_node, deeper, done)

        builder.position_at_end(deeper)
        number = builder.and_(cell, ir.Constant(I32, context.DENSE_NODE - 1))
        node.add_incoming(builder.zext(number, I64), deeper)
        level.add_incoming(builder.gep(level, [word(context.DENSE_WORDS)]), deeper)
        builder.branch(look)

        builder.position_at_end(done)
        result = builder.phi(I32)
        result.add_incoming(node_cell, look)
        result.add_incoming(cell, inside)
        builder.ret(builder.zext(result, I64))

    def search_levels(self, places: TablePlaces) -> ir.Function:
        """Return `i64 search(levels, count, entries, key...)`: the best entry's address, else 0."""
        key_words = places.key_words
        is_ranked = places.kind == "masked"
        name = f"search_{places.kind}_{key_words}_{places.entry_words}"

        def body(builder: Builder, levels: Any, count: Any, entries: Any, *key: Any) -> None:
            function = builder.function
            # A level is a hash table of all entries with one mask: each is probed with the masked
            # key.
            best = builder.alloca(I64)
            rank = builder.alloca(I64)
            builder.store(word(0), best)
            builder.store(word(NO_RANK), rank)

            with counted(builder, count) as (index, leave):
                level = builder.gep(levels, [builder.mul(index, word(places.level_words))])
                # Levels come in the order of their best rank.
                if is_ranked:
                    # No later level can win once its best is no better than the best so far.
                    go_on = function.append_basic_block("go_on")
                    top = load_word(builder, level, context.LEVEL_RANK)
                    builder.cbranch(builder.icmp_signed("<", top, builder.load(rank)), go_on, leave)
                    builder.position_at_end(go_on)

                # Each level has its own mask, so that the key is masked anew for each.
                masked = [
                    builder.and_(part, load_word(builder, level, context.LEVEL_WORDS + i))
                    for i, part in enumerate(key)
                ]
                number = builder.call(
                    self.probe(key_words),
                    [
                        words_at(builder, load_word(builder, level, context.LEVEL_SLOTS)),
                        load_word(builder, level, context.LEVEL_SLOT_MASK),
                        *masked,
                    ],
                )
                with builder.if_then(builder.icmp_unsigned("!=", number, word(0))):
                    entry = entry_at(builder, entries, places, builder.sub(number, word(1)))
                    if is_ranked:
                        entry_rank = load_word(builder, entry, context.RANK)
                        is_better = builder.icmp_signed("<", entry_rank, builder.load(rank))
                        with builder.if_then(is_better):
                            builder.store(entry_rank, rank)
                            builder.store(builder.ptrtoint(entry, I64), best)
                    else:
                        builder.store(builder.ptrtoint(entry, I64), best)

                if not is_ranked:
                    # The longest prefix comes first.
                    go_on = function.append_basic_block("go_on")
                    builder.cbranch(
                        builder.icmp_unsigned("==", builder.load(best), word(0)), go_on, leave
                    )
                    builder.position_at_end(go_on)

            builder.ret(builder.load(best))

        pointer = I64.as_pointer()
        return self._function(name, I64, [pointer, I64, pointer, *[I64] * key_words], body)

    def search_rows(self, places: TablePlaces) -> ir.Function:
        """Return `i64 search(rows, count, entries, key..., ranged...)`: an entry's address or 0."""
        key_words = places.key_words
        ranged = sum(places.range_words)
        shape = "_".join(map(str, places.range_words))
        name = f"rows_{key_words}_{places.entry_words}_{shape}"

        def body(builder: Builder, rows: Any, count: Any, entries: Any, *key: Any) -> None:
            function = builder.function
            # Rows are searched one after the other, in the order of their rank: the first that fits
            # wins.
            with counted(builder, count) as (index, _):
                row = builder.gep(rows, [builder.mul(index, word(places.row_words))])
                fits: Any = ir.Constant(I1, 1)
                for i, part in enumerate(key[:key_words]):
                    mask = load_word(builder, row, context.ROW_WORDS + i)
                    value = load_word(builder, row, context.ROW_WORDS + key_words + i)
                    fits = builder.and_(
                        fits, builder.icmp_unsigned("==", builder.and_(part, mask), value)
                    )

                # Behind masks and values a row has the two ends of each range.
                offset = context.ROW_WORDS + 2 * key_words
                rest = list(key[key_words:])
                for size in places.range_words:
                    number = joined(builder, rest[:size])
                    rest = rest[size:]
                    low = joined(
                        builder, [load_word(builder, row, offset + i) for i in range(size)]
                    )
                    offset += size
                    high = joined(
                        builder, [load_word(builder, row, offset + i) for i in range(size)]
                    )
                    offset += size
                    fits = builder.and_(fits, builder.icmp_unsigned("<=", low, number))
                    fits = builder.and_(fits, builder.icmp_unsigned("<=", number, high))

                hit = function.append_basic_block("hit")
                miss = function.append_basic_block("miss")
                builder.cbranch(fits, hit, miss)
                builder.position_at_end(hit)
                entry = entry_at(builder, entries, places, load_word(builder, row, 0))
                builder.ret(builder.ptrtoint(entry, I64))
                builder.position_at_end(miss)

            builder.ret(word(0))

        pointer = I64.as_pointer()
        arguments = [pointer, I64, pointer, *[I64] * (key_words + ranged)]
        return self._function(name, I64, arguments, body)

    def resolve(self, choice_words: int) -> ir.Function:
        """Return `i64 resolve(entry, profile, key)`: the address of the entry that is chosen."""
        pointer = I64.as_pointer()

        def body(builder: Builder, entry: Any, profile: Any, key: Any) -> None:
            size = word(8 * choice_words)
            # An entry of an indirect table holds a number where others hold arguments: of a member
            # or group.
            target = load_word(builder, entry, context.ENTRY_WORDS)
            kind = load_word(builder, entry, context.ACTION)
            nothing = load_word(builder, profile, context.MEMBERS)
            is_member = builder.icmp_signed("==", kind, word(USE_MEMBER))

            with builder.if_then(is_member):
                # Member i is the entry behind i others; the first does nothing, like index 0.
                number = self._find(builder, profile, context.MEMBER_SLOTS, target)
                builder.ret(builder.add(nothing, builder.mul(number, size)))

            number = self._find(builder, profile, context.GROUP_SLOTS, target)
            # A group that is not there, or that has no live member, does nothing.
            with builder.if_then(builder.icmp_unsigned("==", number, word(0))):
                builder.ret(nothing)

            groups = words_at(builder, load_word(builder, profile, context.GROUPS))
            offset = builder.mul(builder.sub(number, word(1)), word(context.GROUP_WORDS))
            group = builder.gep(groups, [offset])
            count = load_word(builder, group, context.GROUP_SIZE)
            with builder.if_then(builder.icmp_unsigned("==", count, word(0))):
                builder.ret(nothing)

            choices = load_word(builder, group, context.GROUP_CHOICES)
            # The selector: the hash of the packet, modulo the number of choices (a weight is
            # repeated).
            chosen = builder.mul(builder.urem(key, count), size)
            builder.ret(builder.add(choices, chosen))

        return self._function(f"resolve_{choice_words}", I64, [pointer, pointer, I64], body)

    def _find(self, builder: Builder, profile: Any, word_index: int, number: Any) -> Any:
        slots = words_at(builder, load_word(builder, profile, word_index))
        mask = load_word(builder, profile, word_index + 1)
        return builder.call(self.probe(1), [slots, mask, number])

    def in_set(self, parts: int) -> ir.Function:
        """Return `i1 in_set(members, count, key..., masks...)`."""

        def body(builder: Builder, members: Any, size: Any, *values_and_masks: Any) -> None:
            function = builder.function
            with counted(builder, size) as (index, _):
                row = builder.gep(members, [builder.mul(index, word(context.PART_WORDS * parts))])
                fits: Any = ir.Constant(I1, 1)
                values, masks = values_and_masks[:parts], values_and_masks[parts:]
                for i, (value, mask) in enumerate(zip(values, masks, strict=True)):
                    # A part is a single value under a mask, or a range: then both of its ends
                    # differ.
                    low, high, bits = (
                        load_word(builder, row, context.PART_WORDS * i + j) for j in range(3)
                    )
                    expected = builder.and_(builder.and_(low, bits), mask)
                    same = builder.icmp_unsigned("==", builder.and_(value, bits), expected)
                    inside = builder.and_(
                        builder.icmp_unsigned("<=", low, value),
                        builder.icmp_unsigned("<=", value, high),
                    )
                    is_single = builder.icmp_unsigned("==", low, high)
                    fits = builder.and_(fits, builder.select(is_single, same, inside))

                hit = function.append_basic_block("hit")
                miss = function.append_basic_block("miss")
                builder.cbranch(fits, hit, miss)
                builder.position_at_end(hit)
                builder.ret(ir.Constant(I1, 1))
                builder.position_at_end(miss)

            builder.ret(ir.Constant(I1, 0))

        arguments = [I64.as_pointer(), I64, *[I64] * (2 * parts)]
        return self._function(f"in_set_{parts}", I1, arguments, body)
