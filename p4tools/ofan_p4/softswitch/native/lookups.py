"""Tables, action profiles and value sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from llvmlite import ir

from ofan_p4.softswitch.codegen import packet_nodes
from ofan_p4.softswitch.codegen.layout import concatenate
from ofan_p4.softswitch.codegen.statements import (
    Key,
    Lookup,
    Resolve,
    TakeArguments,
    UseDefault,
)
from ofan_p4.softswitch.native import context
from ofan_p4.softswitch.native.build import entry_at, joined, load_word, word, words_at
from ofan_p4.softswitch.native.cells import Cells
from ofan_p4.softswitch.native.context import words_for
from ofan_p4.softswitch.native.scope import CodeRules, NumberRules
from ofan_p4.softswitch.native.values import (
    I32,
    I64,
    Limit,
    Number,
    as_type,
    beyond,
    container,
)


class Lookups(Cells):
    """Translator of searches in tables."""

    def _use_default(self, node: UseDefault) -> None:
        # The default entry is the first of a table's entries.
        self._b.store(self._descriptor(node.table, context.ENTRIES), self._entry)

    def _resolve(self, node: Resolve) -> None:
        """Replace an indirect table's entry by its member, or by a member of its group."""
        profile = self._b.gep(self._context, [word(self._places.profile(node.profile))])
        chosen = self._b.call(
            self._shared.helpers.resolve(self._places.choice_words),
            [
                words_at(self._b, self._b.load(self._entry)),
                profile,
                as_type(self._b, self._number(node.key), I64),
            ],
        )
        self._b.store(chosen, self._entry)

    def _lookup(self, node: Lookup) -> None:
        match node.kind:
            case "exact":
                entry = self._dense_or(node, self._search_exact)
            case "rows":
                entry = self._search_rows(node)
            case "lpm":
                entry = self._dense_or(node, self._search_levels)
            case _:
                entry = self._search_levels(node, self._key(node.keys))

        # 0 stands for no match; the statements behind it ask for that.
        self._b.store(entry, self._entry)

    def _dense_or(self, node: Lookup, search: Callable[[Lookup, Number], Any]) -> Any:
        """Return the entry of a table that may be dense, and is searched where it is not."""
        shape = self._places.of_tables[node.table]
        key = self._key(node.keys)
        if shape.key_words > 1:
            return search(node, key)

        levels = self._descriptor(node.table, context.DENSE)
        is_dense = self._b.icmp_unsigned("!=", levels, word(0))
        with self._b.if_else(is_dense, likely=True) as (then, otherwise):
            with then:
                cells = self._b.inttoptr(
                    self._descriptor(node.table, context.DENSE_CELLS), I32.as_pointer()
                )
                hit = self._b.call(
                    self._shared.helpers.walk(),
                    [words_at(self._b, levels), cells, *self._words_of(key, 1)],
                )
                walked = self._indexed(node.table, hit)
                after_walk = self._b.block
            with otherwise:
                searched = search(node, key)
                after_search = self._b.block

        entry = self._b.phi(I64)
        entry.add_incoming(walked, after_walk)
        entry.add_incoming(searched, after_search)
        return entry

    def _search_exact(self, node: Lookup, key: Number) -> Any:
        shape = self._places.of_tables[node.table]
        slots = words_at(self._b, self._descriptor(node.table, context.SLOTS))
        mask = self._descriptor(node.table, context.SLOT_MASK)
        key_words = self._words_of(key, shape.key_words)
        hit = self._b.call(self._shared.helpers.probe(shape.key_words), [slots, mask, *key_words])
        return self._indexed(node.table, hit)

    def _indexed(self, table: int, index_of_entry: Any) -> Any:
        """Return the address of the entry of an index plus 1, 0 for none."""
        entries = words_at(self._b, self._descriptor(table, context.ENTRIES))
        is_hit = self._b.icmp_unsigned("!=", index_of_entry, word(0))
        # The address of a miss is not used.
        shape = self._places.of_tables[table]
        entry = entry_at(self._b, entries, shape, self._b.sub(index_of_entry, word(1)))
        return self._b.select(is_hit, self._b.ptrtoint(entry, I64), word(0))

    def _search_levels(self, node: Lookup, key: Number) -> Any:
        shape = self._places.of_tables[node.table]
        return self._b.call(
            self._shared.helpers.search_levels(shape),
            [*self._searched(node.table), *self._words_of(key, shape.key_words)],
        )

    def _search_rows(self, node: Lookup) -> Any:
        shape = self._places.of_tables[node.table]
        masked = self._key([key for key in node.keys if key.kind != "range"])
        range_words: list[Any] = []
        ranged = (key for key in node.keys if key.kind == "range")
        for key, count in zip(ranged, shape.range_words, strict=True):
            range_words += self._words_of(self._number(key.value), count)

        # The helper takes its arguments in this order; LLVM makes less code where they are computed
        # so.
        return self._b.call(
            self._shared.helpers.search_rows(shape),
            [*self._searched(node.table), *self._words_of(masked, shape.key_words), *range_words],
        )

    def _searched(self, table: int) -> list[Any]:
        """Return the levels or rows of a table, how many there are, and its entries."""
        return [
            words_at(self._b, self._descriptor(table, context.LEVELS)),
            self._descriptor(table, context.LEVEL_COUNT),
            words_at(self._b, self._descriptor(table, context.ENTRIES)),
        ]

    def _key(self, keys: Sequence[Key]) -> Number:
        """Return the parts of a key side by side, each in its width."""
        return self._number(concatenate([(key.value, key.bits) for key in keys]))

    def _words_of(self, number: Number, count: int) -> list[Any]:
        type_ = ir.IntType(64 * count)
        wide = as_type(self._b, number, type_)
        if count == 1:
            return [wide]

        return [
            self._b.trunc(self._b.lshr(wide, ir.Constant(type_, 64 * i)), I64) for i in range(count)
        ]

    def _take_arguments(self, node: TakeArguments) -> None:
        entry = words_at(self._b, self._b.load(self._entry))
        index = context.ENTRY_WORDS
        for target in node.targets:
            bits = max(target.bits or 0, 1)
            # Before the loads: a damaged program may name a width of millions of words.
            type_ = container(bits)
            argument_words = [load_word(self._b, entry, index + i) for i in range(words_for(bits))]
            index += len(argument_words)
            value = joined(self._b, argument_words)
            narrow = value if value.type.width == type_.width else self._b.trunc(value, type_)
            self._set(target, Number(narrow, bits))

    def _in_set(self, node: packet_nodes.InSet, _demand: int | None) -> Number:
        """Return whether a key is in a value set."""
        parts = [self._number(part) for part in node.keys]
        if any(part.bits > 64 for part in parts):
            raise beyond(Limit.VALUE_SETS)

        # A key without a mask compares all of its bits.
        masks = [word(context.WORD if mask is None else mask) for mask in node.masks]
        descriptor = self._places.value_set(node.number)
        is_member = self._b.call(
            self._shared.helpers.in_set(len(parts)),
            [
                words_at(
                    self._b, load_word(self._b, self._context, descriptor + context.SET_MEMBERS)
                ),
                load_word(self._b, self._context, descriptor + context.SET_SIZE),
                *(as_type(self._b, part, I64) for part in parts),
                *masks,
            ],
        )
        return Number(self._b.zext(is_member, I32), 1)

    NUMBERS: ClassVar[NumberRules] = {packet_nodes.InSet: _in_set}
    CODE: ClassVar[CodeRules] = {
        UseDefault: _use_default,
        Resolve: _resolve,
        Lookup: _lookup,
        TakeArguments: _take_arguments,
    }
