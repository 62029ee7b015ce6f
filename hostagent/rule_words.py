"""The vocabulary of host rules: names, operators, and the helpers that replace operators."""

import ast
from collections.abc import Callable, Mapping

from hostagent.transports import labels
from hostagent.transports.state import SENDER, Rules

NEXT_LABEL = "next_label"
ON_ACK = "on_ack"
SIGNATURES = {
    NEXT_LABEL: ("state", "sender", "rules", "packets", "now_ps"),
    ON_ACK: ("state", "sender", "rules", "label", "marked", "now_ps"),
}
# A record has the same name everywhere, so that its name shows its kind.
RECORDS = ("state", "sender", "rules", "packets")
READABLE: Mapping[str, tuple[str, ...]] = {
    "sender": tuple(name for name, kind in (SENDER.fields or {}).items() if not kind[0].shape),
    "rules": Rules._fields,
}
IMPORTS: Mapping[str, tuple[str, ...]] = {
    "__future__": ("annotations",),
    "dataclasses": ("dataclass", "field"),
    "hostagent.transports.labels": ("expire", "random_label"),
}
# Our functions that a rule may call: the records that they take, and the count of numbers behind.
TOOLS: Mapping[str, tuple[Callable[..., int], tuple[str, ...], int]] = {
    "expire": (labels.expire, ("sender", "rules", "packets"), 1),
    "random_label": (labels.random_label, ("sender", "rules"), 0),
}
BUILTINS = ("abs", "bool", "int", "len", "max", "min", "range")

MOST_CELLS = 1024
LARGEST = 2**63 - 1

# Operators become calls, as the machine's arithmetic is not Python's.
HELPERS: Mapping[type[ast.AST], str] = {
    ast.Add: "_add",
    ast.Sub: "_sub",
    ast.Mult: "_mul",
    ast.FloorDiv: "_div",
    ast.Mod: "_mod",
    ast.LShift: "_shl",
    ast.RShift: "_shr",
    ast.USub: "_neg",
    ast.UAdd: "_int",
    ast.Invert: "_inv",
}
# These map 64 bits to 64 bits in both.
SAFE = (ast.BitAnd, ast.BitOr, ast.BitXor)
COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
ADVICE: Mapping[type[ast.AST], str] = {
    ast.Div: "numbers are integers: use // instead of /",
    ast.Pow: "there is no **: use * or <<",
    ast.While: "loops are `for ... in range(...)`",
}
WORDS = "a rule is made of integers, names, arithmetic, comparisons, if, for, return and functions"
IMPORTABLE = (
    "a rule imports dataclass and field from dataclasses, random_label and expire from"
    " hostagent.transports.labels, and nothing else"
)

# A state's fields: a number, or a list's numbers.
State = dict[str, int | tuple[int, ...]]
