"""What Python costs beside the Rust call, and how much memory: numpy in to numpy out, N = 1000, T = 2000, H = 1.

In: a number of rounds. Out: a table. Both sides take turns on the same numbers: the whole way from an array to arrays, and the
call into the library on beliefs that are there already. Memory is measured in processes of their own, in which nothing that was
freed before can be used again. Run by scripts/bench-python, in the wheel's environment.
"""

import os
import statistics
import subprocess
import sys
import time

import headwater
import numpy as np
from headwater import _headwater

AGENTS, STEPS = 1000, 2000


def world() -> np.ndarray:
    """T×N×2 probabilities that need no network behind them: time does not depend on it."""
    random = np.random.default_rng(7)
    ratios = np.empty((STEPS, AGENTS))
    ratios[0] = random.normal(size=AGENTS)
    for step in range(1, STEPS):
        ratios[step] = 0.9 * ratios[step - 1] + 0.05 * ratios[step - 1].mean() + random.normal(size=AGENTS)
    first = 1.0 / (1.0 + np.exp(-ratios))
    return np.stack([first, 1.0 - first], axis=2)


def resident(peak: bool = False) -> float:
    """Megabytes of this process, now or at most since the last reset."""
    name = "VmHWM:" if peak else "VmRSS:"
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(name)) / 1024


def peak_of(work) -> float:
    """Megabytes that a piece of work adds at most."""
    with open("/proc/self/clear_refs", "w", encoding="ascii") as refs:
        refs.write("5")
    before = resident()
    kept = work()
    added = resident(peak=True) - before
    del kept
    return added


def timed(work) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def compare(name: str, rounds: int, array: np.ndarray, **options) -> None:
    beliefs = _headwater.Beliefs.from_array(array)

    def whole() -> None:
        learner = headwater.Whitened(**options).fit(array)
        learner.combination_, learner.evidence_, learner.adaptation_

    def call() -> None:
        _headwater.whitened(beliefs, **options)

    whole()
    wholes, calls = [], []
    for _ in range(rounds):
        calls.append(timed(call))
        wholes.append(timed(whole))
    middles = statistics.median(calls), statistics.median(wholes)
    ratios = [100 * (whole / call - 1) for call, whole in [(min(calls), min(wholes)), middles]]
    print(f"| {name} | {min(calls):.3f} | {min(wholes):.3f} | {ratios[0]:+.1f} % | {ratios[1]:+.1f} % |")


def memory(what: str) -> None:
    """Prints the megabytes that a piece of work adds, in this process alone."""
    array = np.asfortranarray(world()) if what == "turned" else world()
    if what == "call":
        beliefs = _headwater.Beliefs.from_array(array)
        print(peak_of(lambda: _headwater.whitened(beliefs, constraint="free", symbols=False)))
    elif what == "whole":
        print(peak_of(lambda: headwater.Whitened(constraint="free", symbols=False).fit(array)))
    else:
        print(peak_of(lambda: _headwater.Beliefs.from_array(array)))


def measured(what: str) -> float:
    """The same from a fresh process that gives freed memory back at once."""
    quick = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    done = subprocess.run([sys.executable, __file__, what], env=quick, check=True, capture_output=True, text=True)
    return float(done.stdout)


def main() -> None:
    if len(sys.argv) > 1 and not sys.argv[1].isdigit():
        return memory(sys.argv[1])
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    array = world()
    size = array.nbytes / 2**20
    print(f"N = {AGENTS}, T = {STEPS}, two hypotheses: {size:.1f} MB of probabilities; {rounds} rounds, ten times that for the cheapest fit\n")
    for name, what in [("Beliefs from the array", "beliefs"), ("The same in Fortran order", "turned")]:
        added = measured(what)
        print(f"{name}: {added:.1f} MB more at most, {added / size:.2f} times the array.")
    call, whole = measured("call"), measured("whole")
    print(f"The fit alone: {call:.1f} MB; from the array: {whole:.1f} MB, {(whole - call) / size:.2f} arrays more.")
    begun = [timed(lambda: _headwater.Beliefs.from_array(array)) for _ in range(4 * rounds)]
    print(f"Time to make beliefs of the array: {min(begun):.4f} s.")
    print()
    print("| fit | Rust call, s | array to arrays, s | more, best to best | median to median |")
    print("|---|---|---|---|---|")
    compare("free, no symbols: the cheapest there is", 10 * rounds, array, constraint="free", symbols=False)
    compare("simplex, no symbols", rounds, array, symbols=False)


if __name__ == "__main__":
    main()
