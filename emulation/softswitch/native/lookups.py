"""Tables, action profiles and value sets."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from emulation.softswitch.codegen import names
from emulation.softswitch.native import context as at
from emulation.softswitch.native.build import entry_at, load_word, word, words_at
from emulation.softswitch.native.cells import Cells
from emulation.softswitch.native.context import TablePlaces, words_for
from emulation.softswitch.native.forms import (
    NUMBERED,
    asks_for_list,
    number_of,
)
from emulation.softswitch.native.shared import (
    Bytes,
)
from emulation.softswitch.native.values import (
    I64,
    Number,
    UnsupportedError,
    as_type,
    container,
    cut,
)


class Lookups(Cells):
    """Translates the ways in which tables are searched."""

    def _assign_entry(self, node: ast.expr) -> None:
        match node:
            case ast.Constant(value=None):
                self._b.store(word(0), self._entry)
            case ast.Call(func=ast.Name(id=name), args=[index]) if name[0] == "T":
                self._search_exact(number_of(name, "T"), index)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name)), args=[_, key]):
                self._resolve(number_of(name, "P"), key)
            case ast.Subscript(value=ast.Name(id=name)):
                entries = self._descriptor(number_of(name, "D"), at.ENTRIES)
                self._b.store(entries, self._entry)
            case _:
                raise UnsupportedError(self._text(node))

    def _resolve(self, number: int, key: ast.expr) -> None:
        """Put the action of an entry's member, or of one of its group's, in its place."""
        profile = self._b.gep(self._context, [word(self._places.profile(number))])
        found = self._b.call(
            self._shared.helpers.resolve(self._places.choice_words),
            [
                words_at(self._b, self._b.load(self._entry)),
                profile,
                as_type(self._b, self._number(key), I64),
            ],
        )
        self._b.store(found, self._entry)

    def _descriptor(self, table: int, place: int) -> Any:
        return load_word(self._b, self._context, self._places.table(table) + place)

    def _search_exact(self, number: int, index: ast.expr) -> None:
        sources = index.elts if isinstance(index, ast.Tuple) else [index]
        table = self._shared.program.tables()[number]
        widths = [key.bits for key in table.key]
        key = self._concatenated(sources, widths)
        shape = self._places.of_tables[number]
        slots = words_at(self._b, self._descriptor(number, at.SLOTS))
        mask = self._descriptor(number, at.SLOT_MASK)
        found = self._b.call(
            self._shared.helpers.probe(shape.key_words), [slots, mask, *self._split(key, shape)]
        )
        entries = words_at(self._b, self._descriptor(number, at.ENTRIES))
        is_hit = self._b.icmp_unsigned("!=", found, word(0))
        entry = entry_at(self._b, entries, shape, self._b.sub(found, word(1)))
        address = self._b.ptrtoint(entry, I64)
        self._b.store(self._b.select(is_hit, address, word(0)), self._entry)

    def _concatenated(self, sources: Sequence[ast.expr], widths: Sequence[int]) -> Number:
        total = sum(widths)
        type_ = container(max(total, 1))
        value: Any = ir.Constant(type_, 0)
        low = total
        for source, width in zip(sources, widths, strict=True):
            low -= width
            part = as_type(self._b, cut(self._b, self._number(source), width), type_)
            value = self._b.or_(value, self._b.shl(part, ir.Constant(type_, low)))

        return Number(value, max(total, 1))

    def _split(self, key: Number, shape: TablePlaces) -> list[Any]:
        return self._words_of(key, shape.key_words)

    def _words_of(self, number: Number, words: int) -> list[Any]:
        type_ = ir.IntType(64 * words)
        wide = as_type(self._b, number, type_)
        if words == 1:
            return [wide]

        return [
            self._b.trunc(self._b.lshr(wide, ir.Constant(type_, 64 * i)), I64) for i in range(words)
        ]

    def _search_levels(self, number: int, key: Number) -> None:
        shape = self._places.of_tables[number]
        found = self._b.call(
            self._shared.helpers.search_levels(shape),
            [
                words_at(self._b, self._descriptor(number, at.LEVELS)),
                self._descriptor(number, at.LEVEL_COUNT),
                words_at(self._b, self._descriptor(number, at.ENTRIES)),
                *self._split(key, shape),
            ],
        )
        self._b.store(found, self._entry)

    def _search_prefixes(self, number: int, node: ast.For) -> None:
        assign = node.body[0]
        assert isinstance(assign, ast.Assign) and isinstance(assign.value, ast.Call)
        index = assign.value.args[0]
        table = self._shared.program.tables()[number]
        sources = list(index.elts) if isinstance(index, ast.Tuple) else [index]
        # `source & m`: the mask is applied to the key as a whole.
        plain = [
            source.left if key.kind == "lpm" and isinstance(source, ast.BinOp) else source
            for source, key in zip(sources, table.key, strict=True)
        ]
        key = self._concatenated(plain, [item.bits for item in table.key])
        self._search_levels(number, key)

    def _search_masked(self, node: ast.If) -> bool:
        """Translate the two ways of searching by masks as one; return whether it is that."""
        if not isinstance(node.test, ast.Name):
            return False

        match = NUMBERED.fullmatch(node.test.id)
        if match is None or match[1] != "L":
            return False

        self._search_levels(int(match[2]), self._key())
        return True

    def _key(self) -> Number:
        key = self._temporary[names.KEY]
        assert isinstance(key, Number)
        return key

    def _search_rows(self, number: int, node: ast.For) -> None:
        shape = self._places.of_tables[number]
        test = node.body[0]
        assert isinstance(test, ast.If)
        tests = test.test.values if isinstance(test.test, ast.BoolOp) else [test.test]
        ranged = [part.comparators[0] for part in tests if isinstance(part, ast.Compare)][1:]
        words: list[Any] = []
        for source, count in zip(ranged, shape.range_words, strict=True):
            words += self._words_of(self._number(source), count)

        found = self._b.call(
            self._shared.helpers.search_rows(shape),
            [
                words_at(self._b, self._descriptor(number, at.LEVELS)),
                self._descriptor(number, at.LEVEL_COUNT),
                words_at(self._b, self._descriptor(number, at.ENTRIES)),
                *self._split(self._key(), shape),
                *words,
            ],
        )
        self._b.store(found, self._entry)

    def _arguments(self, count: int) -> list[Number | Bytes]:
        """Return the arguments of the action that is being run."""
        action = self._shared.program.actions[self._action]
        entry = words_at(self._b, self._b.load(self._entry))
        found: list[Number | Bytes] = []
        at_ = at.ENTRY_WORDS
        for bits in action.parameter_bits[:count]:
            words = words_for(bits)
            parts = [load_word(self._b, entry, at_ + i) for i in range(words)]
            at_ += words
            type_ = container(max(bits, 1))
            if words == 1:
                value = parts[0] if type_.width == 64 else self._b.trunc(parts[0], type_)
            else:
                value = ir.Constant(type_, 0)
                for i, part in enumerate(parts):
                    shifted = self._b.shl(self._b.zext(part, type_), ir.Constant(type_, 64 * i))
                    value = self._b.or_(value, shifted)

            found.append(Number(value, max(bits, 1)))

        return found

    @property
    def _action(self) -> int:
        if self._list is None:
            raise UnsupportedError("arguments of an unknown action")

        return self._list

    def _list_asked(self, test: ast.expr, outer: int | None) -> int | None:
        """Return the number that a test compares an action or a request's list with."""
        match test:
            case ast.Compare(
                left=ast.Name() | ast.Subscript(),
                ops=[ast.Eq()],
                comparators=[ast.Constant(value=int(number))],
            ) if asks_for_list(test.left):
                return number

        return outer

    def _in_set(self, node: ast.Call) -> Any:
        """Return whether a key is in a value set, as one bit."""
        assert isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name)
        number = number_of(node.func.value.id, "V")
        keys, masks = node.args
        assert isinstance(keys, ast.Tuple)
        parts = [self._number(part) for part in keys.elts]
        if any(part.bits > 64 for part in parts):
            raise UnsupportedError("a value set of more than 64 bits")

        given = ast.literal_eval(masks)
        chosen = [word(at.WORD if mask is None else mask) for mask in given]
        place = self._places.value_set(number)
        return self._b.call(
            self._shared.helpers.in_set(len(parts)),
            [
                words_at(self._b, load_word(self._b, self._context, place + at.SET_MEMBERS)),
                load_word(self._b, self._context, place + at.SET_SIZE),
                *(as_type(self._b, part, I64) for part in parts),
                *chosen,
            ],
        )
