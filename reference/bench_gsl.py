"""Times `headwater learn` (array in, model out) against a plain NumPy loop of Algorithm 1. See scripts/bench-numpy."""
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

LOOP = """
import sys
import numpy as np
beliefs = np.load(sys.argv[1])
log_beliefs = np.log(beliefs[:, :, :1] / beliefs[:, :, 1:])
delta, rate, window = 0.05, 0.1, 50
agents = log_beliefs.shape[1]
a = np.full((agents, agents), 1 / agents)
for i in range(window + 1, len(log_beliefs)):
    now, before = log_beliefs[i], log_beliefs[i - 1]
    mean_now, mean_before = log_beliefs[i - window:i].mean(0), log_beliefs[i - window - 1:i - 1].mean(0)
    evidence = (mean_now - (1 - delta) * a.T @ mean_before) / delta
    residual = now - (1 - delta) * a.T @ before - delta * evidence
    a = a + rate * (1 - delta) * (before - mean_before) @ residual.T
np.savez(sys.argv[2], combination=a)
"""


def timed(command, **environment):
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, **environment})
    return time.perf_counter() - start


def main(agents=2000, steps=400):
    program = os.environ["HEADWATER"]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        probability = min(1.0, 20 / agents)
        subprocess.run([program, "simulate", "--quiet", "--out", folder, "--agents", str(agents), "--hypotheses", "2",
                        "--edge-probability", str(probability), "--steps", str(steps), "--as", "npy"], check=True)
        beliefs, ours, theirs = folder / "beliefs.npy", folder / "m.npz", folder / "numpy.npz"
        learn = [program, "learn", beliefs, "--out", ours, "--method", "gsl", "--adaptation", "0.05", "--quiet"]
        loop = [sys.executable, "-c", LOOP, beliefs, theirs]
        numpy = min(timed(loop, OPENBLAS_NUM_THREADS=threads) for threads in ("1", "2") for _ in range(2))
        runs = [timed(learn) for _ in range(7)]
        import numpy as np
        difference = abs(np.load(ours)["combination"] - np.load(theirs)["combination"]).max()
    ours = statistics.median(runs)
    print(f"N={agents} T={steps} H=1: NumPy {numpy:.3f} s (best of 1 and 2 threads), headwater {ours:.3f} s "
          f"(median of 7), ratio {numpy / ours:.1f}, largest difference {difference:.1e}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
