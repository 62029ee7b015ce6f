"""The plain model shares no code with what it is compared with: else both would be wrong alike."""

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
# The scenario, and the parts of it whose types a signature names.
ALLOWED = {("fattree.experiment.model", name) for name in ("Scenario", "FailureEvent", "Place")}


def imported(source: str) -> set[tuple[str, str]]:
    """Return the (module, name) that a source imports, "" for a whole module."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            found |= {(node.module or "", alias.name) for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {(alias.name, "") for alias in node.names}
    return found


def test_the_plain_model_imports_nothing_of_ours_but_the_scenario() -> None:
    sources = [path.read_text() for path in NAIVE.glob("*.py")]
    found = set().union(*map(imported, sources))
    ours = {(module, name) for module, name in found if module.split(".")[0] in OURS}
    assert ours == ALLOWED
