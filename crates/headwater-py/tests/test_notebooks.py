"""The notebooks of the guide run, and say what they said when they were saved."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import ROOT

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

NOTEBOOKS = ROOT / "docs/tutorials"

# What a reader takes home.
SAID = {
    "paper-world": [
        "certified listeners: 20 of 20",
        "largest error of a weight below 1e-9: True",
        "δ: 0.050000 (true 0.05)",
        "the true top three found: True",
        "100 steps, Whitened:    below 1e-18: True",
        "exact again: True",
    ],
    "posts-to-influencers": [
        "Supported. Opinion travels along this graph more than along graphs like it: p = 0.00",
        "first: mira",
        "True",
    ],
}


def printed(book: object) -> str:
    outputs = [output for cell in book.cells for output in cell.get("outputs", [])]
    assert outputs and not any(output.output_type == "error" for output in outputs)
    return "".join(output.text for output in outputs if output.output_type == "stream" and output.name == "stdout")


@pytest.mark.parametrize("name", SAID)
def test_notebook(name: str, tmp_path: Path) -> None:
    path = NOTEBOOKS / f"{name}.ipynb"
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    saved = printed(book)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1)), "executed from the top"
    nbclient.NotebookClient(
        book, timeout=600, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    ).execute()
    again = printed(book)
    for sentence in SAID[name]:
        assert sentence in saved and sentence in again
    assert path.stat().st_size < 500_000
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"
