"""The judge itself on known results: examples of the specification, and of hashes' definitions."""

from __future__ import annotations

import pytest

from tests.language import tree as n
from tests.language.evaluating import Evaluator
from tests.language.hashing import hashed
from tests.language.operators import overwrite
from tests.language.reading import Reader, read
from tests.language.scopes import Place, Scope
from tests.language.values import UNDEFINED, Header, Num

CHECK = b"123456789"


def evaluated(text: str, **variables: Num) -> object:
    scope = Scope(None)
    for name, value in variables.items():
        assert value.width is not None
        scope.declare(name, n.Bits(value.width, value.signed), value)

    return Evaluator(n.Program({}, [])).value(Reader(text).expression(), scope)


X = Num(0xF5, 8)
S = Num(-3, 8, True)


@pytest.mark.parametrize(
    ("text", "right"),
    [
        # "Operations on fixed-width bit types"
        ("x + x", Num(0xEA, 8)),
        ("x |+| x", Num(0xFF, 8)),
        ("8w3 |-| x", Num(0, 8)),
        ("-x", Num(0x0B, 8)),
        ("~x", Num(0x0A, 8)),
        ("x << 4", Num(0x50, 8)),
        ("x << 9", Num(0, 8)),
        ("x[7:4] ++ x[3:0]", Num(0xF5, 8)),
        ("(bit<16>) x ++ 8w1", Num(0xF501, 24)),
        # "Operations on fixed-width signed integers"
        ("s >> 1", Num(-2, 8, True)),
        ("s >> 200", Num(-1, 8, True)),
        ("s * s", Num(9, 8, True)),
        ("s |-| 8s127", Num(-128, 8, True)),
        ("s[7:0]", Num(0xFD, 8)),
        ("s ++ 8s1", Num(-767, 16, True)),
        # "Casts"
        ("(int<16>) s", Num(-3, 16, True)),
        ("(bit<8>) s", Num(0xFD, 8)),
        ("(int<4>) 4w9", Num(-7, 4, True)),
        ("(bit<4>) x", Num(5, 4)),
        ("(bit<1>) true", Num(1, 1)),
        # Precedence: `&` binds tighter than `==`, `+` tighter than `<<`, a slice than a cast.
        ("x & 8w1 == 8w1", True),
        ("x << 1 + 1", Num(0xD4, 8)),
        ("(bit<8>) x[3:0]", Num(5, 8)),
        ("x == 8w0 || x > 8w3 && true", True),
        ("8w10 - 8w3 - 8w2", Num(5, 8)),
        ("true ? false ? 8w1 : 8w2 : 8w3", Num(2, 8)),
    ],
)
def test_expressions(text: str, right: object) -> None:
    assert evaluated(text, x=X, s=S) == right


@pytest.mark.parametrize(
    ("algorithm", "check"), [("crc32", 0xCBF43926), ("crc16", 0xBB3D), ("csum16", 0xF62A)]
)
def test_hashes_of_the_digits(algorithm: str, check: int) -> None:
    # The first two are the check values of the catalogue of CRCs. The sum of the words of "1234"
    # to "8" and "9\\0" is 0x3132 + 0x3334 + 0x3536 + 0x3738 + 0x3900 = 0x109d4, folded 0x09d5.
    assert hashed(algorithm, CHECK) == check


def test_numbers_are_read_as_the_specification_writes_them() -> None:
    assert Reader("8s0b1010_1010").expression() == n.Number(-86, 8, True)
    assert Reader("32w0xFF_00").expression() == n.Number(0xFF00, 32)
    assert Reader("0x1f").expression() == n.Number(31)


def test_a_place_stays_one_while_its_header_becomes_another() -> None:
    # "Calling convention": an argument's left-value is found before the call, and written after it.
    kind = n.Struct("header", "one_t", (("bits", n.Bits(8)),))
    target, source = Header(kind, {"bits": UNDEFINED}), Header(kind, {"bits": Num(7, 8)}, True)
    lvalue = Place(target.fields, "bits", n.Bits(8), target)

    overwrite(target, source)
    lvalue.set(Num(9, 8))

    assert target.fields == {"bits": Num(9, 8)}
    assert source.fields == {"bits": Num(7, 8)}


def test_what_the_judge_does_not_know_it_says() -> None:
    with pytest.raises(ValueError, match="no type"):
        read("control C(in mystery_t x) { apply {} }")
