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
def test_a_killed_run_resumes(subject, architecture):
    _assert_survived(interruption.kill(subject(architecture), 2, 7))


@pytest.mark.parametrize("architecture", ["transformer", pytest.param("rnn", marks=pytest.mark.slow)])
def test_a_signal_is_obeyed_and_nothing_lost(subject, architecture):
    _assert_survived(interruption.stop(subject(architecture), 2, 7, prompt=60))


@pytest.mark.slow
@pytest.mark.skipif(not disk.can_be_filled(), reason="no small disk can be mounted here")
def test_a_full_disk_is_one_message(subject):
    _assert_survived(disk.fill(subject("transformer"), 1, 7))


def test_corrupted_run_folders_are_reported(tmp_path, run):
    _assert_survived(hostile.damage(tmp_path, 30, 7, run), 30)


@pytest.mark.slow
def test_malicious_folders_execute_and_show_nothing(tmp_path, run):
    _assert_survived(hostile.exploits(tmp_path, 1, 7, run), 30)


def test_comparisons_of_malicious_runs_open_nothing_outside(tmp_path, run):
    _assert_survived(hostile.comparisons(tmp_path, 2, 7, run), 2)


@pytest.mark.parametrize("command", every_key.WORK)
def test_every_key_is_refused_or_works(tmp_path, run, command):
    _assert_survived(every_key.fuzz(tmp_path, 20, 7, run, command), 20)


def test_hostile_lines_keep_their_places(run):
    short = [line for line in lines.hostile_lines(85, 7) if len(line) < 300]  # all but a few are made by hand
    _assert_survived(lines.translate(short, 7, run), 1200)


@pytest.mark.slow
def test_a_killed_translation_is_resumed(tmp_path, run):
    _assert_survived(lines.resume(tmp_path, 3, 7, run), 3)


@pytest.mark.slow
def test_a_stream_needs_no_more_memory_at_its_end(tmp_path, run):
    _assert_survived(lines.stream(tmp_path, 30_000, 7, run))
