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
    answers = recording.answers(content)
    if sys.argv[1:] == ["record"]:
        return recording.write(content | {"answers": answers})
    summary, differences = [], 0
    for kind, today in answers.items():
        triples = zip(content[kind], content["answers"][kind], today, strict=True)
        differing = [triple for triple in triples if triple[1] != triple[2]]
        differences += len(differing)
        for question, *sides in differing[:MAX_SHOWN]:
            texts = [pformat(side, width=160).splitlines() for side in sides]
            print(ascii(question)[:500], *list(unified_diff(*texts, n=0, lineterm=""))[2:], sep="\n")
        summary.append(f"{kind}: {len(differing):,} of {len(today):,} differ ({len(differing) / len(today):.2%})")
    print(*summary, sep="\n")
    sys.exit(differences > 0)


if __name__ == "__main__":
    main()
