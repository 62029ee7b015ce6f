"""Counts of one module's vague words.

A *room* is a folder. These are counted:

    names      bindings of a name that could stand for anything (`found`, `place`, `each`)
    what       clauses that describe a thing instead of naming it
    says       verbs of speech, of things that cannot speak
    who        pronouns of people, of things
    one        a pronoun in place of a noun
    openings   docstrings that begin with a question word
"""

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

KINDS = ("names", "what", "says", "who", "one", "openings")
VAGUE = frozenset(
    (
        "at",
        "each",
        "found",
        "given",
        "known",
        "left",
        "most",
        "one",
        "other",
        "others",
        "own",
        "place",
        "room",
        "there",
        "wanted",
        "what",
        "words",
    )
)
PATTERNS = {
    "what": re.compile(r"\bwhat\b", re.IGNORECASE),
    "says": re.compile(r"\b(?:tells|told|says|said)\b", re.IGNORECASE),
    "who": re.compile(r"\b(?:nobody|whoever|whose)\b", re.IGNORECASE),
    # Before a full stop, a comma or a word that no noun begins with.
    "one": re.compile(
        r"\bone(?=[.,;:)]|\s+(?:of|that|is|has|who|by|in|for|at|to|with|and|or|as|from|where)\b)"
    ),
}
OPENING = re.compile(r"(?:What|Who|Whoever|How|Whatever|Nor)\b")
CODE = re.compile(r"`[^`]*`|^ {4,}.*$", re.MULTILINE)


def count(text: str) -> Counter[str]:
    """Return a module's counts, and how many `bindings` and `spoken` words there are."""
    counts: Counter[str] = Counter()
    tree = ast.parse(text)
    for name in bound_names(tree):
        counts["bindings"] += 1
        counts["names"] += name.strip("_") in VAGUE

    docstrings = list(_docstrings(tree))
    counts["openings"] = sum(bool(OPENING.match(docstring)) for docstring in docstrings)
    for passage in (*docstrings, *_comments(text)):
        prose = CODE.sub("", passage)
        counts["spoken"] += len(prose.split())
        for kind, pattern in PATTERNS.items():
            counts[kind] += len(pattern.findall(prose))

    return counts


def bound_names(tree: ast.AST) -> Iterator[str]:
    """Yield each name that an assignment, a loop, a parameter or a pattern binds."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.arg(arg=name):
                yield name
            case ast.MatchAs(name=str() as name) | ast.MatchStar(name=str() as name):
                yield name
            case ast.ExceptHandler(name=str() as name):
                yield name


def _docstrings(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""


def _comments(text: str) -> Iterator[str]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string.lstrip("# ")


def rooms(root: Path, paths: list[str]) -> dict[str, Counter[str]]:
    """Return the counts of the folders of these modules, which are paths below `root`."""
    counts: dict[str, Counter[str]] = {}
    for path in sorted(paths):
        # A file that git knows may have been removed.
        if (root / path).is_file():
            folder = str(Path(path).parent)
            text = (root / path).read_text(encoding="utf-8")
            counts.setdefault(folder, Counter()).update(count(text))

    return counts
