"""Logistic regression against its equations and known closed forms, and the figures of probabilities by hand."""

import numpy as np
import pytest

from mt.metrics.calibration import RIDGE, calibration_error, fit_logistic, roc_area, sigmoid


def simulated(count, seed, coefficients=(-0.5, 2.0, -1.0, 0.0)):
    random = np.random.default_rng(seed)
    features = random.normal(size=(count, len(coefficients) - 1))
    probabilities = sigmoid(coefficients[0] + features @ coefficients[1:])
    return features, (random.random(count) < probabilities).astype(float)


@pytest.mark.parametrize("scale", [0.01, 1, 30])
def test_fit_logistic_has_zero_gradient(scale):
    features, labels = simulated(400, seed=1)
    features = 5 + scale * features
    intercept, *coefficients = fit_logistic(features, labels)
    errors = labels - sigmoid(intercept + features @ coefficients)
    assert errors.sum() == pytest.approx(0, abs=1e-6)
    gradient = (features - features.mean(axis=0)).T @ errors - RIDGE * np.array(coefficients)
    assert gradient == pytest.approx(0, abs=1e-6 * max(1, scale))


def test_fit_logistic_ignores_constant_feature():
    features, labels = simulated(200, seed=2)
    features[:, 1] = 7
    assert fit_logistic(features, labels)[2] == 0


def test_fit_logistic_of_separable_examples_is_finite():
    features = np.linspace(-1, 1, 50)[:, None] * 1000
    coefficients = fit_logistic(features, (features[:, 0] > 0).astype(float))
    assert np.isfinite(coefficients).all() and coefficients[1] > 0


def test_fit_logistic_converges_despite_outlier():
    """Newton's method with steps of any length swings to and fro here."""
    features = np.array([*[0.0] * 45, 846.0, -0.4, -3.3])
    labels = np.zeros(48)
    labels[[29, 47]] = 1
    intercept, coefficient = fit_logistic(features[:, None], labels)
    assert (labels - sigmoid(intercept + coefficient * features)).sum() == pytest.approx(0, abs=1e-6)


def test_fit_logistic_finds_coefficients():
    coefficients = fit_logistic(*simulated(20_000, seed=3))
    assert coefficients == pytest.approx([-0.5, 2.0, -1.0, 0.0], abs=0.1)
    features, labels = simulated(20_000, seed=4)
    probabilities = sigmoid(coefficients[0] + features @ coefficients[1:])
    assert calibration_error(probabilities, labels) < 0.015
    assert calibration_error(np.clip(probabilities + 0.2, 0, 1), labels) > 0.15


def test_calibration_error_is_mean_gap_of_bins():
    probabilities = np.array([0.9, 0.1, 0.2, 0.6])  # bins: (0.1, 0.2) and (0.6, 0.9)
    labels = np.array([1.0, 0.0, 1.0, 1.0])
    assert calibration_error(probabilities, labels, bins=2) == pytest.approx((abs(0.15 - 0.5) + abs(0.75 - 1)) / 2)
    assert calibration_error(np.array([0.25]), np.array([1.0])) == pytest.approx(0.75)  # fewer examples than bins


def test_calibration_error_ignores_order_of_ties():
    probabilities, labels = np.repeat([0.5, 0.75], [20, 4]), np.repeat([0.0, 1, 0, 1], [10, 10, 1, 3])
    assert calibration_error(probabilities, labels) == 0  # half of the first, three quarters of the others are good
    assert calibration_error(probabilities, np.repeat([0.0, 1], [10, 14])) == pytest.approx(1 / 24, abs=1e-4)


def test_roc_area_counts_half_of_ties():
    scores, labels = np.array([3.0, 1.0, 2.0, 2.0, 0.0]), np.array([1, 0, 1, 0, 0])
    assert roc_area(scores, labels) == 0.9167  # 5.5 of 6
    assert roc_area(scores, np.ones(5)) is None and roc_area(scores, np.zeros(5)) is None


def test_sigmoid_of_large_log_odds():
    assert sigmoid(np.array([-1e4, 0, 1e4])).tolist() == [0, 0.5, 1]
