"""Our training step and our decoding beside the peers' as they come: ``make bench``.

Each contestant is a module with one function and runs in a process of its own (contestant.py); the runner
(__main__.py) lets them take turns, so that whatever else the machine does meets them all alike.
"""
