"""Makes the pictures of docs/images, in light and dark: ``python -m tests.pictures [first=RUN] [second=RUN]``.

They are parts of the report of a comparison. The default runs are those of ``make compare``. Needs Chromium and its
driver.
"""

import tempfile
from pathlib import Path

from mt.config import CompareConfig
from mt.evaluation.comparison.command import compare
from tests import options
from tests.browser import opened, shown_as

IMAGES = Path(__file__).parents[1] / "docs" / "images"
SCREEN = {"width": 1100, "height": 850, "deviceScaleFactor": 1.5, "mobile": False}
PARTS = {
    "attention": ".beside",
    "learning-curves": "img[alt^='Learning curves']",
    "bleu-by-length": "img[alt^='BLEU by length']",
}
"""Name of a picture → the CSS selector of this part of the report. ``comparison`` is the first screen."""
SUFFIXES = {"light": "", "dark": "-dark"}
"""Color scheme → what the names of its pictures end with."""


class Options(options.Options):
    first: str = "runs/demo"
    second: str = "runs/demo-rnn"


def main() -> None:
    runs = Options.parse(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        compare(CompareConfig(first=runs.first, second=runs.second, output=folder, timed_sentences=0))
        with opened(Path(folder, "report.html").as_uri(), "--hide-scrollbars") as browser:
            for scheme, suffix in SUFFIXES.items():
                with shown_as(browser, SCREEN, scheme):
                    browser.execute_script("scrollTo(0, 0)")
                    browser.save_screenshot(str(IMAGES / f"comparison{suffix}.png"))
                    for name, selector in PARTS.items():
                        browser.find_element("css selector", selector).screenshot(str(IMAGES / f"{name}{suffix}.png"))


if __name__ == "__main__":
    main()
