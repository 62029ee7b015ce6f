"""The meaning of annotations."""

from __future__ import annotations

from ofan_p4.compiler.syntax.lexer import Kind, number, string
from ofan_p4.compiler.syntax.nodes import Annotation, Annotations
from ofan_p4.diagnostics import CompileError, CompileWarning

# Those of the language, of P4Runtime and of p4c.
KNOWN = frozenset(
    """alias atomic brief controller_header default_nexthop defaultonly deprecated description
    disable_optimization field_list format hidden id inline likely match max_group_size
    max_member_weight metadata name noSideEffects noWarn noinline nounroll optional p4runtime_role
    p4runtime_translation p4runtime_translation_mappings packed padding pkginfo platform_property
    pragma priority pure selector_size_semantics semantics synchronous tableonly unlikely
    unroll""".split()  # noqa: SIM905
)


def unknown_annotations(annotations: Annotations) -> list[CompileWarning]:
    """Return one warning for each unknown name of an annotation, which may be misspelt."""
    first: dict[str, Annotation] = {}
    for item in annotations:
        # Structured ones are for other tools: P4Info hands them on.
        if item.name not in KNOWN and not item.structured:
            first.setdefault(item.name, item)

    return [
        CompileWarning("unknown", f"unknown annotation '{name}'", item.span)
        for name, item in first.items()
    ]


def find_annotation(annotations: Annotations, name: str) -> Annotation | None:
    """Return the first annotation of a name."""
    return next((item for item in annotations if item.name == name), None)


def string_annotation(annotations: Annotations, name: str) -> str | None:
    """Return the string of `@name("...")`."""
    item = find_annotation(annotations, name)
    if item is None:
        return None
    if len(item.tokens) != 1 or item.tokens[0].kind is not Kind.STRING:
        raise CompileError(f"@{name} needs one string", item.span)

    return string(item.tokens[0])


def int_annotation(annotations: Annotations, name: str) -> int | None:
    """Return the number of `@name(...)`."""
    item = find_annotation(annotations, name)
    if item is None:
        return None

    numbers = int_list(item)
    if len(numbers) != 1:
        raise CompileError(f"@{name} needs one number", item.span)

    return numbers[0]


def int_list(item: Annotation) -> tuple[int, ...]:
    """Return the numbers of `@name(1, 2, ...)`."""
    # Annotations are unstructured: tokens, of which every second one must be a comma.
    values = item.tokens[::2]
    if any(token.kind is not Kind.NUMBER for token in values) or any(
        token.text != "," for token in item.tokens[1::2]
    ):
        raise CompileError(f"@{item.name} needs numbers", item.span)

    return tuple(number(token).value for token in values)


def has_annotation(annotations: Annotations, name: str) -> bool:
    """Say whether there is an annotation of a name."""
    return find_annotation(annotations, name) is not None


def write_annotation(item: Annotation) -> str:
    """Return an unstructured annotation as P4Info keeps it."""
    if not item.tokens:
        return f"@{item.name}"

    # Blanks between the tokens, whatever the program has: only the tokens are left of it.
    return f"@{item.name}({' '.join(token.text for token in item.tokens)})"
