"""Times the whitened fit against statsmodels' VAR(1) on the same log-ratios. See scripts/bench-statsmodels."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

AGENTS, STEPS, RUNS = 1000, 2000, 3
# Both sides take turns, so that a busy moment of the machine spoils neither.
TURNS = 2

FIT = """
import sys, time
import numpy as np
from statsmodels.tsa.api import VAR
data = np.fromfile(sys.argv[1], dtype="<f8").reshape(-1, int(sys.argv[2]))
model = VAR(data)
seconds = []
for _ in range(int(sys.argv[3])):
    start = time.perf_counter()
    result = model.fit(1, trend="c")
    seconds.append(time.perf_counter() - start)
assert np.isfinite(result.coefs).all()
print(min(seconds))
"""


def ours(ratios, runs, *panel):
    line = subprocess.run([os.environ["FIT_TIME"], str(AGENTS), str(STEPS), str(ratios), str(runs), *panel],
                          check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(line)


def theirs(panel, threads):
    limits = {name: str(threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    command = [sys.executable, "-c", FIT, panel, str(AGENTS), str(RUNS)]
    return float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env={**os.environ, **limits}).stdout)


def main(everything):
    with tempfile.TemporaryDirectory() as folder:
        panel = str(pathlib.Path(folder) / "panel.f64")
        turns = [(ours(1, RUNS, panel), {threads: theirs(panel, threads) for threads in (1, 2)}) for _ in range(TURNS)]
    fit, var = ({key: min(turn[side][key] for turn in turns) for key in turns[0][side]} for side in (0, 1))
    print(f"N={AGENTS} T={STEPS} H=1, fit only, best of {TURNS * RUNS}:")
    for threads, seconds in var.items():
        print(f"  statsmodels VAR(1), {threads} BLAS thread(s)  {seconds:8.3f} s")
    for name in ("free", "simplex"):
        print(f"  headwater, {name:<8}                  {fit[name]:8.3f} s, ratio {min(var.values()) / fit[name]:.1f}")
    print(f"  moments {fit['moments']:.3f} s, the same products by faer alone {fit['products']:.3f} s: "
          f"{fit['products'] / fit['moments']:.0%} of its speed")
    if everything:
        fit = ours(4, 1)
        print(f"N={AGENTS} T={STEPS} H=4, one run: free {fit['free']:.1f} s, simplex {fit['simplex']:.1f} s, "
              f"moments {fit['moments']:.2f} s")


if __name__ == "__main__":
    main("--all" in sys.argv[1:])
