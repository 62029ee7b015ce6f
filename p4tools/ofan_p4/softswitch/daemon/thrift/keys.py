"""Match keys and action arguments between the runtime API and the forms that tables store."""

from __future__ import annotations

from collections.abc import Sequence

from ofan_p4.softswitch.codegen.program import VALID, Action, KeyField
from ofan_p4.softswitch.daemon.thrift import messages as m
from ofan_p4.softswitch.daemon.thrift.messages import MatchType, TableError
from ofan_p4.softswitch.state.tables import Match, prefix_mask

TYPES = {
    "exact": MatchType.EXACT,
    "lpm": MatchType.LPM,
    "ternary": MatchType.TERNARY,
    "optional": MatchType.TERNARY,
    "range": MatchType.RANGE,
}
# Here the largest priority wins, in BMv2's runtime API the smallest.
MOST_PRIORITY = (1 << 31) - 1


def decode_match(key: Sequence[KeyField], params: Sequence[m.MatchParam]) -> Match:
    """Return the stored form of a key; BAD_MATCH_KEY if it does not fit."""
    if len(key) != len(params):
        raise _bad_key()

    return tuple(_pair(field, param) for field, param in zip(key, params, strict=True))


def _pair(field: KeyField, param: m.MatchParam) -> tuple[int, int]:
    if param.valid is not None and field.target[1] == VALID:
        return int(param.valid.key), 0
    if param.type != TYPES[field.kind]:
        raise _bad_key()

    if param.exact is not None:
        return _key_number(param.exact.key, field.bits), 0
    if param.lpm is not None:
        return _prefix(field, param.lpm)
    if param.ternary is not None:
        return _masked(field, param.ternary)
    if param.range is not None:
        return _range(field, param.range)

    raise _bad_key()


def _prefix(field: KeyField, lpm: m.Lpm) -> tuple[int, int]:
    if not 0 <= lpm.prefix_length <= field.bits:
        raise _bad_key()

    mask = prefix_mask(lpm.prefix_length, field.bits)
    # As BMv2: bits behind the prefix may be there, and do not count.
    return _key_number(lpm.key, field.bits) & mask, lpm.prefix_length


def _masked(field: KeyField, ternary: m.Ternary) -> tuple[int, int]:
    mask = _key_number(ternary.mask, field.bits)
    if field.kind == "optional" and mask not in (0, (1 << field.bits) - 1):
        raise _bad_key()

    return _key_number(ternary.key, field.bits) & mask, mask


def _range(field: KeyField, key_range: m.Range) -> tuple[int, int]:
    low, high = _key_number(key_range.start, field.bits), _key_number(key_range.end_, field.bits)
    if low > high:
        raise _bad_key()

    return low, high


def encode_match(key: Sequence[KeyField], match: Match) -> list[m.MatchParam]:
    """Return a stored match as a key."""
    return [_param(field, *pair) for field, pair in zip(key, match, strict=True)]


def _param(field: KeyField, first: int, second: int) -> m.MatchParam:
    kind = TYPES[field.kind]
    value = encode(first, field.bits)
    match kind:
        case MatchType.EXACT:
            return m.MatchParam(kind, exact=m.Exact(value))
        case MatchType.LPM:
            return m.MatchParam(kind, lpm=m.Lpm(value, second))
        case MatchType.RANGE:
            return m.MatchParam(kind, range=m.Range(value, encode(second, field.bits)))
        case _:
            return m.MatchParam(kind, ternary=m.Ternary(value, encode(second, field.bits)))


def decode_data(action: Action, data: Sequence[bytes]) -> tuple[int, ...]:
    """Return the arguments of an action; BAD_ACTION_DATA where they do not fit."""
    if len(data) != len(action.parameter_bits):
        raise m.Refusal(TableError.BAD_ACTION_DATA)

    values = tuple(int.from_bytes(value, "big") for value in data)
    if any(value >> bits for value, bits in zip(values, action.parameter_bits, strict=True)):
        raise m.Refusal(TableError.BAD_ACTION_DATA)

    return values


def encode_data(action: Action, values: Sequence[int]) -> list[bytes]:
    """Return the arguments of an action, each in whole bytes."""
    pairs = zip(values, action.parameter_bits, strict=True)
    return [encode(value, bits) for value, bits in pairs]


def encode(value: int, bits: int) -> bytes:
    """Return a value of so many bits in whole bytes."""
    return value.to_bytes(-(-bits // 8), "big")


def flipped(priority: int) -> int:
    """Return the priority here for a priority of the runtime API, and the other way round."""
    if not 0 <= priority <= MOST_PRIORITY:
        raise m.Refusal(TableError.ERROR)

    return MOST_PRIORITY - priority


def _key_number(data: bytes, bits: int) -> int:
    value = int.from_bytes(data, "big")
    # BMv2 compares bytes: a key of another length would never match.
    if len(data) != -(-bits // 8) or value >> bits:
        raise _bad_key()

    return value


def _bad_key() -> m.Refusal:
    return m.Refusal(TableError.BAD_MATCH_KEY)
