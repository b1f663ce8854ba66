"""Network namespaces for tests of the extension module, without the node kinds of Airloom."""

import ctypes
import threading

CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)


def node(number: int) -> dict:
    interface = {
        "name": "eth0",
        "mac": f"02:00:00:00:00:{number:02x}",
        "mtu": 1500,
        "addresses": [f"10.0.0.{number}/24"],
    }
    return {"name": f"h{number}", "interfaces": [interface]}


def inside(namespace, act):
    """Returns the result of ``act``, run on a thread in a node's network namespace."""
    result = []

    def enter() -> None:
        if LIBC.setns(namespace.fileno(), CLONE_NEWNET) != 0:
            result.append(OSError(ctypes.get_errno(), "setns"))
            return
        result.append(act())

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    if isinstance(result[0], OSError):
        raise result[0]
    return result[0]
