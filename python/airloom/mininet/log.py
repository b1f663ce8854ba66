"""Messages at Mininet's levels: ``setLogLevel("info")``, ``info("*** text\\n")``.

Arguments are joined by spaces, and no newline is added. All output goes to standard error.
"""

from __future__ import annotations

import logging
import sys
from typing import Any

OUTPUT = 25
LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "output": OUTPUT,
    "warning": logging.WARNING,
    "warn": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
}
"""Level numbers by name; messages at or above the set level are printed."""
LOGLEVELDEFAULT = OUTPUT


class MininetLogger:
    """Prints messages at or above its level."""

    def __init__(self) -> None:
        self.level = LOGLEVELDEFAULT

    def setLogLevel(self, levelname: str | None = None) -> None:
        """Sets the level by its name."""
        level = LOGLEVELDEFAULT if levelname is None else LEVELS.get(levelname)
        if level is None:
            raise ValueError(f"there is no log level {levelname!r}; levels are: {', '.join(LEVELS)}")
        self.level = level

    def getEffectiveLevel(self) -> int:
        """Returns the set level."""
        return self.level

    def isEnabledFor(self, level: int) -> bool:
        """True if messages of this level are printed."""
        return level >= self.level

    def log(self, level: int, *args: Any, **kwargs: Any) -> None:
        """Prints the arguments, if their level is enabled."""
        if level >= self.level:
            sys.stderr.write(" ".join(str(arg) for arg in args))
            sys.stderr.flush()

    def debug(self, *args: Any, **kwargs: Any) -> None:
        """Prints details for debugging."""
        self.log(logging.DEBUG, *args)

    def info(self, *args: Any, **kwargs: Any) -> None:
        """Prints progress."""
        self.log(logging.INFO, *args)

    def output(self, *args: Any, **kwargs: Any) -> None:
        """Prints results; enabled by default."""
        self.log(OUTPUT, *args)

    def warning(self, *args: Any, **kwargs: Any) -> None:
        """Prints a warning."""
        self.log(logging.WARNING, *args)

    warn = warning

    def error(self, *args: Any, **kwargs: Any) -> None:
        """Prints an error."""
        self.log(logging.ERROR, *args)

    def critical(self, *args: Any, **kwargs: Any) -> None:
        """Prints a fatal error."""
        self.log(logging.CRITICAL, *args)


lg = MininetLogger()
debug, info, output = lg.debug, lg.info, lg.output
warn, warning, error, critical = lg.warn, lg.warning, lg.error, lg.critical
setLogLevel = lg.setLogLevel
