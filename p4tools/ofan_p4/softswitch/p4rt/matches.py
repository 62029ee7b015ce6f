"""Match keys between P4Runtime messages and the pairs of integers that tables use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from p4.v1.p4runtime_pb2 import FieldMatch

from ofan_p4.softswitch.base.errors import Code, EntryError
from ofan_p4.softswitch.p4rt.bytestrings import decode, encode
from ofan_p4.softswitch.p4rt.specs import MatchSpec
from ofan_p4.softswitch.state.tables import Match, prefix_mask


def decode_match(key: Sequence[MatchSpec], fields: Iterable[FieldMatch], where: str) -> Match:
    """Return the match of a request; a field that is left out is a wildcard, unless it is exact."""
    by_id: dict[int, FieldMatch] = {}
    for field in fields:
        # 9.1.1: each field at most once.
        if field.field_id in by_id:
            raise _invalid(f"{where}: match field {field.field_id} appears twice")

        by_id[field.field_id] = field

    unknown = by_id.keys() - {spec.id for spec in key}
    if unknown:
        raise _invalid(f"{where}: no match field {min(unknown)}")

    return tuple(_decode_field(spec, by_id.get(spec.id), f"{where}: {spec.name}") for spec in key)


def add_match(key: Sequence[MatchSpec], match: Match, fields: Any) -> None:
    """Add the message form of a match to the repeated `fields`, wildcards left out."""
    for spec, pair in zip(key, match, strict=True):
        # 9.1.1: a wildcard is left out, in requests and in answers alike, so that reads return the
        # written form.
        if spec.kind == "exact" or pair != wildcard(spec):
            _encode_field(spec, *pair, fields.add(field_id=spec.id))


def wildcard(spec: MatchSpec) -> tuple[int, int]:
    """Return the pair that matches everything."""
    return (0, (1 << spec.bits) - 1) if spec.kind == "range" else (0, 0)


def _decode_field(spec: MatchSpec, field: FieldMatch | None, where: str) -> tuple[int, int]:
    if field is None:
        return _left_out(spec, where)

    match_type = field.WhichOneof("field_match_type")
    if match_type != spec.kind:
        raise _invalid(
            f"{where}: expected a match of kind {spec.kind}, found {match_type or 'nothing'}"
        )

    match match_type:
        case "exact":
            return spec.decode(field.exact.value, where), 0
        case "lpm":
            return _decode_prefix(spec, field, where)
        case "ternary":
            return _decode_ternary(spec, field, where)
        case "range":
            return _decode_range(spec, field, where)
        case "optional":
            return spec.decode(field.optional.value, where), (1 << spec.bits) - 1

    raise _invalid(f"{where}: match kind {spec.kind} is not supported")


def _left_out(spec: MatchSpec, where: str) -> tuple[int, int]:
    if spec.kind == "exact":
        raise _invalid(f"{where}: an exact match field cannot be left out")

    return wildcard(spec)


def _decode_prefix(spec: MatchSpec, field: FieldMatch, where: str) -> tuple[int, int]:
    value = decode(field.lpm.value, spec.bits, where)
    length = field.lpm.prefix_len
    if not 0 < length <= spec.bits:
        raise _invalid(
            f"{where}: a prefix length of {length} in {spec.bits} bits (leave a wildcard out)"
        )

    # 9.1.1: bits beyond the prefix, or outside of the mask, must be 0.
    if value & ~prefix_mask(length, spec.bits):
        raise _invalid(f"{where}: 0x{value:x} has bits beyond its prefix of {length}")

    return value, length


def _decode_ternary(spec: MatchSpec, field: FieldMatch, where: str) -> tuple[int, int]:
    value, mask = (
        decode(item, spec.bits, where) for item in (field.ternary.value, field.ternary.mask)
    )
    if not mask:
        raise _invalid(f"{where}: a mask of 0 (leave a wildcard out)")
    if value & ~mask:
        raise _invalid(f"{where}: 0x{value:x} has bits outside of its mask 0x{mask:x}")

    return value, mask


def _decode_range(spec: MatchSpec, field: FieldMatch, where: str) -> tuple[int, int]:
    low, high = (decode(item, spec.bits, where) for item in (field.range.low, field.range.high))
    if low > high:
        raise _invalid(f"{where}: the range from {low} to {high} is empty")
    # The canonical form of "any value" is no field at all.
    if (low, high) == wildcard(spec):
        raise _invalid(f"{where}: a range of all values (leave a wildcard out)")

    return low, high


def _encode_field(spec: MatchSpec, first: int, second: int, field: FieldMatch) -> None:
    match spec.kind:
        case "exact":
            field.exact.value = spec.encode(first)
        case "lpm":
            field.lpm.value = encode(first)
            field.lpm.prefix_len = second
        case "ternary":
            field.ternary.value, field.ternary.mask = encode(first), encode(second)
        case "range":
            field.range.low, field.range.high = encode(first), encode(second)
        case "optional":
            field.optional.value = spec.encode(first)


def _invalid(message: str) -> EntryError:
    return EntryError(Code.INVALID_ARGUMENT, message)
