"""A folder that may come from somebody else holds files and folders alone, and no way out."""

import os

import pytest

from mt.core.errors import InputError
from mt.evaluation.runs import read_run
from mt.storage import run_folder
from mt.storage.folders import is_model_without_run, open_folder, refuse_links_out


def test_links_may_lead_to_the_folder_itself_alone(tmp_path):
    home, neighbor = tmp_path / "run", tmp_path / "run-2"
    for folder in (home / "deep", neighbor):
        folder.mkdir(parents=True)
        (folder / "file").touch()
    for name, target in (("file", "deep/file"), ("folder", "deep"), ("here", "."), ("deep/up", "../file")):
        (home / name).symlink_to(target)
    (home / "whole").symlink_to(home / "deep/file")
    (home / "model.yaml").touch()
    refuse_links_out(home)
    (tmp_path / "link").symlink_to("run")
    refuse_links_out(tmp_path / "link")
    for name, target in (("out", "../run-2"), ("deep/out", "../../run-2/file"), ("gone", tmp_path / "gone")):
        (home / name).symlink_to(target)
        with pytest.raises(InputError, match=f"run/{name}: a link that leads out of the folder"):
            open_folder(home)
        (home / name).unlink()
    os.mkfifo(home / "deep/pipe")
    with pytest.raises(InputError, match="deep/pipe: neither a file nor a folder"):
        refuse_links_out(home)
    with pytest.raises(InputError, match="not a run or model folder"):
        refuse_links_out(tmp_path / ("../" * len(tmp_path.parts)))


def test_a_model_has_no_config_of_a_run(tmp_path):
    answers = [is_model_without_run(tmp_path)]
    for name in ("model.yaml", "config.yaml"):
        (tmp_path / name).touch()
        answers.append(is_model_without_run(tmp_path))
    assert answers == [False, True, False]


def test_open_folder_reports_missing_model_before_links(tmp_path):
    (tmp_path / "python").symlink_to("/bin/sh")
    with pytest.raises(InputError, match=r"no run or model folder: there is no model.yaml in it; give the folder"):
        open_folder(tmp_path)
    with pytest.raises(InputError, match="there is no model.yaml in it"):
        read_run(tmp_path)


def test_the_search_for_a_run_beside_a_mistaken_folder_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(run_folder, "MAX_CANDIDATES", 10)
    for number in range(20):
        (tmp_path / f"{number}/deep").mkdir(parents=True)
        (tmp_path / f"{number}/deep/model.yaml").touch()
    with pytest.raises(InputError, match="give the folder of a run, such as runs/NAME$"):
        open_folder(tmp_path)


@pytest.mark.parametrize("mistaken", [".", "runs", "runs/demo/checkpoints"])
def test_open_folder_hints_at_run_beside_wrong_folder(tmp_path, mistaken):
    (tmp_path / "runs/demo/checkpoints").mkdir(parents=True)
    (tmp_path / "runs/demo/model.yaml").touch()
    with pytest.raises(InputError, match=f"did you mean {tmp_path}/runs/demo[?]$"):
        open_folder(tmp_path / mistaken)
