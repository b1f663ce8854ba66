"""A tool of this machine in a script's network: asks the script's session, or runs the real tool.

The folders ``machine_tools`` and ``node_tools`` have a file for each tool, which runs this one. Scripts call
tc many times a second, so this file imports nothing but modules of the interpreter's core: with ``socket``,
``json`` and ``os`` a call takes 55 ms of a processor, without them 10 ms.

The variable ``AIRLOOM_TOOLS`` says where the session listens: an abstract socket and its key, or the path of
a socket. A question is the key, the working folder and the words, with NUL between them, and the standard
descriptors. The answer is ``elsewhere``, or ``exited`` and the exit code.
"""

import _signal  # type: ignore[import-not-found]
import _socket
import posix
import sys

_FOLDERS = (b"machine_tools", b"node_tools")
_LONGEST = 1 << 16
_SIGNALS = (2, 15)


def _asked(words: list[bytes]) -> int | None:
    """Returns the exit code of what the session did; None if this is none of its business."""
    name, _, key = posix.environ.get(b"AIRLOOM_TOOLS", b"").partition(b"#")
    question = b"\0".join([key, posix.getcwdb(), *words])
    if not name or len(question) > _LONGEST:
        return None
    channel = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    descriptors = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
    try:
        channel.connect(name if name.startswith(b"/") else b"\0" + name)
        channel.sendmsg([question], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, descriptors)])
    except OSError:
        return None
    for number in _SIGNALS:
        _signal.signal(number, lambda number, _: channel.send(b"%d" % number))
    answer, _, code = channel.recv(_LONGEST).partition(b" ")
    if answer == b"elsewhere":
        return None
    return int(code) if answer == b"exited" else 1


def _real(words: list[bytes]) -> None:
    """Runs the tool of the machine."""
    folders = posix.environ.get(b"PATH", b"/bin:/usr/bin").split(b":")
    for folder in (*folders, b"/usr/sbin", b"/sbin"):
        if folder.rpartition(b"/")[2] not in _FOLDERS:
            try:
                posix.execv(folder + b"/" + words[0], words)
            except OSError:
                continue
    posix.write(2, words[0] + b": command not found\n")
    raise SystemExit(127)


def main() -> None:
    """Does what the words of the command line say."""
    words = [word.encode(errors="surrogateescape") for word in sys.argv[1:]]
    code = _asked(words)
    if code is not None:
        raise SystemExit(code)
    for number in _SIGNALS:
        _signal.signal(number, _signal.SIG_DFL)
    _real(words)


if __name__ == "__main__":
    main()
