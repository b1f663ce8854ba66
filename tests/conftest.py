"""What holds for all tests."""

import signal

from hypothesis import settings

# A test's time limit is pytest's; a limit for each example would fail whenever the machine is busy.
settings.register_profile("airloom", deadline=None)
settings.load_profile("airloom")

# In the background of a script Ctrl-C is ignored, which programs that tests start would inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)
