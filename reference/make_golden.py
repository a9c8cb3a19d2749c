"""Independent NumPy transcription of the formulas that crates/headwater computes. Writes small golden cases as JSON.

Deliberately plain: one loop per equation, no blocking, no reuse. Needs numpy. Usage: python make_golden.py DIR
"""
import json
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import graph_test

HERE = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")


def world(n, hypotheses, adaptation, steps, seed, edge_probability=0.4):
    rng = np.random.default_rng(seed)
    while True:
        upper = np.triu(rng.random((n, n)) < edge_probability, 1)
        adjacency = upper | upper.T | np.eye(n, dtype=bool)
        if (np.linalg.matrix_power(adjacency.astype(float), n) > 0).all():
            break
    weights = rng.uniform(0.2, 1.0, (n, n)) * adjacency
    combination = weights / weights.sum(0)
    p = rng.uniform(0.15, 0.85, (n, hypotheses))  # probability of symbol 0 under each hypothesis
    truth = int(rng.integers(hypotheses))
    ratio0 = np.log(p[:, :1] / p[:, 1:])
    ratio1 = np.log((1 - p[:, :1]) / (1 - p[:, 1:]))
    log_beliefs = np.zeros((n, hypotheses - 1))
    out = []
    for step in range(-200, steps):
        symbol0 = rng.random(n) < p[:, truth]
        log_beliefs = (1 - adaptation) * combination.T @ log_beliefs + adaptation * np.where(symbol0[:, None], ratio0, ratio1)
        if step >= 0:
            out.append(log_beliefs)
    divergence = p[:, [truth]] * np.log(p[:, [truth]] / p) + (1 - p[:, [truth]]) * np.log((1 - p[:, [truth]]) / (1 - p))
    return combination, p, truth, np.array(out), divergence


def gsl(log_beliefs, adaptation, rate, window, initial, known=None, batch=1, sparsity=0.0):
    a, keep, gradient, in_batch = initial.copy(), 1 - adaptation, np.zeros_like(initial), 0
    for i in range(window + 1, len(log_beliefs)):
        now, before = log_beliefs[i], log_beliefs[i - 1]
        mean_now = log_beliefs[i - window:i].mean(0)
        mean_before = log_beliefs[i - window - 1:i - 1].mean(0)
        if known is None:
            evidence = (mean_now - keep * a.T @ mean_before) / adaptation
            direction = before - mean_before
        else:
            evidence, direction = known, before
        residual = now - keep * a.T @ before - adaptation * evidence
        gradient += keep * direction @ residual.T
        in_batch += 1
        if in_batch == batch:
            a = a + rate * gradient / batch
            a = np.sign(a) * np.maximum(np.abs(a) - rate * sparsity, 0.0)
            gradient, in_batch = np.zeros_like(initial), 0
    last = log_beliefs[-window:].mean(0)
    previous = log_beliefs[-window - 1:-1].mean(0)
    return a, (last - keep * a.T @ previous) / adaptation


def perron(a):
    values, vectors = np.linalg.eig(a)
    u = np.real(vectors[:, np.argmin(np.abs(values - 1))])
    return u / u.sum()


def case(name, n, hypotheses, adaptation, steps, seed, **settings):
    combination, p, truth, log_beliefs, divergence = world(n, hypotheses, adaptation, steps, seed)
    evidence = divergence[:, 1:] - divergence[:, :1]
    options = dict(settings)
    if options.pop("known_evidence", False):
        options["known"] = evidence
    learned, learned_evidence = gsl(log_beliefs, adaptation, initial=np.full((n, n), 1 / n), **options)
    u = perron(combination)
    influence = u * divergence.sum(1)
    total = adaptation * np.linalg.inv(np.eye(n) - (1 - adaptation) * combination.T)
    document = {
        "name": name, "agents": n, "hypotheses": hypotheses, "adaptation": adaptation, "settings": settings, "truth": truth,
        "log_beliefs": log_beliefs.tolist(), "combination": combination.tolist(), "likelihood_symbol0": p.tolist(),
        "true": {"evidence": evidence.tolist(), "divergence": divergence.tolist(), "centrality": u.tolist(),
                 "influence": influence.tolist(), "attribution": total.tolist()},
        "learned": {"combination": learned.tolist(), "evidence": learned_evidence.tolist()},
    }
    (HERE / f"{name}.json").write_text(json.dumps(document))


if __name__ == "__main__":
    case("gsl_h1_m1", 4, 2, 0.1, 120, 1, rate=0.5, window=1)
    case("gsl_h4_m10", 6, 5, 0.05, 200, 2, rate=0.3, window=10)
    case("gsl_known", 6, 3, 0.05, 200, 3, rate=0.3, window=10, known_evidence=True)
    case("gsl_batch_sparse", 7, 2, 0.2, 1211, 4, rate=5.0, window=20, batch=30, sparsity=0.002)
    graph_test.write(HERE)
