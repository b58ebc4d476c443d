"""Probabilities of binary labels: their fit by logistic regression, their calibration error and their ROC curve."""

import numpy as np

RIDGE = 0.25
"""Penalty of the squared coefficients, half of which is added to the negative log-likelihood of all examples."""
MAX_STEPS = 100
TOLERANCE = 1e-9
"""The fit ends when no coefficient changes by more than this."""


def sigmoid(log_odds: np.ndarray) -> np.ndarray:
    """Return the probabilities of log-odds, without overflow."""
    return (1 + np.tanh(log_odds / 2)) / 2


def fit_logistic(features: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Fit a logistic regression with a ridge penalty by Newton's method.

    Args:
        features: (N, F).
        labels: (N), 1 or 0; both have to occur.

    Returns:
        (1 + F): the intercept, which has no penalty, and the coefficient of each feature.
    """
    means = features.mean(axis=0)
    inputs = np.column_stack([np.ones(len(features)), features - means])
    penalty = np.array([0.0, *[RIDGE] * len(means)])
    coefficients = np.zeros(len(penalty))
    for _ in range(MAX_STEPS):
        probabilities = sigmoid(inputs @ coefficients)
        gradient = inputs.T @ (labels - probabilities) - penalty * coefficients
        variances = probabilities * (1 - probabilities)
        step = np.linalg.solve((inputs * variances[:, None]).T @ inputs + np.diag(penalty), gradient)
        largest = np.abs(step).max()
        coefficients += step / max(1.0, largest)  # a longer step could leave the region where Newton converges
        if largest < TOLERANCE:
            break
    coefficients[0] -= means @ coefficients[1:]
    return coefficients


def calibration_error(probabilities: np.ndarray, labels: np.ndarray, bins: int = 10) -> float:
    """Return the expected calibration error, rounded to four decimals: the mean distance of the probabilities (N) from
    the share of labels (N) that are 1, over ``bins`` bins of equally many examples.

    Examples of one probability share their labels equally, so that their order does not matter.
    """
    _, groups = np.unique(probabilities, return_inverse=True)
    distances = probabilities - (np.bincount(groups, labels) / np.bincount(groups))[groups]
    gaps = [abs(distances[rows].sum()) for rows in np.array_split(np.argsort(probabilities), bins)]
    return round(float(sum(gaps) / len(labels)), 4)


def roc_area(scores: np.ndarray, labels: np.ndarray) -> float | None:
    """Return the area under the ROC curve, rounded to four decimals: the probability that an example of label 1 has a
    higher score than one of label 0, where ties count half. None without examples of both labels."""
    positive, negative = scores[labels == 1], np.sort(scores[labels == 0])
    if not len(positive) or not len(negative):
        return None
    wins = np.searchsorted(negative, positive, "left") + np.searchsorted(negative, positive, "right")
    return round(float(wins.mean() / 2 / len(negative)), 4)
