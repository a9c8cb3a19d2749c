"""The package as such: names, types, the stub, the command."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys
from importlib import metadata, resources
from pathlib import Path

import pytest

import headwater
from headwater import _headwater


def test_names() -> None:
    for name in headwater.__all__:
        thing = getattr(headwater, name)
        assert name == "__version__" or inspect.getdoc(thing), f"{name} has no docstring"
    assert headwater.__version__ == _headwater.__version__ == metadata.version("headwater")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("module", ["", *(f".{module.name}" for module in pkgutil.iter_modules(headwater.__path__))])
def test_examples_of_docstrings(module: str) -> None:
    pytest.importorskip("pandas")
    assert doctest.testmod(importlib.import_module(f"headwater{module}")).failed == 0


def test_types_are_shipped() -> None:
    files = resources.files(headwater)
    assert files.joinpath("py.typed").is_file() and files.joinpath("_headwater.pyi").is_file()


def test_nothing_optional_is_imported() -> None:
    optional = {"pandas", "polars", "pyarrow", "sklearn", "scipy", "networkx", "tqdm"}
    script = f"import sys, headwater; print(sorted({optional} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_the_stub_says_what_is_compiled(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy.stubtest", "headwater._headwater", "--ignore-missing-stub"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_types_are_complete(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    use = tmp_path / "use.py"
    use.write_text(
        "import numpy as np\nimport headwater\n"
        "said, truth = headwater.simulate(agents=5)\n"
        "learner = headwater.Whitened(ridge=0.1).fit(said)\n"
        "centrality: np.ndarray = learner.centrality_\n"
        "html: str = headwater.report(learner).html\n"
        "verdict: bool = headwater.ranking(learner, said).supported\n"
        "found = headwater.discover('posts.csv', topic='tram', rounds=3)\n"
        "model: headwater.Model = found.model\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "-p", "headwater"], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(use)], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
    use.write_text("import headwater\nheadwater.discover('posts.csv', colour='red')\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(use)], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 1 and "colour" in done.stdout
