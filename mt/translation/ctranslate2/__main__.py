"""Exports a run for CTranslate2: ``python -m mt.translation.ctranslate2 --help`` lists the settings."""

from mt.entry_points import export_for_ctranslate2

if __name__ == "__main__":
    export_for_ctranslate2()
