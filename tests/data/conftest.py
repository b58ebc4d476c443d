"""A cache of their own for the datasets that the tests make."""

import datasets
import pytest


@pytest.fixture(scope="session", autouse=True)
def cache_of_datasets(tmp_path_factory):
    usual = datasets.config.HF_DATASETS_CACHE
    datasets.config.HF_DATASETS_CACHE = tmp_path_factory.mktemp("datasets")
    yield
    datasets.config.HF_DATASETS_CACHE = usual
