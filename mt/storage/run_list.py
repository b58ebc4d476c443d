"""``python -m mt runs``: lists the runs in a folder. It does not import PyTorch, so that it answers at once."""

import re
import time
from pathlib import Path

from mt.config import RunListConfig
from mt.core.errors import InputError
from mt.core.json_file import read_json
from mt.core.wording import aligned, visible
from mt.storage.run_folder import CONFIG, RESULTS, checkpoint_folders, read_results


def list_runs(config: RunListConfig) -> None:
    """Print a line for each run in the folder ``config.runs``, the newest last.

    Raises:
        InputError: The folder does not exist, or has no runs in it.
    """
    rows = sorted(map(_row, Path(config.runs).glob(f"*/{CONFIG}")))
    if not rows:
        raise InputError(f"runs={config.runs}: no such folder, or no runs in it; give the folder with the run folders")
    # Names are last, because they may have characters of other widths.
    headings = ("started", "languages", "model", "state", "BLEU", "chrF2", "validation", "metric", "run")
    print(visible(aligned([headings, *rows])), flush=True)


def _row(path: Path) -> list[str]:
    """Return the cells of the run with this config.yaml."""
    run = path.parent
    try:
        # Each of these settings has a line of its own. PyYAML would take 6 ms for the file.
        values = dict(re.findall(r"^  (\w+): '?(\S+?)'?$", path.read_text(encoding="utf-8"), re.MULTILINE))
        state = "no checkpoint"
        if (run / RESULTS).exists():
            values |= read_results(run)
            state = "stopped early" if values["stopped_early"] else "finished"
        elif folders := checkpoint_folders(run):
            update, folder = folders.popitem()
            values["best_valid_score"] = read_json(folder / "progress.json")["best_score"]
            state = f"update {update} of {values['max_updates']}"
        cells = [
            f"{values['source_language']}→{values['target_language']}",
            f"{values['architecture']} {values['width']}",
            state,
            *(
                "" if score is None else f"{abs(score):.2f}"
                for score in map(values.get, ("bleu", "chrf", "best_valid_score"))
            ),
            values["metric"],
        ]
    except (InputError, OSError, KeyError, TypeError, ValueError):
        cells = ["", "", "damaged", *[""] * 4]
    started = time.strftime("%Y-%m-%d %H:%M", time.localtime(path.lstat().st_mtime))
    return [started, *cells, " ".join(run.name.split())]
