"""What holds for all tests."""

from hypothesis import settings

# A test's time limit is pytest's; a limit for each example would fail whenever the machine is busy.
settings.register_profile("airloom", deadline=None)
settings.load_profile("airloom")
