"""Results in a notebook, which Jupyter's own client executes."""

import base64
from typing import Any

import nbformat
from nbclient import NotebookClient

CELLS = (
    "from sim import Scenario, run\n"
    "result = run(Scenario(fabric={'k': 2}, collective={'message_bytes': 9000}))\n"
    "result",
    "repr(result)",
    "result.plot()",
    "Scenario(policy='offan')",
)


def cell(text: str) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "id": f"cell{CELLS.index(text)}",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": text,
    }


def test_a_notebook_shows_results() -> None:
    notebook = nbformat.from_dict(  # type: ignore[no-untyped-call]
        {
            "cells": [cell(text) for text in CELLS],
            "metadata": {},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
    )
    NotebookClient(notebook, timeout=300, kernel_name="python3", allow_errors=True).execute()
    shown, line, picture, wrong = (cell.outputs[-1] for cell in notebook.cells)

    table = shown.data["text/html"]
    assert "<caption>Ofan, k = 2, seed 1</caption>" in table and "<td>CCT</td>" in table
    assert " µs</td>" in table and "over the bound" in table
    assert line.data["text/plain"].startswith("'Result(Ofan, k = 2, seed 1: CCT ")
    assert "array" not in line.data["text/plain"]
    assert base64.b64decode(picture.data["image/png"]).startswith(b"\x89PNG")
    assert "did you mean ofan?" in wrong.evalue
