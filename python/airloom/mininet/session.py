"""The session of a process: one live emulation that all its networks share.

It opens with the first node and closes after the last, or when the process ends.
"""

from __future__ import annotations

import atexit
import os

from airloom.lab.server import LiveServer
from airloom.mininet.emulation import Session
from airloom.mininet.standing import NODES, SWITCHES
from airloom.mininet.terminals import Terminals, name_of_script
from airloom.nodes import doctor
from airloom.runs import notebook

_session: Session | None = None


def session() -> Session:
    """Returns the session; opens one, also to other terminals, if there is none."""
    global _session
    if _session is None:
        # A notebook would lose its cells.
        doctor.require_basics(restart=not notebook.is_here())
        opened = Session(close)
        try:
            door = Terminals(opened)
            opened.at_close(LiveServer(name_of_script(), door, door).close)
        except BaseException:
            opened.close()
            raise
        _session = opened
    return _session


def current() -> Session | None:
    """Returns the open session, or None."""
    return _session


def close() -> None:
    """Closes the session, if there is one."""
    global _session
    old, _session = _session, None
    if old is not None and old.process == os.getpid():
        old.close()
        # A network that could not be made has never stopped its nodes.
        NODES.clear()
        SWITCHES.clear()


atexit.register(close)
