"""A few of each fault; ``make faults`` puts in hundreds."""

from functools import cache

import pytest

from tests.faults import disk, every_key, hostile, interruption, lines


@pytest.fixture(scope="module")
def subject(tmp_path_factory):
    @cache
    def make(architecture):
        return interruption.Subject(tmp_path_factory.mktemp(architecture), architecture)

    return make


@pytest.fixture(scope="module")
def run(subject):
    return subject("transformer").run("whole")


def _assert_survived(outcome, at_least=1):
    assert not outcome.lost, "\n".join(outcome.lost)
    assert outcome.injected == outcome.survived >= at_least


@pytest.mark.parametrize("architecture", ["transformer", pytest.param("rnn", marks=pytest.mark.slow)])
def test_killed_run_resumes(subject, architecture):
    _assert_survived(interruption.kill(subject(architecture), 2, 7))


@pytest.mark.parametrize("architecture", ["transformer", pytest.param("rnn", marks=pytest.mark.slow)])
def test_signal_stops_run_without_loss(subject, architecture):
    _assert_survived(interruption.stop(subject(architecture), 2, 7, prompt=60))


@pytest.mark.slow
@pytest.mark.skipif(not disk.can_be_filled(), reason="no small disk can be mounted here")
def test_full_disk_is_reported_once(subject):
    _assert_survived(disk.fill(subject("transformer"), 1, 7))


@pytest.mark.slow
def test_malicious_run_folder_executes_nothing(tmp_path, run):
    _assert_survived(hostile.exploits(tmp_path, 1, 7, run), 30)


def test_compare_opens_no_files_outside_its_runs(tmp_path, run):
    _assert_survived(hostile.comparisons(tmp_path, 2, 7, run), 2)


@pytest.mark.parametrize("command", every_key.WORK)
def test_every_setting_is_refused_or_works(tmp_path, run, command):
    _assert_survived(every_key.fuzz(tmp_path, 20, 7, run, command), 20)


@pytest.mark.slow
def test_translated_stream_takes_constant_memory(tmp_path, run):
    _assert_survived(lines.stream(tmp_path, 30_000, 7, run))
