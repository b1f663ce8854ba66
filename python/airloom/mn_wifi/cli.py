"""The prompt, that of Mininet."""

from airloom.mininet.cli import CLI

CLI_wifi = CLI

__all__ = ["CLI", "CLI_wifi"]
