"""Calls into a helper process that has the privilege to create namespaces.

A process with threads cannot move into a user namespace (user_namespaces(7)), and the packages that
Airloom uses start threads. So the Python API of an ordinary user starts one helper process, which
enters a user namespace before it imports anything else, and calls the laboratory there.

* :mod:`airloom.rpc.references`: which objects stay in their process, and the proxies of these
* :mod:`airloom.rpc.wire`: the messages on the socket between both processes
* :mod:`airloom.rpc.helper`: the helper process
* :mod:`airloom.rpc.lease`: that both sides of a connection to another machine live
* :mod:`airloom.rpc.standing`: a helper process on another machine, behind its standard streams
* :mod:`airloom.rpc.client`: what the calling process does
"""

from airloom.rpc.client import Lasting, Remote, Worker, call, call_until_stopped, forget, is_needed
from airloom.rpc.references import Listener, Stays

__all__ = [
    "Lasting",
    "Listener",
    "Remote",
    "Stays",
    "Worker",
    "call",
    "call_until_stopped",
    "forget",
    "is_needed",
]
