"""Independent NumPy transcription of the graph test (crates/headwater/src/evaluate/graph_test): scores, guard, statistic.

Deliberately plain: posteriors by inverting the whole precision matrix, effects by alternating means until they settle, the
regression by least squares over listed pairs. Called by make_golden.py.
"""
import json

import numpy as np


def noise_of_a_post(values, posts):
    x, y = [], []
    for account in range(values.shape[1]):
        seen = posts[:, account] > 0
        x += list(1 / posts[seen, account])
        y += list((values[seen, account] - values[seen, account].mean()) ** 2)
    x, y = np.array(x), np.array(y)
    slope = np.polyfit(x, y, 1)[0] if x.std() > 0.03 else 0.5 * y.mean()
    return np.clip(slope, 0.1 * y.mean(), 0.9 * y.mean())


def account(values, precision, rounds=40):
    """AR(1) behind noise and silence by EM: deviation from the level, news over their variance."""
    steps, weight = len(values), precision.sum()
    level = (precision * values).sum() / weight
    variance = max(((values - level)[precision > 0] ** 2).mean(), 1e-6)
    phi, q, last = 0.8, 0.3 * variance, rounds - 1
    for round_ in range(rounds):
        matrix = np.diag(precision.copy())
        matrix[0, 0] += 1 / variance
        for t in range(1, steps):
            matrix[t, t] += 1 / q
            matrix[t - 1, t - 1] += phi * phi / q
            matrix[t, t - 1] -= phi / q
            matrix[t - 1, t] -= phi / q
        covariance = np.linalg.inv(matrix)
        mean = covariance @ (precision * (values - level))
        if round_ == last:
            break
        second = covariance + np.outer(mean, mean)
        xx, yy = np.trace(second[:-1, :-1]), np.trace(second[1:, 1:])
        xy = np.trace(second[1:, :-1])
        old = phi, q
        phi = min(max(xy / xx, 0), 0.995)
        q = max((yy - 2 * phi * xy + phi * phi * xx) / (steps - 1), 1e-4 * variance)
        level += (precision * (values - level - mean)).sum() / weight
        if abs(phi - old[0]) < 1e-4 and abs(q / old[1] - 1) < 1e-3 and round_ + 2 < rounds:
            last = min(last, round_ + 1)
    news = np.zeros(steps)
    news[1:] = (mean[1:] - phi * mean[:-1]) / q
    return mean, news


def standard(rows):
    rows = rows - rows.mean(1, keepdims=True)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def centred(matrix, groups):
    """Row and column means of each block of groups removed, the diagonal left out."""
    out, n = matrix.copy(), len(matrix)
    for _ in range(200):
        for transposed in (False, True):
            view = out.T if transposed else out
            for i in range(n):
                for group in set(groups):
                    block = [j for j in range(n) if groups[j] == group and j != i]
                    view[i, block] -= view[i, block].mean()
    np.fill_diagonal(out, 0)
    return out


def case(folder, name, accounts, steps, ratios, groups, seed, edge_probability=0.25):
    rng = np.random.default_rng(seed)
    adjacency = rng.random((accounts, accounts)) < edge_probability  # [speaker, listener]
    np.fill_diagonal(adjacency, False)
    values = np.zeros((steps, accounts, ratios))
    opinion = rng.standard_normal((accounts, ratios))
    for step in range(steps):
        heard = adjacency.T @ opinion / np.maximum(adjacency.sum(0), 1)[:, None]
        opinion = 0.6 * opinion + 0.3 * heard + 0.3 * rng.standard_normal((accounts, ratios))
        values[step] = opinion
    posts = rng.poisson(rng.uniform(0.5, 3, accounts), (steps, accounts))
    posts[0] = np.maximum(posts[0], 1)
    values += 0.4 * rng.standard_normal(values.shape) / np.sqrt(np.maximum(posts, 1))[:, :, None]
    values[posts == 0] = 0
    lagged, news, level = (np.zeros((accounts, accounts)) for _ in range(3))
    deviations, all_news = [], []
    for ratio in range(ratios):
        noise = noise_of_a_post(values[:, :, ratio], posts)
        fitted = [account(values[:, k, ratio], posts[:, k] / noise) for k in range(accounts)]
        m, e = (np.array([fit[part] for fit in fitted]) for part in (0, 1))
        deviations.append(m.tolist())
        all_news.append(e.tolist())
        lagged += standard(m[:, :-1]) @ standard(e[:, 1:]).T
        news += standard(e[:, 1:]) @ standard(e[:, 1:]).T
        level += standard(m) @ standard(m).T
    raw = {"lagged": lagged, "shared_news": news, "shared_level": level}
    clean = {key: centred(matrix, groups) for key, matrix in raw.items()}
    unlinked = ~(adjacency | adjacency.T) & ~np.eye(accounts, dtype=bool)
    assert unlinked.sum() >= 50
    regressors = np.stack([clean["shared_news"][unlinked], clean["shared_level"][unlinked]], 1)
    guard = np.linalg.lstsq(regressors, clean["lagged"][unlinked], rcond=None)[0]
    guarded = centred(clean["lagged"] - guard[0] * clean["shared_news"] - guard[1] * clean["shared_level"], groups)
    statistic = sum(guarded[l, k] / adjacency[:, k].sum() for l, k in zip(*np.nonzero(adjacency)))
    document = {"name": name, "agents": accounts, "hypotheses": ratios + 1, "groups": groups, "posts": posts.tolist(),
                "values": values.tolist(), "edges": [[int(l), int(k)] for l, k in zip(*np.nonzero(adjacency))],
                "deviations": deviations, "news": all_news, "raw": {key: matrix.tolist() for key, matrix in raw.items()},
                "centred": {key: matrix.tolist() for key, matrix in clean.items()}, "guard": guard.tolist(),
                "guarded": guarded.tolist(), "statistic": float(statistic)}
    (folder / f"{name}.json").write_text(json.dumps(document))


def write(folder):
    case(folder, "graph_test_groups", 13, 40, 1, [0] * 4 + [1] * 5 + [2] * 4, 11)
    case(folder, "graph_test_ratios", 11, 30, 2, [0] * 11, 12, edge_probability=0.2)
