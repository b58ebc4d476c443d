"""Faults, put on purpose into the way of the real commands: ``make faults``. ``test_campaign.py`` is the short form."""
