"""Messages at Mininet's levels: ``setLogLevel("info")``, ``info("*** text\\n")``.

Arguments are joined by spaces, and no line end is added. Everything goes to standard error.
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
"""Names of levels; a message is shown if its level is at least the one that is set."""
LOGLEVELDEFAULT = OUTPUT


class MininetLogger:
    """Writes what is at or above its level."""

    def __init__(self) -> None:
        self.level = LOGLEVELDEFAULT

    def setLogLevel(self, levelname: str | None = None) -> None:
        """Sets the level by its name."""
        level = LOGLEVELDEFAULT if levelname is None else LEVELS.get(levelname)
        if level is None:
            raise ValueError(f"there is no log level {levelname!r}; levels are: {', '.join(LEVELS)}")
        self.level = level

    def getEffectiveLevel(self) -> int:
        """The level that is set."""
        return self.level

    def isEnabledFor(self, level: int) -> bool:
        """Whether a level is shown."""
        return level >= self.level

    def log(self, level: int, *args: Any, **kwargs: Any) -> None:
        """Writes the arguments, if the level is shown."""
        if level >= self.level:
            sys.stderr.write(" ".join(str(arg) for arg in args))
            sys.stderr.flush()

    def debug(self, *args: Any, **kwargs: Any) -> None:
        """For whoever looks for a mistake."""
        self.log(logging.DEBUG, *args)

    def info(self, *args: Any, **kwargs: Any) -> None:
        """What is being done."""
        self.log(logging.INFO, *args)

    def output(self, *args: Any, **kwargs: Any) -> None:
        """Results; shown by default."""
        self.log(OUTPUT, *args)

    def warning(self, *args: Any, **kwargs: Any) -> None:
        """Something is not as it was meant."""
        self.log(logging.WARNING, *args)

    warn = warning

    def error(self, *args: Any, **kwargs: Any) -> None:
        """Something went wrong."""
        self.log(logging.ERROR, *args)

    def critical(self, *args: Any, **kwargs: Any) -> None:
        """Nothing goes on after this."""
        self.log(logging.CRITICAL, *args)


lg = MininetLogger()
debug, info, output = lg.debug, lg.info, lg.output
warn, warning, error, critical = lg.warn, lg.warning, lg.error, lg.critical
setLogLevel = lg.setLogLevel
