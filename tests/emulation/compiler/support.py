"""docs/p4-support.md, made of the language cases: `make support` writes it, a test compares it.

The first line of every program in `cases/` and `cases/errors/` is `// AREA: feature`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from ofan_p4.softswitch.native.translate import unsupported

FOLDER = Path(__file__).parent / "cases"
PAGE = Path(__file__).parents[3] / "docs" / "p4-support.md"
AREAS = (
    "Types",
    "Expressions",
    "Statements",
    "Parsers",
    "Tables",
    "Controls",
    "Architecture",
    "Annotations",
    "Preprocessor",
)

# The page has longer lines than the source: a backslash joins two of them.
HEAD = """# What of P4 is supported

P4_16 for the v1model architecture, with BMv2's semantics. Every row is a test: \
a supported feature is a program with packets
that must come out exactly (`tests/emulation/compiler/cases/`), \
a refused one a program for which the compiler must name the line
and the reason (`cases/errors/`). What is not supported is an error at compile time, \
never a wrong packet. This page is made of
the first lines of those programs (`make support`).

Run them with `ofan p4 stf tests/emulation/compiler/cases`; \
`ofan p4 stf DIR` runs any folder of programs with scripts in the
STF format of p4c's own suite, and `ofan p4 stf --help` says more.

{supported} features supported, {refused} refused.
"""

UNTRANSLATED = """## What has no machine code

The switch's generator makes nodes of a program \
(`nodes.py`, `packet_nodes.py` and `statements.py` of `p4tools/ofan_p4/softswitch/codegen/`).
The Python engine has a rule for each of them. \
Machine code has none for these nodes, and takes others up to a limit (in capitals): a program
beyond it runs in Python, and `--engine native` refuses it under this name. \
The table is made of nodes, rules and limits.

| node or limit | what it is |
|---|---|"""

# Measured by hand too: BMv2 is built from its source outside the project.
BESIDE = """## Beside BMv2 and p4c

BMv2's `simple_switch` 1.15.5 (9674187f) on Debian 12, unmodified but where the table says that it clears headers (there it checks where a lookahead ends, too); the samples of p4c and what it publishes of its own output for them
(34b86e9b, 1.2.5.16). Every program gets its script's entries and four random ones for every table, on both switches the same; then the
script's packets, walks through its parser with values of its entries, damaged and cut ones, and noise.

| what is compared | programs | packets | equal | different |
|---|---|---|---|---|
| our JSON: machine code and Python | 595 | 179,348 | 595 | none |
| our JSON: our switch and BMv2 (156 language cases, 439 of p4c's samples, 13 of the repository) | 608 | 608,848 | 574 | 34, below |
| the same, other packets, BMv2's headers cleared between packets | 604 | 604,845 | 594 | 9 of those below; \
one has nested loops that BMv2 had not finished in time (a packet alone is equal) |
| the seven programs of `p4src` with a controller's entries: our switch and BMv2 | 7 | 70,000 | 7 | none; where the uplink \
is chosen freely (`adaptive`, `ofan_jsq_start`, `round_robin`), both uplinks count as one |
| language cases on BMv2 (`test_cases_on_bmv2.py`) | 157 | their scripts | 149 | none; 8 skipped, which BMv2's command line cannot do \
or which draw random numbers |
| our P4Info and p4c's | 436 | - | 428 | 8: p4c leaves out actions and a register that nothing needs, or leaves one in |
| the seven programs of `p4src` as edge, agg and core, p4c's JSON and ours on our switch (`test_against_p4c.py`) | 7 | 210,000 | 7 | none |
| language cases compiled by p4c, on our switch (the same test) | 168 | their scripts | 130 | none; 38 skipped, which p4c refuses or compiles otherwise: the test names each reason |
| p4c's JSON and ours, on our switch | 116 | 17,588 | 112 | 4, which p4c compiles otherwise: a loop in a `switch` runs once, a slice that an extern writes is lost, `NoMatch` is accepted, elements beyond the end |
| p4c's JSON: our switch (machine code and Python, equal) and BMv2 | 116 | 17,588 | 111 | 5, below |
| p4c's middle end and ours, from p4c's published output, on our switch | 438 | 131,886 | 430 | 8, which read what has no \
value: `out` arguments, variables, elements beyond the end |

p4c-bm2-ss 1.2.5.16 was built for Debian 12 with two small patches for its protobuf. Its JSON went through both switches for 78 of p4c's samples and 35 language cases, by lot
for want of time, and three programs of `p4src` without entries, with 150 packets each beside their scripts'. p4c refused ten more; our switch refused one, `unions_in_stacks`, where p4c names a header by an expression.
It showed two faults of ours, now mended: a copy of `standard_metadata` handed on to `mark_to_drop`, and the number of `NoError` in programs whose own errors come first (the four programs that had them were run again, beside BMv2 with cleared headers). Of the five that differ
from BMv2, two have what another packet left in headers (equal where BMv2's are cleared); in two, BMv2 ends at an element beyond the end of a stack (`stack_last_index`, `runtime-index-2-bmv2`); and a negative number
that p4c's JSON reads back from a register is positive there (`registers`).

| BMv2 | our switch | programs |
|---|---|---|
| a header that is not valid keeps what another packet left in its place, and so do elements beyond the end of a stack; keys of \
tables alone have 0 there | 0; keys too | 24 |
| ingress of the next packets runs while egress still works: registers that both use hold older values. Equal where packets come \
20 ms apart | in the bench, one packet after the other | 3 |
| random numbers, and meters that depend on time | from the bench | 3 |
| varbits of different lengths are equal if their numbers are; where one that is empty is copied and a packet before had \
left more there, the switch ends (SIGFPE) | lengths count; the packet goes on | 2 |
| a failed `assert` or `assume` ends the switch | the packet goes on | 1 |
| a loop without an end: the switch hangs | left after 16,777,216 steps (23 ms, in Python 0.8 s) | 1 |

Also met there: BMv2 drops packets whose `priority` it has no queue for (one queue unless `--priority-queues` says more); a `log_msg` whose
text begins with `{}` ends it. Prefixes that are no whole bytes: [BMv2's own faults](bmv2.md#its-own-faults).

Random programs (`tests/language/test_beside_p4c.py`) and the cases of calls showed faults of p4c 1.2.5.16, where the specification is clear:

| p4c | the specification, and our compiler |
|---|---|
| `exit` in a control or action forgets the results for `out` and `inout` arguments that are slices or overlap (`exits_copy_out`) | they are copied out first |
| `a += f(a)`, where `f` changes `a`: the left side is read behind the call (`compound_assignments_in_order`) | it is the old value, as in `a = a + f(a)`, which p4c compiles rightly |
| the index of a sliced left value is read when the call is over: `f(h.s[i].c[7:0], h.s[g(i)].c[7:0])` writes both to one element (`calls_indexes_once`) | it is read before the next argument |
| a header that is assigned a list of its own fields, `h.a = { h.a.isValid() ? h.a.b : 0, 1 }` in a union or an action, becomes invalid: the temporary header of the list is never made valid | it becomes valid |
| ranges with a negative bound are refused (`ranges_across_zero`) | they are taken |
| a cast of a cast that changes sign and width, `(int<33>) (int<8>) b`, becomes one cast, which is refused | both are taken |
| a constant key of a `select` becomes a key that BMv2's parsers do not have | the case is chosen at run time |
"""  # noqa: E501 (a row of a table is one line)

# Measured by hand: the programs are other people's, and not ours to keep.
PUBLIC = """## Public programs

Unmodified, at the commits named; loaded: our compiler's pair of JSON and P4Info, pushed to our switch.

| repository | commit | compiled | loaded | packets end to end |
|---|---|---|---|---|
| p4lang/tutorials | dc1b049b | 25 of 26 (one skeleton lacks a field, \
as its exercise says) | 25 | all 13 exercises with a solution, by their own Makefiles and controllers in Mininet; \
`ecn` marks and `mri` shows queues of up to 63 packets at the busy link |
| sonic-net/sonic-pins | b08b0680 | 34 of 35 (one wants another build's include path) | 34 | middleblock, \
fabric_border_router and tor route by strings and by numbers; wbb has no routes. P4Info as published \
but for blank lines and initial default actions |
| opennetworkinglab/onos | dd5172e5 | 9 of 9 (fabric in 6 profiles, with INT, basic, int, mytunnel) | 9 | fabric: bridging, \
broadcast, routing over groups with MPLS, an MPLS label popped, VLAN tags pushed, what is to be dropped (25 packets, entries through \
`simple_switch_CLI`) |
| stratum/fabric-tna (v1model) | fd3c3f09 | 5 of 5 profiles, with INT and UPF | 5 | - |
| nsg-ethz/p4-learning | 0ddba187 | 82 of 93 | 82 | all scripts for `simple_switch_CLI` of the 31 exercises and examples \
that compile and have some (348 lines); packets through ten of them with their own scripts: ip_forwarding, ecmp, ternary_match, \
verify_checksum, l2_basic_forwarding, stateful_firewall, mpls_basics, copy_to_cpu, resubmit, heavy_hitter (the 1,001st is dropped) |
| jafingerhut/p4-guide | 23854a7f | 138 of 221 | 135 (3 match strings by ternary) | demo1 (both) and v1model-special-ops (resubmit, recirculate, both clones, \
multicast) with the entries of their READMEs |
| p4lang/p4c, v1model samples | 34b86e9b | 463 of 496 | 463 | 203 of its STF cases pass, none fails |

All of these packets came out as the programs and their READMEs say, byte by byte. p4c's negative cases (`testdata/p4_16_errors`,
584): all are refused but one, whose `switch` in an action BMv2's back end cannot do and ours can. 460 of the 553 for which p4c
names a line are refused at this line, 93 at another: mostly at the case of a `select` or the argument that does not fit, where p4c
names the whole statement or package; 12 are refused for their `main`, which is not a V1Switch, before what p4c finds.

## What of public programs is refused, and why

| repository | programs | why |
|---|---|---|
| p4-learning | 10 | skeletons that the exercise asks to complete |
| p4-learning | 1 | `qid` of `standard_metadata`, for which p4c and BMv2 must be changed |
| p4-guide | 30 | other architectures: PSA (18), PNA (8), TNA (3), one of its own |
| p4-guide | 16 | proposals for the language or p4c: vectors, namespaces, controls as run-time parameters, registers of tables, kinds of resubmit |
| p4-guide | 11 | wrong on purpose, and refused by p4c |
| p4-guide | 7 | parts that other files include |
| p4-guide | 5 | included files that are generated, or not there |
| p4-guide | 5 | `bit<0>` |
| p4-guide | 4 | what p4c's middle end writes: calls in run-time loops as tables |
| p4-guide | 2 | externs of their own (`--emit-externs` compiles them) |
| p4-guide | 1 | a v1model of 2017 (`clone_spec`) |
| p4-guide | 1 | a control with tables that is applied twice |
| p4-guide | 1 | the result of an extern written to several fields |
| tutorials, sonic-pins | 2 | a skeleton; another build's include path |
"""  # noqa: E501 (a row of a table is one line)


def rows(paths: Iterable[Path]) -> dict[str, list[tuple[str, str]]]:
    """Return (feature, name of the case) by area."""
    features: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for path in sorted(paths, key=lambda path: path.stem):
        area, _, feature = (
            path.read_text(encoding="utf-8").split("\n", 1)[0].removeprefix("// ").partition(": ")
        )
        features[area].append((feature, path.stem))

    return features


def reason(name: str) -> str:
    """Return the diagnostic that a refused program expects."""
    program = FOLDER / "errors" / f"{name}.p4"
    return next(
        line.partition("// error: ")[2]
        for line in program.read_text(encoding="utf-8").splitlines()
        if "// error: " in line
    )


def page() -> str:
    """Return the page as it must be."""
    supported = rows(FOLDER.glob("*.p4"))
    refused = rows((FOLDER / "errors").glob("*.p4"))
    counts = {
        "supported": sum(map(len, supported.values())),
        "refused": sum(map(len, refused.values())),
    }
    lines = [HEAD.format(**counts)]

    for area in AREAS:
        lines += [f"## {area}\n", "| feature | | case or diagnostic |", "|---|---|---|"]
        lines += [
            f"| {_escaped(feature)} | supported | `{name}` |"
            for feature, name in supported.get(area, [])
        ]
        lines += [
            f"| {_escaped(feature)} | refused | {_escaped(reason(name))} |"
            for feature, name in refused.get(area, [])
        ]
        lines.append("")

    untranslated = [f"| `{name}` | {_escaped(meaning)} |" for name, meaning in unsupported()]

    return "\n".join([*lines, UNTRANSLATED, *untranslated, "", BESIDE, PUBLIC])


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
