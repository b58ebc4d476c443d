"""A main process that waits for a worker and does nothing else: ``python -m tests.main_process (die|sleep)``."""

import os
import sys
import time

from mt.distributed import launch


def die(info: object) -> None:
    os._exit(7)


def sleep(info: object) -> None:
    time.sleep(120)


if __name__ == "__main__":
    launch.MAIN_GRACE_SECONDS = 0.5
    with launch.local_workers(2, {"die": die, "sleep": sleep}[sys.argv[1]]):
        time.sleep(120)
