"""What scripts and documentation tell people to run."""

import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).parents[1]


def test_npm_never_runs_scripts_of_packages():
    """`npm ci` and `npm install` run what a package's author wrote unless told not to."""
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    names = [name for name in tracked.split("\0") if name and name != "reference/test_scripts.py"]
    wanted = re.compile(r"npm (ci|i|install)\b")
    lines = [
        (name, line)
        for name in names
        if (ROOT / name).suffix in ("", ".md", ".py", ".sh", ".mjs", ".yml", ".yaml", ".toml", ".json")
        for line in (ROOT / name).read_text(errors="replace").splitlines()
        if wanted.search(line)
    ]
    assert lines
    assert [line for line in lines if "--ignore-scripts" not in line[1]] == []
