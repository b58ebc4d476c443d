"""Where the export for CTranslate2 was before: ``python -m mt.translation.ctranslate2`` names its new place."""

import sys

if __name__ == "__main__":
    print("this command has moved: python -m mt.export.ctranslate2, with the same settings", file=sys.stderr)
    sys.exit(2)
