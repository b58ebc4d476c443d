"""A folder that may come from somebody else holds files and folders alone, and no way out."""

import os

import pytest

from mt.core.errors import InputError
from mt.storage.folders import is_model_without_run, open_folder, refuse_links_out


def test_links_may_lead_to_the_folder_itself_alone(tmp_path):
    home, neighbour = tmp_path / "run", tmp_path / "run-2"
    for folder in (home / "deep", neighbour):
        folder.mkdir(parents=True)
        (folder / "file").touch()
    for name, target in (("file", "deep/file"), ("folder", "deep"), ("here", "."), ("deep/up", "../file")):
        (home / name).symlink_to(target)
    (home / "whole").symlink_to(home / "deep/file")
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
