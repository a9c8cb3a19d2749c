"""Long work lets others work, can be done twice at once, and ends on Ctrl-C."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import headwater
from headwater import GSL, StateSpace, Whitened

LEARNERS = [Whitened, lambda: StateSpace(rounds=3), lambda: GSL(0.05, window=5), lambda: GSL(0.05, tune=True)]


@pytest.mark.filterwarnings("ignore::headwater.HeadwaterWarning")
def test_models_learned_at_once_are_those_learned_one_by_one() -> None:
    worlds = [headwater.simulate(agents=6, hypotheses=3, steps=150, seed=seed)[0] for seed in range(4)]
    jobs = [(make, world) for make in LEARNERS for world in worlds]

    def learn(job: tuple[Any, np.ndarray]) -> headwater.Model:
        make, world = job
        return make().fit(world).model_

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(learn, jobs)) == [learn(job) for job in jobs]


def test_one_model_used_at_once(model: headwater.Model, beliefs: np.ndarray) -> None:
    def rank(_: int) -> str:
        return headwater.ranking(model, beliefs, bootstrap=20)._compiled.json()

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(rank, range(8)))) == 1


@pytest.mark.filterwarnings("ignore::headwater.HeadwaterWarning")
def test_the_interpreter_is_free_meanwhile(quiet: np.ndarray) -> None:
    done = threading.Event()
    ticks = 0

    def learn() -> None:
        StateSpace(tolerance=1e-300, rounds=1500).fit(quiet)
        done.set()

    worker = threading.Thread(target=learn)
    worker.start()
    # Were the lock held, this loop would not turn before the end.
    while not done.wait(0.001):
        ticks += 1
    worker.join()
    assert ticks > 5


LONG: dict[str, str] = {
    "whitened": "headwater.Whitened(log_ratios=True).fit(numpy.random.default_rng(0).normal(size=(3000, 1500)))",
    "state-space": "headwater.StateSpace(rounds=100_000, tolerance=1e-300).fit(long)",
    "gsl": "headwater.GSL(0.05, passes=1_000_000).fit(short)",
    "bootstrap": "headwater.rank(model, short, bootstrap=100_000)",
    "null": "headwater.rank(model, short, null=100_000)",
    "simulate": "headwater.simulate(agents=100, steps=10, burn_in=1_000_000_000)",
    "score": "headwater.score(['what a long and lovely day it was ' * 60] * 1_000_000)",
    "discover": "headwater.discover(posts, rounds=100_000, bootstrap=100_000, null=100_000)",
}

SCRIPT = """
import sys
import numpy
import pandas
import headwater
long, _ = headwater.simulate(agents=20, hypotheses=3, steps=2000, silence=0.2)
short, _ = headwater.simulate(agents=20, hypotheses=3, steps=300)
model = headwater.Whitened().fit(short).model_
sentences = ["wonderful, love it", "this is fine", "this is a mess", "awful, the worst", "pretty good"]
posts = pandas.DataFrame([
    (f"u{{user}}", f"2024-{{1 + day // 28:02}}-{{1 + day % 28:02}}", f"tram {{sentences[(day * (user + 2)) % 5]}}")
    for day in range(336) for user in range(40)
], columns=["user", "time", "text"])
print("ready", flush=True)
try:
    {call}
except KeyboardInterrupt:
    print("stopped", flush=True)
    # The interpreter is whole, and the library with it.
    assert headwater.Whitened().fit(short).model_ == model
    sys.exit(7)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent in another way there")
@pytest.mark.parametrize("work", LONG)
def test_ctrl_c(work: str) -> None:
    script = textwrap.dedent(SCRIPT).format(call=LONG[work])
    with subprocess.Popen([sys.executable, "-W", "ignore", "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        # Work that does not stop must not stop the tests.
        watchdog = threading.Timer(60, process.kill)
        watchdog.start()
        try:
            assert process.stdout.readline() == "ready\n"
            time.sleep(1.0)
            process.send_signal(signal.SIGINT)
            begun = time.monotonic()
            assert process.stdout.readline() == "stopped\n"
            # A second is promised; the machine may be busy.
            assert time.monotonic() - begun < 2.0
            assert process.wait() == 7
        finally:
            watchdog.cancel()
            process.kill()
