"""Edges found by other programs in the worlds that the example edges_auc has written, beside Headwater's.

usage: edge_peers.py FOLDER

Every program gets the beliefs with an agent's last value repeated where it is silent, and one lag. Of each program the signed
and the absolute score are tried, and the one with the larger mean area under the curve is taken: the best for the rival.
"""

import csv
import pathlib
import sys
import time
import warnings

import netrd
import numpy as np
from scipy.stats import rankdata
from statsmodels.tsa.api import VAR
from tigramite.data_processing import DataFrame
from tigramite.independence_tests.parcorr import ParCorr
from tigramite.pcmci import PCMCI

warnings.filterwarnings("ignore")


def rows(path: pathlib.Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def world(path: pathlib.Path) -> tuple[np.ndarray, np.ndarray]:
    """Beliefs, T x N, silent cells filled with the last value; and edges, speaker by listener."""
    beliefs = rows(path)
    agents = 1 + max(int(row["agent"]) for row in beliefs)
    values = np.full((1 + max(int(row["time"]) for row in beliefs), agents), np.nan)
    for row in beliefs:
        values[int(row["time"]), int(row["agent"])] = float(row["log_ratio"])
    for step in range(1, len(values)):
        silent = np.isnan(values[step])
        values[step, silent] = values[step - 1, silent]
    edges = np.zeros((agents, agents), dtype=bool)
    for row in rows(path.with_name(path.name.replace("-beliefs", "-edges"))):
        edges[int(row["source"]), int(row["target"])] = True
    return values, edges


def area(scores: np.ndarray, edges: np.ndarray) -> float:
    """Area under the receiver operating curve over pairs of different agents; ties count half."""
    off = ~np.eye(len(edges), dtype=bool)
    ranks, real = rankdata(scores[off]), edges[off]
    below = ranks[real].sum() - real.sum() * (real.sum() + 1) / 2
    return float(below / (real.sum() * (~real).sum()))


def var(values: np.ndarray) -> np.ndarray:
    return VAR(values).fit(1).tvalues[1:]


def pcmci(values: np.ndarray) -> np.ndarray:
    runner = PCMCI(dataframe=DataFrame(values), cond_ind_test=ParCorr(), verbosity=0)
    return runner.run_pcmci(tau_min=1, tau_max=1, pc_alpha=0.05)["val_matrix"][:, :, 1]


def granger(values: np.ndarray) -> np.ndarray:
    learner = netrd.reconstruction.GrangerCausality()
    learner.fit(values.T, lag=1)
    return learner.results["weights_matrix"]


PEERS = {"VAR (statsmodels), t-values": var, "PCMCI (tigramite), ParCorr": pcmci, "Granger (netrd)": granger}


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    print("| noise | program | worlds | AUC | standard error | Headwater less this | better in | seconds a world |")
    print("|---|---|---|---|---|---|---|---|")
    for table in sorted(folder.glob("headwater-*.csv")):
        ours = {(row["noise"], row["seed"]): float(row["auc"]) for row in rows(table)}
        names = [folder / f"{noise}-{seed}-beliefs.csv" for noise, seed in ours]
        worlds = [world(name) for name in names]
        mine = np.array(list(ours.values()))
        noise = next(iter(ours))[0]
        error = mine.std(ddof=1) / len(mine) ** 0.5
        print(f"| {noise} | Headwater | {len(mine)} | {mine.mean():.3f} | {error:.3f} | | | |")
        for name, peer in PEERS.items():
            begun = time.process_time()
            found = [peer(values) for values, _ in worlds]
            seconds = (time.process_time() - begun) / len(worlds)
            both = [
                np.array([area(change(scores), edges) for scores, (_, edges) in zip(found, worlds, strict=True)])
                for change in (np.asarray, np.abs)
            ]
            theirs = max(both, key=np.mean)
            lead = mine - theirs
            print(
                f"| {noise} | {name} | {len(mine)} | {theirs.mean():.3f} | {theirs.std(ddof=1) / len(theirs) ** 0.5:.3f}"
                f" | {lead.mean():+.3f} ± {lead.std(ddof=1) / len(lead) ** 0.5:.3f} | {(lead > 0).sum()} | {seconds:.1f} |"
            )


if __name__ == "__main__":
    main()
