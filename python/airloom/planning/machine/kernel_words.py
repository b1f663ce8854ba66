"""Words for the command line of a guest's kernel: how they are separated, and which are Airloom's.

The kernel separates words by blanks outside of double quotes, and takes ``-`` and ``_`` in names for the
same (``next_arg`` and ``parameq`` in ``kernel/params.c``). What it does not know itself it passes on to
the guest's init, which ignores it.
"""

from __future__ import annotations

import re

LONGEST = 1024
"""Characters of all words: a kernel's command line has 2048, and Airloom's own words are on it."""
MOST = 24
"""Words: a kernel passes on up to 32 that it does not know, and stops at more."""

_OWN = (
    *(r"console", r"init", r"initcall_blacklist", r"initrd", r"noinitrd", r"rdinit", r"mem", r"panic"),
    *(r"root", r"rootflags", r"rootfstype", r"mac80211_hwsim\.radios"),
)
"""Names that say how Airloom starts a guest, as patterns."""
_OWN_OF = {
    "uml": (
        *(r"con\d*", r"ssl\d*", r"ubd.*", r"udb.*", r"eth\d*", r"vec\d*", r"virtio_uml\.device", r"iomem"),
        *(r"umid", r"uml_dir", r"hostfs", r"mconsole", r"xterm", r"tty_log_fd", r"time_travel.*"),
        *(r"aio", r"dsp", r"mixer", r"fb_tunnels", r"dummy\.numdummies", r"pty\.legacy_count", r"gdb.*"),
    ),
    "qemu": (r"earlycon", r"earlyprintk", r"cryptomgr\.notests"),
}
"""Further ones by kind: devices on the host, and what Airloom switches off."""


def words(text: str) -> list[str]:
    """Returns the words of a text, with their quotes."""
    return re.findall(r'(?:[^\s"]|"[^"]*")+', text)


def flaw(text: str, kind: str) -> str | None:
    """Returns what is wrong with words for the kernel of a kind of node; None if nothing is."""
    if not (text.isascii() and text.isprintable()):
        return "a kernel's command line has printable ASCII characters on one line"
    if text.count('"') % 2:
        return "a quote has no end"
    found = words(text)
    if len(text) > LONGEST or len(found) > MOST:
        return f"{len(found)} words of {len(text)} characters are too many"
    for word in found:
        if word.startswith("-"):
            return f"{word!r} is no word for a kernel"
        name = re.split("[=:]", word.replace('"', ""), maxsplit=1)[0]
        patterns = (*_OWN, *_OWN_OF.get(kind, ()))
        if any(re.fullmatch(pattern, name.replace("-", "_")) for pattern in patterns):
            return f"{name!r} is for Airloom itself to say"
    return None
