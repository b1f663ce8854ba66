"""A fleet: machines that share the runs of a sweep.

* :mod:`airloom.fleet.launchers`: which machines there are, and the command that reaches each
* :mod:`airloom.fleet.machine`: one machine, as the process that shares out runs has it
* :mod:`airloom.fleet.agent`: what runs there

A machine has one connection: the standard streams of a command such as ``ssh``. Nothing listens on a port.
The agent and all that it started end with the connection.
"""

from airloom.fleet.machine import Machine, MachineLost, connect

__all__ = ["Machine", "MachineLost", "connect"]
