"""Compiles filter expressions, as tcpdump and Wireshark take them, with this machine's libpcap."""

from __future__ import annotations

import ctypes
import ctypes.util
from functools import cache
from typing import Any

from airloom.errors import HostError, ScenarioError

ETHERNET, RADIOTAP = 1, 127
"""Link types of captures: Ethernet, and 802.11 with a radiotap header."""

Program = list[tuple[int, int, int, int]]
"""Instructions of the classic Berkeley Packet Filter: code, jt, jf, k."""

_WHOLE = 262_144
"""Octets of a frame that a match keeps: all."""
_NETMASK_UNKNOWN = 0xFFFFFFFF
_NAMES = ("libpcap.so.0.8", "libpcap.so.1")


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_ushort),
        ("jt", ctypes.c_ubyte),
        ("jf", ctypes.c_ubyte),
        ("k", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint), ("instructions", ctypes.POINTER(_Instruction)))


@cache
def _library() -> Any:
    further = ctypes.util.find_library("pcap")
    for name in (*_NAMES, *([further] if further else [])):
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        library.pcap_open_dead.restype = ctypes.c_void_p
        library.pcap_open_dead.argtypes = [ctypes.c_int, ctypes.c_int]
        library.pcap_compile.argtypes = [
            ctypes.c_void_p,
            ctypes.POINTER(_Program),
            ctypes.c_char_p,
            ctypes.c_int,
            ctypes.c_uint32,
        ]
        library.pcap_geterr.restype = ctypes.c_char_p
        library.pcap_geterr.argtypes = [ctypes.c_void_p]
        library.pcap_freecode.argtypes = [ctypes.POINTER(_Program)]
        library.pcap_close.argtypes = [ctypes.c_void_p]
        return library
    raise HostError(
        "host.libpcap", "libpcap, which compiles filters, is missing", cure="sudo apt-get install libpcap0.8"
    )


def compiled(expression: str, link_type: int) -> Program:
    """Returns the program of an expression such as ``tcp port 80``, for frames of a link type.

    Raises :class:`ScenarioError` with the words of libpcap.
    """
    library = _library()
    handle = library.pcap_open_dead(link_type, _WHOLE)
    if not handle:
        raise MemoryError
    try:
        program = _Program()
        text = expression.encode("utf-8", "surrogateescape")
        if b"\0" in text:
            raise ScenarioError("capture.filter", "the filter has an octet of value 0")
        if library.pcap_compile(handle, ctypes.byref(program), text, 1, _NETMASK_UNKNOWN) != 0:
            why = library.pcap_geterr(handle).decode("utf-8", "replace")
            raise ScenarioError(
                "capture.filter",
                f"the filter {expression!r} is none: {why}",
                cure="pcap-filter(7) describes them, such as 'tcp port 80'",
            )
        try:
            found = (program.instructions[number] for number in range(program.length))
            return [(one.code, one.jt, one.jf, one.k) for one in found]
        finally:
            library.pcap_freecode(ctypes.byref(program))
    finally:
        library.pcap_close(handle)
