"""A corpus for every test of training that asks for one."""

import pytest

from tests import toy


@pytest.fixture
def folder(tmp_path):
    toy.write_corpus(tmp_path, "reverse", train=600)
    return tmp_path
