"""Compare the answers of today's code with the recorded ones; with the argument ``record``, record them instead.

The exit status is 1 if any answer differs.
"""

import sys
from difflib import unified_diff
from pprint import pformat

from tests.golden import recording

MAX_SHOWN = 200


def main() -> None:
    content = recording.read()
    if sys.argv[1:] == ["record"]:
        return recording.write(content | {"answers": recording.answers(content)})
    summary, differs = [], False
    for kind, triples in recording.compared(content).items():
        differing = [triple for triple in triples if triple[1] != triple[2]]
        differs |= bool(differing)
        for question, *sides in differing[:MAX_SHOWN]:
            texts = [pformat(side, width=160).splitlines() for side in sides]
            print(ascii(question)[:500], *list(unified_diff(*texts, n=0, lineterm=""))[2:], sep="\n")
        summary.append(f"{kind}: {len(differing):,} of {len(triples):,} differ ({len(differing) / len(triples):.2%})")
    print(*summary, sep="\n")
    sys.exit(differs)


if __name__ == "__main__":
    main()
