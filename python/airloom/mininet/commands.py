"""Programs of a node: one shell for the node's lifetime, and programs started beside it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from airloom.mininet.errors import Unsupported
from airloom.mininet.log import debug, error, info
from airloom.mininet.popen import NodePopen
from airloom.mininet.session import session
from airloom.mininet.shell import BASH, SENTINEL, Shell
from airloom.mininet.util import decode
from airloom.nodes.kinds.netns import NetnsNode

_PID = re.compile("\x01(\\d+)\n")


class Commands:
    """Mixin of a node: running programs."""

    inToNode: ClassVar[dict[int, Any]] = {}
    outToNode: ClassVar[dict[int, Any]] = {}
    name: str

    def __init__(self) -> None:
        self.waiting = False
        self.readbuf = ""
        self.lastCmd: str | None = None
        self.lastPid: int | None = None
        self.execed = False
        self._shell: Shell | None = None

    @property
    def handle(self) -> NetnsNode:
        """Airloom's handle of the node."""
        raise NotImplementedError

    @property
    def folder(self) -> str:
        """The folder in which its programs start: that of the script."""
        return os.getcwd()

    @property
    def shells(self) -> Sequence[Sequence[str]]:
        """Commands that start its shell."""
        return (BASH,)

    def variables(self) -> dict[str, str]:
        """Returns the variables of its programs beside those of the script."""
        return session().environment(self.name)

    @property
    def shell(self) -> Shell:
        """The node's shell; the first use starts it."""
        if self._shell is None:
            self._shell = Shell(self.name, self.handle, self.variables(), self.folder, self.shells)
            self.inToNode[self._shell.descriptor] = self
            self.outToNode[self._shell.descriptor] = self
        return self._shell

    @property
    def stdout(self) -> _Stream:
        """Output stream of the shell, for ``poll``."""
        return _Stream(self.shell)

    stdin = stdout

    def closeShell(self) -> None:
        """Ends the shell."""
        if self._shell is not None:
            self.inToNode.pop(self._shell.descriptor, None)
            self.outToNode.pop(self._shell.descriptor, None)
            self._shell.close()
            self._shell = None

    @classmethod
    def fdToNode(cls, fd: int) -> Self | None:
        """Returns the node whose shell has this file descriptor."""
        return cls.outToNode.get(fd) or cls.inToNode.get(fd)

    def startShell(self, mnopts: str | None = None) -> None:
        """Starts the shell now."""
        if self._shell is not None:
            error(f"{self.name}: shell is already running\n")
        _ = self.shell

    def read(self, size: int = 1024) -> str:
        """Returns at most ``size`` characters of output; waits for the first."""
        if not self.readbuf:
            self.readbuf = self.shell.read()
        text, self.readbuf = self.readbuf[:size], self.readbuf[size:]
        return text

    def readline(self) -> str | None:
        """Returns a line of output, or None if none is complete."""
        self.readbuf += self.shell.read()
        line, end, rest = self.readbuf.partition("\n")
        if not end:
            return None
        self.readbuf = rest
        return line

    def write(self, data: str) -> None:
        """Writes text to the shell or to its foreground program."""
        self.shell.write(data)

    def waitReadable(self, timeoutms: float | None = None) -> bool:
        """True if output arrives within ``timeoutms`` milliseconds."""
        return bool(self.readbuf) or self.shell.readable(None if timeoutms is None else timeoutms / 1000)

    def sendCmd(self, *args: Any, **kwargs: Any) -> None:
        """Sends a command and returns; :meth:`waitOutput` and :meth:`monitor` return its output."""
        assert not self.waiting, f"{self.name}: a command is running; waitOutput() first"
        printPid = kwargs.get("printPid", True)
        words = args[0] if len(args) == 1 and isinstance(args[0], list | tuple) else args
        cmd = " ".join(str(word) for word in words)
        if not re.search(r"\w", cmd):
            cmd = "echo -n"
        self.lastCmd = cmd
        self.lastPid = None
        if printPid and cmd.rstrip().endswith("&") and not cmd.rstrip().endswith("&&"):
            cmd += ' printf "\\001%d\\n" $!'
        self.shell.write(cmd + "\n")
        self.waiting = True

    def sendInt(self, intr: str = "\x03") -> None:
        """Interrupts the running command, as ^C does."""
        self.write(intr)

    def monitor(self, timeoutms: float | None = None, findPid: bool = True) -> str:
        """Returns output of the running command; ``waiting`` is false after its end."""
        if not self.waitReadable(timeoutms):
            return ""
        text = self.read(1 << 16)
        if not text:
            self.waiting = False
            return ""
        if findPid and "\x01" in text:
            while not _PID.search(text) and self.waitReadable(1000):
                text += self.read(1 << 16)
            match = _PID.search(text)
            if match:
                self.lastPid = int(match.group(1))
                text = text[: match.start()] + text[match.end() :]
        if SENTINEL in text:
            self.waiting = False
            text = text.replace(SENTINEL, "")
        return text

    def waitOutput(self, verbose: bool = False, findPid: bool = True) -> str:
        """Waits for the running command; returns its standard output and errors."""
        log = info if verbose else debug
        found = ""
        while self.waiting:
            piece = self.monitor(findPid=findPid)
            found += piece
            log(piece)
        return found

    def cmd(self, *args: Any, **kwargs: Any) -> str:
        """Runs a command in the shell; returns its standard output and errors."""
        verbose = kwargs.get("verbose", False)
        (info if verbose else debug)(f"*** {self.name} : {args}\n")
        self.sendCmd(*args, **kwargs)
        return self.waitOutput(verbose)

    def cmdPrint(self, *args: Any) -> str:
        """Runs a command; prints the command and its output."""
        return self.cmd(*args, verbose=True)

    def popen(self, *args: Any, **kwargs: Any) -> Any:
        """Starts a program beside the shell; like :class:`subprocess.Popen`, with pipes."""
        kwargs.pop("mncmd", None)
        shell = kwargs.pop("shell", False)
        text = any(kwargs.pop(word, None) for word in ("text", "universal_newlines", "encoding"))
        for word in ("bufsize", "close_fds"):
            kwargs.pop(word, None)
        kwargs["cwd"] = kwargs.get("cwd") or self.folder
        words = args[0] if len(args) == 1 and isinstance(args[0], list | tuple) else args
        if shell:
            argv = ["/bin/sh", "-c", " ".join(map(str, words))]
        elif len(words) == 1 and isinstance(words[0], str):
            argv = shlex.split(words[0])
        else:
            argv = [str(word) for word in words]
        unknown = sorted(set(kwargs) - {"stdin", "stdout", "stderr", "cwd", "env"})
        if unknown:
            raise Unsupported(f"{self.name}.popen({unknown[0]}=...)", "the program runs in another namespace")
        if kwargs.get("env") is None:
            return NodePopen(self.handle, argv, text=text, more=self.variables(), **kwargs)
        return NodePopen(self.handle, argv, text=text, **kwargs)

    def pexec(self, *args: Any, **kwargs: Any) -> tuple[str, str, int]:
        """Runs a program beside the shell; returns its output, errors and exit code."""
        popen = self.popen(*args, stdin=subprocess.DEVNULL, **kwargs)
        out, err = popen.communicate()
        return decode(out or b""), decode(err or b""), popen.wait()


class _Stream:
    """The output of a shell as a file object, with the methods that scripts use."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    def fileno(self) -> int:
        """The descriptor."""
        return self._shell.descriptor

    def write(self, text: str) -> None:
        """Sends text to the shell."""
        self._shell.write(text)

    def flush(self) -> None:
        """Does nothing: writes are unbuffered."""
