"""What Python costs beside the Rust call, and how much memory: numpy in to numpy out, N = 1000, T = 2000, H = 1.

In: a number of rounds. Out: a table. Both sides take turns on the same numbers: the whole way from an array to arrays, and the
call into the library on beliefs that are there already. Run by scripts/bench-python, in the wheel's environment.
"""

import sys
import threading
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
    ratio = 100 * (min(wholes) / min(calls) - 1)
    print(f"| {name} | {min(calls):.3f} | {min(wholes):.3f} | {ratio:+.1f} % |")


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    array = world()
    size = array.nbytes / 2**20
    print(f"N = {AGENTS}, T = {STEPS}, two hypotheses: {size:.1f} MB of probabilities; best of {rounds}\n")
    assert threading.active_count() == 1
    added = peak_of(lambda: _headwater.Beliefs.from_array(array))
    print(f"Beliefs from the array: {added:.1f} MB more at most, {added / size:.2f} times the array.")
    turned = np.asfortranarray(array)
    added = peak_of(lambda: _headwater.Beliefs.from_array(turned))
    print(f"The same in Fortran order: {added:.1f} MB, {added / size:.2f} times.")
    beliefs = _headwater.Beliefs.from_array(array)
    call = peak_of(lambda: _headwater.whitened(beliefs, constraint="free", symbols=False))
    whole = peak_of(lambda: headwater.Whitened(constraint="free", symbols=False).fit(array))
    print(f"The fit alone: {call:.1f} MB; from the array: {whole:.1f} MB, {(whole - call) / size:.2f} arrays more.")
    print()
    print("| fit | Rust call, s | array to arrays, s | more |")
    print("|---|---|---|---|")
    compare("free, no symbols", rounds, array, constraint="free", symbols=False)
    compare("simplex, no symbols", rounds, array, symbols=False)


if __name__ == "__main__":
    main()
