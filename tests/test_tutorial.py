"""The notebook docs/tutorial.ipynb: its stored outputs, and its execution with small models on the toy language."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests import toy

TUTORIAL = Path(__file__).parents[1] / "docs" / "tutorial.ipynb"


def _outputs(notebook, kind):
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output for output in outputs if output.output_type == kind]


def _assert_figures_and_no_errors(notebook):
    figures = _outputs(notebook, "display_data")
    assert len(figures) == 7 and all(figure.metadata["image/png"]["alt"] for figure in figures)
    assert not _outputs(notebook, "error")


def test_tutorial_stores_its_outputs():
    _assert_figures_and_no_errors(nbformat.read(TUTORIAL, 4))
    assert TUTORIAL.stat().st_size <= 1_000_000


@pytest.mark.slow
def test_tutorial_runs(tmp_path, monkeypatch):
    toy.write_corpus(tmp_path, "reverse", train=300)
    corpus = [f"data.{split}=[{tmp_path}/{split}.xx,{tmp_path}/{split}.yy]" for split in ("train", "valid", "test")]
    settings = [
        "data=files", "data.source_language=en", "data.target_language=fr", *corpus, "tokenizer.vocabulary_size=320",
        "model.width=32", "model.encoder_layers=1", "model.decoder_layers=1", "training.max_updates=20",
        "training.validate_every=10", "training.schedule.warmup=5", "training.batch_tokens=256", "training.log_every=5",
    ]  # fmt: skip
    monkeypatch.setenv("TUTORIAL_SETTINGS", " ".join(settings))
    notebook = nbformat.read(TUTORIAL, 4)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": tmp_path}}).execute()
    _assert_figures_and_no_errors(notebook)
