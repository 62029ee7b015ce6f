"""The plain model shares no code with the networks it judges: else both would be wrong alike."""

import ast
from pathlib import Path

NAIVE = Path(__file__).parents[1] / "naive"
OURS = (
    "fattree",
    "hostagent",
    "controller",
    "emulation",
    "sim",
    "reproduction",
    "p4src",
    "ofan_p4",
    "p4messages",
    "ofan",
)
# The scenario, and the parts of it that signatures name as types.
ALLOWED = {("fattree.experiment.model", name) for name in ("Scenario", "FailureEvent", "Place")}


def imported(source: str) -> set[tuple[str, str]]:
    """Return the (module, name) that a source imports, "" for a whole module."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            names |= {(node.module or "", alias.name) for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {(alias.name, "") for alias in node.names}
    return names


def test_the_plain_model_imports_nothing_of_ours_but_the_scenario() -> None:
    sources = [path.read_text() for path in NAIVE.glob("*.py")]
    names = set().union(*map(imported, sources))
    ours = {(module, name) for module, name in names if module.split(".")[0] in OURS}
    assert ours == ALLOWED
