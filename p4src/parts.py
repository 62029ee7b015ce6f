"""The parts that a program with our includes must have, and the hooks that it may have."""

import re
from collections.abc import Collection

# The parts of a user's program (docs/your-own-load-balancer.md), and the purpose of each.
PARTS = {
    r'#\s*include\s*[<"]fabric\.p4[>"]': 'lacks #include "fabric.p4": headers and metadata',
    r"\bcontrol\s+LoadBalancer\b": "has no control LoadBalancer, which chooses the port",
    r'#\s*include\s*[<"]switch\.p4[>"]': 'lacks #include "switch.p4" at its end: all the rest',
}
# The hooks of programs with a header between edges: the macro that announces a control, and the
# control's purpose.
HOOKS = {
    "EDGE_HEADER": ("Feedback", "reads the header at the destination's edge"),
    "EACH_LINK": ("EachLink", "changes the header at each switch before that"),
    "PROBE_INTERVAL_US": ("Probe", "takes probes at their destination's edge"),
}
# The names that exist where a macro is defined.
NAMES = {
    "EDGE_HEADER": "edge_header|edge|source_edge|destination_edge",
    "PROBE_INTERVAL_US": "is_probe|is_answer|answers",
}


def without_comments(source: str) -> str:
    """Return a program's text without its comments."""
    return re.sub(r"//[^\n]*|/\*.*?\*/", " ", source, flags=re.DOTALL)


def is_whole(source: str) -> bool:
    """Return whether a text without comments instantiates a switch, without parts of ours."""
    return bool(re.search(r"\bV1Switch\b", source))


def lacking_part(source: str, macros: Collection[str] = ()) -> str:
    """Return the part that a text without comments lacks, empty where it has all.

    `macros` are those of the command line.
    """
    for macro, (control, purpose) in HOOKS.items():
        is_announced = macro in macros or _defines(macro, source)
        if is_announced and not _declares(control, source):
            return f"defines {macro}, but has no control {control}, which {purpose}"

    return next((problem for part, problem in PARTS.items() if not re.search(part, source)), "")


def idle_hook(source: str, macros: set[str]) -> str:
    """Return the hook that a text without comments does not announce, empty without such a hook.

    `macros` are those of the command line.
    """
    for macro, (control, purpose) in HOOKS.items():
        # A program may have a control of that name for itself: it applies an instance of it.
        is_applied = re.search(rf"\b{control}\s*\(\s*\)\s*\w+\s*;", source)
        is_announced = macro in macros or _defines(macro, source)
        if _declares(control, source) and not (is_applied or is_announced):
            return (
                f"has a control {control}, which {purpose}, but no {macro}:"
                f' write #define {macro} before #include "fabric.p4"'
            )

    return ""


def undefined_macro(source: str, macros: set[str]) -> str:
    """Return the macro that a text without comments needs for a name, empty where none is missing.

    `macros` are those of the command line.
    """
    for macro, names in NAMES.items():
        used = re.search(rf"\.\s*({names})\b", source)
        if used and macro not in macros and not _defines(macro, source):
            return (
                f"uses {used[1]}, which exists with {macro} alone:"
                f' write #define {macro} before #include "fabric.p4"'
            )

    return ""


def moves_header(source: str) -> bool:
    """Return whether a text without comments puts on or takes off the header between edges."""
    return bool(re.search(r"\bedge_header\s*\.\s*set(Inv|V)alid\b", source))


def _defines(macro: str, source: str) -> bool:
    return bool(re.search(rf"^\s*#\s*define\s+{macro}\b", source, re.MULTILINE))


def _declares(control: str, source: str) -> bool:
    return bool(re.search(rf"\bcontrol\s+{control}\b", source))
