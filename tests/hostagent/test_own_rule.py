"""A user's host rules: the language, its meaning, and refused lines."""

import random
from types import SimpleNamespace

import pytest

from fattree.errors import ExperimentError
from fattree.experiment.model import Scenario
from hostagent.own_rule import OwnRule, own_rule
from hostagent.rules import rules
from hostagent.transports.state import SENDER, blank

HEAD = """\
from dataclasses import dataclass, field
from hostagent.transports.labels import expire, random_label
"""
CHOOSE = "def next_label(state, sender, rules, packets, now_ps):\n"
LEARN = "def on_ack(state, sender, rules, label, marked, now_ps):\n"
STATE = "@dataclass\nclass State:\n"
LISTS = "field(default_factory=lambda: [0] * 4)"


def rule(
    choose: str = "return 7", learn: str = "pass", fields: str = "", above: str = ""
) -> OwnRule:
    state = f"{STATE}    {fields}\n" if fields else ""
    text = f"{HEAD}{state}{above}\n{CHOOSE}    {choose}\n{LEARN}    {learn}\n"
    return own_rule(text, "mine.py")


def chosen(host_rule: OwnRule, state: SimpleNamespace | None = None, now_ps: int = 0) -> int:
    scenario = rules(Scenario())
    return host_rule.next_label(state or host_rule.fresh(), blank(SENDER), scenario, [], now_ps)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("7", 7),
        ("1 << 62 << 1 < 0", 1),
        ("(1 << 64) + (1 << -1) + (5 >> -1)", 0),
        ("-1 >> 200", 0xFFFF),
        ("7 // 0 + 7 % 0", 0),
        ("-7 // 2 + 7 % -3", 0xFFFF - 5),
        ("(9223372036854775807 + 1) < 0", 1),
        ("abs(-9223372036854775807 - 1) < 0", 1),
        ("9223372036854775807 * 3 == 9223372036854775805", 1),
        ("~True & 255", 254),
        ("min(3, True, 2) + max(0, 1) + int(True) + bool(9)", 4),
        ("now_ps if now_ps > 5 else 3", 3),
        ("0x12345", 0x2345),
    ],
)
def test_integers_have_64_bits_and_labels_16(text: str, label: int) -> None:
    assert chosen(rule(f"return {text}")) == label


def test_indices_of_a_list_wrap_around() -> None:
    host_rule = rule(
        "state.cells[-1] = 5; state.cells[6] += 2; return state.cells[3] * 16 + state.cells[2]",
        fields=f"cells: list[int] = {LISTS}",
    )
    state = host_rule.fresh()
    assert chosen(host_rule, state) == 5 * 16 + 2
    assert state.cells == [0, 0, 2, 5]


def test_every_flow_has_a_list_of_its_own() -> None:
    host_rule = rule("state.cells[0] += 1; return 0", fields=f"cells: list[int] = {LISTS}")
    first, second = host_rule.fresh(), host_rule.fresh()
    chosen(host_rule, first)
    assert (first.cells[0], second.cells[0]) == (1, 0)


def test_an_index_that_draws_draws_once() -> None:
    host_rule = rule(
        "state.cells[random_label(sender, rules)] += 1; return sender.draws",
        fields=f"cells: list[int] = {LISTS}",
    )
    assert chosen(host_rule) == 1


def test_what_a_way_leaves_out_is_zero() -> None:
    host_rule = rule("if now_ps > 5:\n        late = 9\n    return late")
    assert (chosen(host_rule, now_ps=9), chosen(host_rule)) == (9, 0)


def test_functions_call_those_above_them() -> None:
    above = "LIMIT = 3 << 2\ndef twice(state, number):\n    return number * 2 + state.more\n"
    assert chosen(rule("return twice(state, LIMIT)", fields="more: int = 1", above=above)) == 25


def test_a_rule_reads_what_the_transport_knows() -> None:
    host_rule = rule("return (sender.acked + rules.plb_acks) & 255")
    sender = blank(SENDER)
    sender.acked = 5
    assert host_rule.next_label(host_rule.fresh(), sender, rules(Scenario()), [], 0) == 15


@pytest.mark.parametrize(
    ("choose", "complaint"),
    [
        ("return 1.5", "mine.py:5: 1.5: the numbers of a rule are integers"),
        ("return 'a'", "mine.py:5: 'a': the numbers of a rule are integers"),
        ("return now_ps / 2", "mine.py:5: `now_ps / 2`: numbers are integers: use // instead of /"),
        ("return 2 ** 3", "mine.py:5: `2 ** 3`: there is no **: use * or <<"),
        ("return 9223372036854775808", "mine.py:5: 9223372036854775808 does not fit into 64 bits"),
        ("return lable", "mine.py:5: nothing is called lable"),
        ("x = now_ps", "mine.py:4: next_label: it must return a number on every way through it"),
        ("return", "mine.py:4: next_label: it must return a number on every way through it"),
        ("if now_ps: return\n    return 1", "mine.py:4: next_label: it must return a number on"),
        ("if now_ps: return 1", "mine.py:4: next_label: it must return a number on every way"),
        ("return sender.aked", "mine.py:5: sender has no field aked (did you mean acked?)"),
        ("return sender.ring[0]", "mine.py:5: `sender.ring` is no list: fields of the state"),
        ("return sender.ring", "mine.py:5: sender has no field ring"),
        ("return state.seen", "mine.py:5: state has no field seen"),
        ("return rules.__class__", "mine.py:5: rules has no field __class__"),
        ("return packets", "mine.py:5: packets is not a number: use its fields"),
        ("return packets[0].label", "mine.py:5: packets[0].label: only state, sender and rules"),
        ("sender.label = 3; return 0", "mine.py:5: sender.label: sender is to be read; keep it in"),
        ("sender = 3; return 0", "mine.py:5: sender means something already"),
        ("_a = 3; return 0", "mine.py:5: _a: names do not begin with an underscore"),
        ("min = 3; return 0", "mine.py:5: min means something already"),
        ("a, b = 1, 2; return a", "mine.py:5: `(1, 2)`: a rule is made of integers"),
        ("a = b = 1; return a", "mine.py:5: `a = b = 1`: one name or field takes one number"),
        ("return open(3)", "mine.py:5: open is not among abs, bool, expire, int"),
        (
            "return next_label(state, sender, rules, packets, 0)",
            "mine.py:5: next_label is not among",
        ),
        ("return (lambda: 3)()", "mine.py:5: `(lambda: 3)()`: functions are called by name"),
        ("return random_label(rules, sender)", "mine.py:5: `rules` stands where sender must"),
        (
            "return random_label(sender)",
            "mine.py:5: `random_label(sender)`: it takes (sender, rules",
        ),
        ("return expire(sender, rules, packets)", "it takes (sender, rules, packets, a number)"),
        ("return len(now_ps)", "mine.py:5: `now_ps` is no list: fields of the state can be lists"),
        ("return now_ps in (1, 2)", "mine.py:5: `now_ps in (1, 2)`: a rule is made of"),
        ("while True: pass", "mine.py:5: `while True:`: loops are `for ... in"),
        ("if now_ps: return 1", "mine.py:4: next_label: it must return a number"),
        ("while now_ps: break\n    return 1", "mine.py:5: `while now_ps:`: loops are `for ... in"),
        (
            "for i in (1, 2): pass\n    return 1",
            "mine.py:5: `for i in (1, 2):`: loops are `for name",
        ),
        ("for i in range(3, 0, -1): pass\n    return 1", "with no step"),
        ("import os; return 1", "mine.py:5: `import os`: a rule is made of"),
        ("return [1][0]", "mine.py:5: `[1]` is no list: fields of the state can be lists"),
        ("return f'{now_ps}'", "mine.py:5: `f'{now_ps}'`: a rule is made of"),
        ("return 1 +", "mine.py:5: not Python: "),
        ("break", "mine.py:5: not Python: "),
        ("return " + "(" * 300 + "1" + ")" * 300, "mine.py"),
        ("return " + "-" * 5000 + "1", "mine.py: nested too deeply"),
    ],
)
def test_what_is_not_of_the_language_is_refused_with_its_line(choose: str, complaint: str) -> None:
    with pytest.raises(ExperimentError) as refused:
        rule(choose)
    assert complaint in str(refused.value)


@pytest.mark.parametrize(
    "count",
    [
        "len(state.cells)",
        "min(sender.sent, 64)",
        "sender.sent % 64",
        "-3, sender.sent & 63",
        "(64 if sender.sent else 3) // 2 + MORE",
        "min(max(sender.acked, sender.sent), abs(sender.sent), 1 << 3, 99)",
        "(sender.sent > 3) * 7 + bool(sender.sent)",
        "sender.sent % -4, 5",
    ],
)
def test_loops_that_end_run(count: str) -> None:
    fields = f"cells: list[int] = {LISTS}"
    loop = f"for i in range({count}): state.cells[0] += 1\n    return state.cells[0]"
    chosen(rule(loop, fields=fields, above="MORE = 3"))


@pytest.mark.parametrize(
    ("loop", "rounds"),
    [
        ("range(sender.sent)", 2**63 - 1),
        ("range(1 << 62)", 2**63 - 1),
        ("range(100001)", 100_001),
        ("range(5, now_ps + 1)", 2**63 - 6),
        ("range(min(sender.sent, 10) - sender.acked)", 2**63 - 1),
        ("range(max(sender.sent, 3) % now_ps)", 2**63 - 2),
        ("range(64): many(3)", 64 * 2002),
        ("range(64 if now_ps else 99_999 * 2)", 99_999 * 2),
    ],
)
def test_a_loop_without_an_end_is_refused(loop: str, rounds: int) -> None:
    above = "def many(a):\n    for i in range(2000): a += i\n"
    body = loop if ": " in loop else f"{loop}: pass"
    with pytest.raises(ExperimentError) as refused:
        rule(f"for i in {body}\n    return 1", above=above)
    head = loop.partition(": ")[0][:20]
    assert str(refused.value).startswith(f"mine.py:7: `for i in {head}")
    assert f"with it next_label may take {rounds:,} rounds" in str(refused.value)


def test_loops_within_loops_are_multiplied() -> None:
    inner = "        for j in range(400): state.count += 1\n"
    assert chosen(rule(f"for i in range(200):\n{inner}    return 1", fields="count: int = 0")) == 1
    with pytest.raises(
        ExperimentError, match=r"mine.py:8: `for i in range\(300\):`.* 120,300 rounds"
    ):
        rule(f"for i in range(300):\n{inner}    return 1", fields="count: int = 0")


def test_functions_that_call_twice_each_are_counted_as_often() -> None:
    above = "def f0(a):\n    return a\n"
    for n in range(1, 30):
        above += f"def f{n}(a):\n    return f{n - 1}(a) + f{n - 1}(a)\n"

    with pytest.raises(ExperimentError, match=r"return f15\(a\).*f16 may take 131,070 rounds"):
        rule("return f29(1)", above=above)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "mine.py: there is no function next_label(state, sender, rules, packets, now_ps)"),
        (
            f"{CHOOSE} return 1\ndef on_acks(): pass\n",
            "no function on_ack(state, sender, rules, label",
        ),
        (
            "def next_label(sender): return 1\n",
            "mine.py:1: next_label(sender): it must be next_label(",
        ),
        (
            "def next_label(*all): return 1\n",
            "mine.py:1: next_label: a function has plain parameters",
        ),
        ("import os\n", "mine.py:1: `import os`: a rule imports dataclass and field"),
        ("from os import path\n", "mine.py:1: `from os import path`: a rule imports"),
        ("from dataclasses import dataclass as d\n", "a rule imports dataclass"),
        (
            "from hostagent.transports.labels import *\n",
            "`from hostagent.transports.labels import *`: a rule imports",
        ),
        ("print(1)\n", "mine.py:1: `print(1)`: outside functions there are imports, constants"),
        (
            f"{STATE} a: float = 0\n",
            "mine.py:3: `a: float = 0`: fields are integers with a default",
        ),
        (
            f"{STATE} a: int\n",
            "mine.py:3: `a: int`: fields are integers with a default (`a: int = 0`)",
        ),
        (f"{STATE} a: int = 0.5\n", "mine.py:3: 0.5: the numbers of a rule are integers"),
        (f"{STATE} a: int = 0\n a: int = 0\n", "mine.py:4: a: a name of its own"),
        (f"{STATE} a: list[int] = list(4)\n", "mine.py:3: a: write it as `field(default_factory="),
        (
            f"{STATE} a: list[int] = field(default_factory=lambda: [0] * 9999)\n",
            "1 to 1024 numbers",
        ),
        (f"{STATE} def f(self): pass\n", "mine.py:3: `def f(self):`: fields are as in `seen"),
        ("class State:\n a: int = 0\n", "mine.py:1: State: the state is a class with @dataclass"),
        (
            f"{STATE} a: int = 0\n{STATE.replace('State', 'More')} b: int = 0\n",
            "the state is State",
        ),
        ("LIMIT = [1]\n", "mine.py:1: `[1]`: a rule is made of integers"),
        ("a = 1\na = 2\n", "mine.py:2: a means something already"),
        (
            "def best(state):\n return 1\ndef best(state):\n return 2\n",
            "best means something already",
        ),
        ("\0", "mine.py:1: not Python: there is a zero byte"),
        ("LIMIT = 1\n\nLIMIT\0 = 2\n", "mine.py:3: not Python: there is a zero byte"),
    ],
)
def test_what_a_file_lacks_is_said_with_its_line(text: str, complaint: str) -> None:
    with pytest.raises(ExperimentError) as refused:
        own_rule(text, "mine.py")
    assert complaint in str(refused.value)


def test_damaged_rules_are_refused_in_one_line_or_run() -> None:
    """Whatever a slip of the finger makes of a rule, no other error comes out."""
    text = f"""{HEAD}
LIMIT = 3
{STATE}    seen: int = 0
    cells: list[int] = {LISTS}
def best(state, step):
    return state.cells[step] % LIMIT
{CHOOSE}    for step in range(len(state.cells)):
        if best(state, step) > 2 or expire(sender, rules, packets, now_ps):
            state.cells[step] += random_label(sender, rules)
    return state.seen
{LEARN}    state.seen = -1 if marked else label
"""
    draw = random.Random(1)
    letters = "()[]:=+-*/%<>., \n\0_019ax\"'@"
    accepted = 0
    for _ in range(1500):
        damaged = list(text)
        index = draw.randrange(len(damaged))
        damaged[index : index + draw.randint(0, 2)] = draw.choice(letters)
        try:
            host_rule = own_rule("".join(damaged), "mine.py")
        except ExperimentError as error:
            assert str(error).startswith("mine.py") and "\n" not in str(error)
        else:
            accepted += 1
            scenario = rules(Scenario())
            state, sender = host_rule.fresh(), blank(SENDER)
            assert 0 <= host_rule.next_label(state, sender, scenario, [], 5) < 1 << 16
            host_rule.on_ack(state, sender, scenario, 9, True, 5)
    assert accepted > 20
