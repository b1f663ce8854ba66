"""Finds the files that programs need, for an image of this machine's own programs.

The result contains the programs, the interpreters of scripts, shared libraries with the dynamic
loader, the Python standard library, and data folders that some programs require. Symbolic links on
the way to a file are included, so every path means the same as on this machine.

The program's own loader lists the libraries (``ld.so --list``). It applies run paths, its cache and
the variants for the processor, which a reader of ``DT_NEEDED`` would have to repeat. It executes no
code of the program.
"""

from __future__ import annotations

import errno
import glob
import json
import os
import re
import shlex
import stat
import struct
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from airloom.errors import HostError
from airloom.host import programs as installed
from airloom.images.archive import PATH, ImageError

_TABLES = ("/etc/iproute2", "/usr/share/iproute2")
_EXTENSIONS = ("/usr/lib/*/xtables", "/usr/lib*/xtables")
_DATA = {
    "bridge": _TABLES,
    "ip": _TABLES,
    "ip6tables": _EXTENSIONS,
    "iptables": _EXTENSIONS,
    "ss": _TABLES,
    "tc": (*_TABLES, "/usr/lib/tc"),
}
"""Program: glob patterns of what it reads or loads at run time."""
_EVERYWHERE = ("/bin", "/sbin", "/lib", "/lib64", "/etc/protocols", "/etc/services")
"""Paths that every image includes if they exist; the folders because they may be links."""
_COMPANIONS = ("libgcc_s.so.1", "libnss_files.so.2", "libnss_dns.so.2")
"""Libraries that the C library loads itself: at thread exit, and for names (before glibc 2.34)."""
_PYTHON = re.compile(r"python(3(\.\d+)?)?")
_NO_NODE_NEEDS = re.compile(
    r"site-packages|dist-packages|tests?|idlelib|idle_test|ensurepip|tkinter|turtledemo|_tkinter.*|config-.*|.*\.a"
)
"""Parts of a standard library to leave out: add-on packages, tests, GUI and build tools."""
_ASK = (
    "import json, sys, sysconfig; print(json.dumps([sys._base_executable, sys.implementation.cache_tag,"
    " sysconfig.get_path('stdlib'), sysconfig.get_path('platstdlib')]))"
)
_OF_THE_KERNEL = ("/proc", "/sys", "/dev")
"""Every node mounts its own."""
_HOPS = 40
"""Most symbolic links on one path, as in the kernel."""
_PT_INTERP = 3

TEXTS = {
    "/etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n"
    "networks: files\nprotocols: files\nservices: files\n",
    "/etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
}
"""Files written into the image: the user database holds only the users that programs need."""


@dataclass(frozen=True, slots=True)
class File:
    """A file of this machine, under its own path."""

    size: int
    mtime_ns: int
    mode: int


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link."""

    target: str


@dataclass(frozen=True, slots=True)
class Text:
    """A file with generated content."""

    content: str


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder."""

    mode: int = 0o755


Entry = File | Link | Text | Folder


def gather(programs: Sequence[str], more: Sequence[str] = ()) -> dict[str, Entry]:
    """Returns all files that the programs need, by path, sorted; ``more`` are extra paths.

    Programs are given by name or path, as in a shell. Raises :class:`HostError` that names all that
    are missing.
    """
    found = _Gathering()
    try:
        for name in programs:
            found.program(name)
    except OSError as error:
        raise HostError("image.unreadable", f"{error.filename} cannot be read: {error.strerror}") from None
    if found.missing:
        raise HostError(
            "host.program.missing",
            f"not on this machine: {', '.join(found.missing)}",
            cure=installed.cure(found.missing),
        )
    for path in more:
        found.asked(path)
    return found.whole()


class _Gathering:
    def __init__(self) -> None:
        self.missing: list[str] = []
        self._entries: dict[str, Entry] = {}
        self._looked_at: set[str] = set()
        self._pythons: dict[str, str] = {}
        """Path as given: the path of the interpreter that it leads to."""
        self._loader = _loader_of(os.path.realpath(sys.executable))
        """The loader for shared objects, which name none themselves."""
        self._libraries: dict[tuple[str, str], str] = {}
        """Loader and name of a library: its path."""

    def program(self, name: str) -> None:
        """Adds a program under its own path and where programs are searched for."""
        found = installed.find(name)
        if found is None:
            self.missing.append(name)
            return
        path = os.path.join(os.getcwd(), found)
        base = self._python(path) if _PYTHON.fullmatch(found.name) else path
        real = os.path.realpath(base)
        by_path = "/" in name
        stands_for = real != os.path.realpath(path)  # for example a version manager's script
        where_looked_for = os.path.dirname(path) in PATH.split(":")
        if not stands_for and (by_path or where_looked_for):
            self._take(path)
        if by_path and stands_for:
            self._entries[path] = Link(real)
        if not where_looked_for or (stands_for and not by_path):
            self._entries.setdefault(f"/usr/local/bin/{found.name}", Link(real))
        self._look_at(self._take(real), required=True)
        for pattern in _DATA.get(found.name, ()):
            for folder in sorted(glob.glob(pattern)):
                self._folder(folder)

    def asked(self, path: str) -> None:
        """Adds a file or folder that the caller named."""
        try:
            real = self._take(os.path.join(os.getcwd(), path))
        except OSError as error:
            raise ImageError(
                "image.file", f"{path} cannot be added: {error.strerror}", where="--with"
            ) from None
        if os.path.isdir(real):
            self._folder(real)
        else:
            self._look_at(real, required=True)

    def whole(self) -> dict[str, Entry]:
        """Returns all entries with those of every image, folders before their content."""
        for path in filter(os.path.exists, _EVERYWHERE):
            self._take(path)
        self._beside_the_c_library()
        for path, text in TEXTS.items():
            self._entries[path] = Text(text)
        for path, mode in (("/root", 0o755), ("/tmp", 0o1777), ("/var/tmp", 0o1777), ("/run", 0o755)):
            self._entries[path] = Folder(mode)
        for path in list(self._entries):
            while (path := os.path.dirname(path)) != "/":
                self._entries.setdefault(path, Folder())
        return dict(sorted(self._entries.items()))

    def _take(self, path: str) -> str:
        """Adds a path and all links on the way; returns the real path, or raises OSError."""
        rest = deque(_parts(path))
        here, hops = "/", 0
        while rest and here not in _OF_THE_KERNEL:
            part = rest.popleft()
            if part == "..":
                here = os.path.dirname(here)
                continue
            step = os.path.join(here, part)
            about = os.lstat(step)
            if stat.S_ISLNK(about.st_mode):
                hops += 1
                if hops > _HOPS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
                target = os.readlink(step)
                self._entries[step] = Link(target)
                here = "/" if target.startswith("/") else here
                rest.extendleft(reversed(_parts(target)))
                continue
            if stat.S_ISDIR(about.st_mode):
                self._entries.setdefault(step, Folder())
            elif stat.S_ISREG(about.st_mode):
                self._entries[step] = File(about.st_size, about.st_mtime_ns, about.st_mode & 0o777)
            here = step
        return here

    def _folder(self, path: str, *, compiled: str | None = None) -> None:
        """Adds a folder's content; ``compiled``: suffix of a standard library's compiled modules."""
        real = self._take(path)
        for entry in sorted(os.scandir(real), key=lambda one: one.name):
            if compiled is not None and not _wanted(entry, compiled):
                continue
            try:
                found = self._take(entry.path)
            except OSError:  # a dangling link is kept as it is
                continue
            if entry.is_dir(follow_symlinks=False):
                self._folder(found, compiled=compiled)
            elif isinstance(self._entries.get(found), File):
                self._look_at(found, required=False)

    def _python(self, path: str) -> str:
        """Returns the interpreter behind a path, which may be a script or a link.

        The ``python3`` of a virtual environment or version manager starts another interpreter, and
        only that one can report where its library is.
        """
        if path not in self._pythons:
            said = subprocess.run([path, "-I", "-S", "-c", _ASK], capture_output=True, text=True, check=False)
            try:
                base, tag, *libraries = json.loads(said.stdout)
            except ValueError:
                raise HostError(
                    "image.python",
                    f"{path} does not print the place of its library: {said.stderr.strip()[-200:]}",
                ) from None
            self._pythons[path] = base
            self._look_at(self._take(base), required=True)
            for library in dict.fromkeys(libraries):
                self._folder(library, compiled=f".{tag}.pyc")
        return self._pythons[path]

    def _look_at(self, real: str, *, required: bool) -> None:
        """Adds what a file needs to run or to be loaded."""
        if real in self._looked_at:
            return
        self._looked_at.add(real)
        with open(real, "rb") as file:
            head = file.read(4096)
        if head.startswith(b"\x7fELF"):
            own = _loader_of(real)
            loader = own or (self._loader if _is_shared_object(real) else None)
            if own is not None:
                self._loader = own
            if loader is not None:
                self._linked(real, loader, required=required)
        elif head.startswith(b"#!") and required:
            self._script(head[2:].partition(b"\n")[0].decode(errors="replace"))

    def _script(self, line: str) -> None:
        """Adds the interpreter of a script, and the program that ``env`` would start."""
        interpreter, _, rest = line.strip().partition(" ")
        self.program(interpreter)
        if os.path.basename(interpreter) == "env":
            words = [word for word in shlex.split(rest) if not word.startswith("-") and "=" not in word]
            if words:
                self.program(words[0])

    def _linked(self, real: str, loader: str, *, required: bool) -> None:
        """Adds all libraries that the loader lists for a program or shared object."""
        environment = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
        asked = subprocess.run(
            [loader, "--list", real], env=environment, capture_output=True, text=True, check=False
        )
        lacking = re.findall(r"^\s*(\S+) => not found", asked.stdout, re.MULTILINE)
        if required and (asked.returncode or lacking):
            why = ", ".join(lacking) or asked.stderr.strip() or f"its loader ended with {asked.returncode}"
            raise HostError("image.library", f"libraries that {real} needs are not on this machine: {why}")
        self._take(loader)
        for name, path in re.findall(r"^\s*(\S+) => (/.+) \(0x", asked.stdout, re.MULTILINE):
            self._libraries.setdefault((loader, os.path.basename(name)), path)
            self._looked_at.add(self._take(path))

    def _beside_the_c_library(self) -> None:
        """Links libraries into the loader's default folder: the image has no loader cache."""
        homes = {
            loader: os.path.dirname(os.path.realpath(path))
            for (loader, name), path in self._libraries.items()
            if name.startswith(("libc.so", "libc.musl"))
        }
        for home in homes.values():
            for path in (os.path.join(home, name) for name in _COMPANIONS):
                if os.path.exists(path):
                    self._look_at(self._take(path), required=False)
        for (loader, name), path in self._libraries.items():
            if loader in homes:
                self._entries.setdefault(os.path.join(homes[loader], name), Link(os.path.realpath(path)))


def _wanted(entry: os.DirEntry[str], compiled: str) -> bool:
    """True if an image should contain this part of a standard library.

    Compiled modules are included: without them every interpreter start would compile them again.
    """
    if entry.name.endswith(".pyc"):
        source = Path(entry.path).parents[1] / f"{entry.name.removesuffix(compiled)}.py"
        return entry.name.endswith(compiled) and source.exists()
    return _NO_NODE_NEEDS.fullmatch(entry.name) is None


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _is_shared_object(path: str) -> bool:
    return bool(re.search(r"\.so(\.|$)", os.path.basename(path)))


def _loader_of(path: str) -> str | None:
    """Returns an ELF program's dynamic loader (PT_INTERP); None if static or a library."""
    with open(path, "rb") as file:
        head = file.read(64)
        if len(head) < 52 or not head.startswith(b"\x7fELF"):
            return None
        wide, order = head[4] == 2, "<" if head[5] == 1 else ">"
        start = struct.unpack_from(order + ("Q" if wide else "I"), head, 32 if wide else 28)[0]
        size, count = struct.unpack_from(f"{order}HH", head, 54 if wide else 42)
        for number in range(count):
            file.seek(start + number * size)
            entry = file.read(size)
            if struct.unpack_from(f"{order}I", entry)[0] == _PT_INTERP:
                place = struct.unpack_from(order + ("Q" if wide else "I"), entry, 8 if wide else 4)[0]
                length = struct.unpack_from(order + ("Q" if wide else "I"), entry, 32 if wide else 16)[0]
                file.seek(place)
                return file.read(length).rstrip(b"\0").decode()
    return None
