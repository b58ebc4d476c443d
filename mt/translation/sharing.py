"""Translation by several workers: the leader runs the command, and the others help with each call of a translator."""

from collections.abc import Callable, Sequence
from typing import Any

from mt.distributed.workers import Workers
from mt.translation.translator import Translator


def lead_or_help(workers: Workers, translators: Sequence[Translator], work: Callable[[], Any]) -> None:
    """Call ``work`` on the leader. Meanwhile, the other workers do their shares of its calls of translators.

    All workers have to call this. At the end, the leader's statistics have the counts of all.

    Args:
        workers: The workers.
        translators: The translators that ``work`` calls. Each worker has its own, of the same models.
        work: The command, which returns None. It reads the input and writes the output.
    """
    for index, translator in enumerate(translators):
        translator.index = index
    # The leader gets None once its work is done. The others get the arguments of its calls first.
    while call := workers.run_on_leader(work):
        index, method, arguments = call
        method(translators[index], *arguments)
    for translator in translators:
        own, *others = workers.gather([translator.statistics])
        for other in others if workers.is_leader else ():
            translator.statistics.add(other)
