"""Tests of ``python -m mt average``."""

import torch
from safetensors.torch import load_file

import mt
from tests.in_process import call


def test_average_of_checkpoint_and_run_is_model_folder(shared_runs, tmp_path):
    paths = [shared_runs["transformer-1"] / "checkpoints/step_80", shared_runs["transformer-2"]]
    done = call("average", f"run=[{shared_runs['transformer-1']}@80,{paths[1]}]", "output=mean", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    first, second, mean = (load_file(path / "model.safetensors") for path in (*paths, tmp_path / "mean"))
    for name, tensor in mean.items():
        torch.testing.assert_close(tensor, (first[name] + second[name]) / 2)
    assert mt.load(tmp_path / "mean", device="cpu").translate([""]) == [""]


def test_average_refuses_another_architecture(shared_runs, tmp_path):
    words = f"run=[{shared_runs['transformer-1']},{shared_runs['rnn-1']}]"
    done = call("average", words, "output=mean", folder=tmp_path)
    assert done.returncode == 2 and not (tmp_path / "mean").exists()
    assert "architecture.architecture is rnn_attention instead of transformer" in done.stderr
