"""The prompt of ``airloom up``: commands in the style of Mininet for a live laboratory.

A line that begins with a node's name is a command in that node; names of other nodes in it are
replaced by their addresses. All other lines are commands of the prompt.
"""

from __future__ import annotations

import cmd
import os
import re
import shlex
from collections.abc import Iterable, Sequence
from typing import IO, TYPE_CHECKING, Any

from airloom.errors import LabError
from airloom.host.files import content
from airloom.lab.client import ACTIONS, Client
from airloom.lab.running import find
from airloom.lab.tty import attach
from airloom.scenario.command_line import needs_shell
from airloom.scenario.model import Direction, GrantChange, Node
from airloom.scenario.model.base import Model
from airloom.scenario.source import Source
from airloom.units.text import visible

if TYPE_CHECKING:
    from airloom.lab.lab import Lab

_LONGEST = 1e6
"""Longest time limit of a command, in seconds."""
_MOST_SOURCES = 8
"""Most nested ``source`` files."""
_LARGEST_SOURCE = 1 << 20
"""Largest ``source`` file in octets."""
_CLEAR = "\x1b[H\x1b[2J"
"""Escape sequence that clears a terminal and moves the cursor to the top."""


class Misuse(Exception):
    """A command was used wrongly; the message is its syntax."""


def with_addresses(words: Sequence[str], addresses: dict[str, str]) -> list[str]:
    """Replaces node names after the first word by the nodes' addresses."""
    return [*words[:1], *(addresses.get(word, word) for word in words[1:])]


def settings_of(words: Sequence[str]) -> dict[str, Any]:
    """Parses ``delay=20ms queue.discipline=codel`` as settings; values are read as in a scenario.

    A value in brackets may contain spaces: ``queue={discipline: fq-codel, size: 100 kB}``.
    """
    settings: dict[str, Any] = {}
    for word in _whole(words):
        key, equals, value = word.partition("=")
        if not equals or not all(key.split(".")) or not value:
            raise Misuse(f"{word!r} is not KEY=VALUE, such as delay=20ms")
        *outer, last = key.split(".")
        place = settings
        for part in outer:
            place = place.setdefault(part, {})
            if not isinstance(place, dict):
                raise Misuse(f"{key!r} is given twice")
        if last in place:
            raise Misuse(f"{key!r} is given twice")
        place[last] = Source.of_text(value, f"{key}").data
    return settings


def _whole(words: Sequence[str]) -> list[str]:
    """Joins words that belong to one bracket."""
    found: list[str] = []
    open_ = 0
    for word in words:
        found[-1:] = [f"{found[-1]} {word}"] if open_ > 0 else [*found[-1:], word]
        open_ += sum((sign in "{[") - (sign in "}]") for sign in word)
    return found


class Prompt(cmd.Cmd):
    """Reads commands until ``exit`` or the end of input."""

    prompt = "airloom> "
    doc_header = "Commands (help COMMAND for one); NODE COMMAND runs a command in a node:"
    link_actions: Sequence[str] = ("up", "down", "set")
    intro = "`help` lists the commands, `exit` ends the laboratory. Try: pingall"

    def __init__(self, lab: Lab, *, interactive: bool, stdout: IO[str] | None = None) -> None:
        super().__init__(stdout=stdout)
        self.lab = lab
        self.interactive = interactive
        self.failed = False
        """True if a command failed; sets the exit code of a script."""
        self._python: dict[str, Any] = {"lab": lab}
        self._sources = 0
        if not interactive:
            self.prompt, self.intro = "", ""

    # Methods that cmd.Cmd calls

    def onecmd(self, line: str) -> bool:
        """Executes one line; prints errors and continues."""
        try:
            return bool(super().onecmd(line))
        except Misuse as misuse:
            self.say(f"*** {misuse}")
        except LabError as error:
            self.say(f"*** {error}")
        except KeyboardInterrupt:
            self.say("")
        except ValueError as error:  # an unclosed quote
            self.say(f"*** {error}")
        except Exception as error:
            # An unexpected error in one command must not end the laboratory.
            self.say(f"*** {type(error).__name__}: {error}")
        self.failed = True
        return False

    def parseline(self, line: str) -> tuple[str | None, str | None, str]:
        """Parses a line here: node names may contain characters that end a command for cmd.Cmd."""
        word, _, rest = line.strip().partition(" ")
        if word in self.lab.nodes:
            return None, rest, line.strip()
        return super().parseline(line)

    def emptyline(self) -> bool:
        """An empty line does nothing."""
        return False

    def default(self, line: str) -> None:
        """Runs a command in a node."""
        words = shlex.split(line, comments=True)
        if not words:
            return
        node, command = words[0], words[1:]
        if node not in self.lab.nodes:
            raise Misuse(f"{node!r} is neither a command nor a node; `help` and `nodes` list them")
        if not command:
            raise Misuse(f"{node} needs a command, such as: {node} ip addr")
        _, _, rest = line.strip().partition(" ")
        self._run(node, rest)

    def completenames(self, text: str, *ignored: Any) -> list[str]:
        """Completes commands and nodes."""
        return super().completenames(text) + _begin(self.lab.nodes, text)

    def completedefault(self, text: str, line: str, begin: int, end: int) -> list[str]:
        """Completes node names in arguments."""
        return _begin([*self.lab.nodes, *self.lab.switches], text)

    def complete_link(self, text: str, line: str, begin: int, end: int) -> list[str]:
        """Completes the ends of a link, what to do with it, and the keys of `set`."""
        words = line[:begin].split()
        if len(words) == 3:
            return _begin(self.link_actions, text)
        if len(words) > 3:
            is_key = words[3] == "set" and line[:begin].endswith(" ")
            return _begin(_keys(Direction), text) if is_key else []
        ends = [(link.a.partition(":")[0], link.b.partition(":")[0]) for link in self.lab.links]
        if len(words) == 2:
            return _begin({b if a == words[1] else a for a, b in ends if words[1] in (a, b)}, text)
        return _begin({end for both in ends for end in both}, text)

    def complete_node(self, text: str, line: str, begin: int, end: int) -> list[str]:
        """Completes a node, and what to do with it."""
        return _begin(self.lab.nodes if len(line[:begin].split()) < 2 else ACTIONS, text)

    def complete_slice(self, text: str, line: str, begin: int, end: int) -> list[str]:
        """Completes a slice, `set`, and the limits of a grant."""
        words = re.split(r"\sand\s", line[:begin])[-1].split()
        before = len(words) - (words[:1] == ["slice"])
        if before == 0:
            return _begin(self.lab.slices, text)
        return _begin(["set"] if before == 1 else _keys(GrantChange), text)

    def complete_add(self, text: str, line: str, begin: int, end: int) -> list[str]:
        """Completes the switch of a new node, and the keys of its properties."""
        words = line[:begin].split()
        if len(words) == 2:
            return _begin(self.lab.switches, text)
        return _begin(_keys(Node), text) if len(words) > 2 and line[:begin].endswith(" ") else []

    # Commands

    def do_nodes(self, rest: str) -> None:
        """List the nodes, and the switches: nodes"""
        self.say(f"nodes:    {' '.join(self.lab.nodes)}")
        if self.lab.switches:
            self.say(f"switches: {' '.join(self.lab.switches)}")

    def do_links(self, rest: str) -> None:
        """List the links and their state: links"""
        for link in self.lab.links:
            self.say(f"{link.name}: {link.a} <-> {link.b} {'up' if link.is_up else 'down'} {link.describe()}")

    def do_net(self, rest: str) -> None:
        """Show the links of every node: net"""
        for name in [*self.lab.nodes, *self.lab.switches]:
            ends = [
                f"{mine}-{other}"
                for link in self.lab.links
                for mine, other in ((link.a, link.b), (link.b, link.a))
                if mine.partition(":")[0] == name
            ]
            self.say(f"{name} {' '.join(ends)}")

    def do_dump(self, rest: str) -> None:
        """Show every node's kind, interfaces and addresses: dump"""
        for name in self.lab.nodes:
            node = self.lab[name]
            parts = [f"{interface}={','.join(found) or '-'}" for interface, found in node.interfaces.items()]
            self.say(f"{name} ({node.kind}) {' '.join(parts)}")

    def do_pingall(self, rest: str) -> None:
        """Ping between all pairs of nodes: pingall [SECONDS TO WAIT]"""
        wait = _number(rest, 1.0)
        lost = total = 0
        for source in self.lab.nodes:
            if source not in self.lab.addresses:
                continue
            answers = []
            for target in self.lab.nodes:
                if target == source or target not in self.lab.addresses:
                    continue
                done = self.lab[source].run(
                    ["ping", "-n", "-q", "-c", "1", "-W", f"{wait:g}", self.lab.addresses[target]]
                )
                total += 1
                lost += done.code != 0
                answers.append(target if done.code == 0 else "X")
            self.say(f"{source} -> {' '.join(answers)}")
        self.say(f"{total - lost} of {total} received ({100 * lost / total if total else 0:.0f} % lost)")
        self.failed |= lost > 0

    def do_iperf(self, rest: str) -> None:
        """Measure TCP throughput between two nodes: iperf SOURCE TARGET [SECONDS]"""
        words = rest.split()
        if len(words) not in (2, 3):
            raise Misuse("iperf SOURCE TARGET [SECONDS]")
        seconds = _number(words[2] if len(words) == 3 else "", 5.0)
        reading = self.lab.measure(iperf3={"from": words[0], "to": words[1], "duration": f"{seconds:g} s"})
        for metric in reading.metrics():
            if metric.name == "throughput":
                self.say(f"{words[0]} -> {words[1]}: {metric.value / 1e6:.3g} Mbit/s")

    def do_link(self, rest: str) -> None:
        """Change a link: link A B up|down, or link A B set delay=20ms queue={discipline: codel}

        Keys and values are those of a scenario's links: rate=10Mbit/s loss=1% queue.discipline=fq-codel
        """
        words = shlex.split(rest)
        if len(words) < 3:
            raise Misuse("link A B up|down, or link A B set KEY=VALUE...")
        link = self.lab.link(words[0], words[1])
        if words[2:] == ["up"]:
            link.up()
        elif words[2:] == ["down"]:
            link.down()
        elif words[2] == "set" and len(words) > 3:
            link.set(**settings_of(words[3:]))
        else:
            raise Misuse("link A B up|down, or link A B set KEY=VALUE...")

    def do_node(self, rest: str) -> None:
        """Switch a node: node NAME pause|resume|stop|kill|start|restart"""
        words = rest.split()
        if len(words) != 2 or words[1] not in ACTIONS:
            raise Misuse(f"node NAME {'|'.join(ACTIONS)}")
        self.lab.control(*words)

    def do_slice(self, rest: str) -> None:
        """Change grants, all at one time: slice NAME set channels=[40] power=3dBm [and NAME set ...]

        Keys are nodes, channels, power, slots and airtime_weight, as in an event's `grant` of a scenario.
        """
        changes: dict[str, dict[str, Any]] = {}
        for part in re.split(r"\sand\s", rest):
            words = shlex.split(part)
            if len(words) < 3 or words[1] != "set" or words[0] in changes:
                raise Misuse("slice NAME set KEY=VALUE... [and NAME set KEY=VALUE...]")
            changes[words[0]] = settings_of(words[2:])
        self.say(f"from {self.lab.change_grants(changes) / 1e9:.3f} s on")

    def do_add(self, rest: str) -> None:
        """Add one more node at a switch: add NAME SWITCH [KEY=VALUE...], such as kind=container"""
        words = shlex.split(rest)
        if len(words) < 2 or "=" in words[1]:
            raise Misuse("add NAME SWITCH [KEY=VALUE...]")
        settings = settings_of(words[2:])
        if settings.keys() & {"name", "links"}:
            raise Misuse("add NAME SWITCH [KEY=VALUE...], with the keys of a scenario's nodes")
        node = self.lab.add(words[0], links=[{"ends": words[:2]}], **settings)
        self.say(f"{node.name} has {node.address or 'no address'}")

    def do_apply(self, rest: str) -> None:
        """Change the laboratory to a changed scenario: apply FILE, or apply FILE dry-run"""
        words = shlex.split(rest)
        if len(words) not in (1, 2) or words[1:] not in ([], ["dry-run"]):
            raise Misuse("apply FILE, or apply FILE dry-run")
        steps = self.lab.apply(words[0], dry_run=bool(words[1:]))
        self.say("\n".join(map(str, steps)) or "nothing to change")

    def do_air(self, rest: str) -> None:
        """Show radio positions and paths, channel airtime, rates and retries of pairs: air [SECONDS]"""
        from airloom.lab.radio_view import view

        left = _number(rest, 1.0)
        looks = [self.lab.air()]
        if not looks[0].radios:
            raise Misuse("no node has a radio")
        while left > 0:
            self.lab.run_for(round(min(left, 1.0) * 1e9))
            left -= 1.0
            looks.append(self.lab.air())
            if self.interactive or left <= 0:
                if self.interactive and len(looks) > 2:
                    self.stdout.write(_CLEAR)
                self.say("\n" + "\n".join(view(looks)))

    def do_verdict(self, rest: str) -> None:
        """Show the verdict on what has been measured so far: verdict"""
        verdict = self.lab.verdict()
        self.say(verdict.status)
        for line in [
            *([f"most likely cause: {verdict.cause}"] if verdict.cause else []),
            *verdict.reasons,
            *verdict.notes,
        ]:
            self.say(f"  {line}")

    def do_sleep(self, rest: str) -> None:
        """Wait, in scripts of commands: sleep SECONDS"""
        self.lab.run_for(round(_number(rest, 1.0) * 1e9))

    def do_source(self, rest: str) -> None:
        """Run the commands in a file: source FILE"""
        if self._sources >= _MOST_SOURCES:
            raise Misuse(f"more than {_MOST_SOURCES} files name each other")
        try:
            lines = content(rest.strip(), _LARGEST_SOURCE).decode("utf-8", "replace").splitlines()
        except OSError as error:
            raise Misuse(f"{rest.strip() or 'source FILE'}: {error.strerror}") from error
        self._sources += 1
        try:
            for line in lines:
                if self.onecmd(line):
                    break
        finally:
            self._sources -= 1

    def do_py(self, rest: str) -> None:
        """Run Python, with the laboratory as `lab`: py lab["h1"].run("ip route").stdout"""
        try:
            try:
                value = eval(rest, self._python)
            except SyntaxError:
                exec(rest, self._python)
                return
            if value is not None:
                self.say(value if isinstance(value, str) else repr(value))
        except LabError:
            raise
        except Exception as error:
            raise Misuse(f"{type(error).__name__}: {error}") from error

    def do_sh(self, rest: str) -> None:
        """Run a command on this machine, outside of all nodes: sh ls"""
        import subprocess

        self.failed |= subprocess.run(rest, shell=True, check=False).returncode != 0

    def do_exit(self, rest: str) -> bool:
        """End the laboratory: exit"""
        return True

    do_quit = do_exit

    def do_EOF(self, rest: str) -> bool:
        """End the laboratory."""
        if self.interactive:
            self.say("")
        return True

    # Help

    def say(self, text: str) -> None:
        """Prints a line."""
        print(visible(text), file=self.stdout, flush=True)

    def get_names(self) -> list[str]:
        """Returns the commands that `help` lists."""
        return [name for name in dir(self.__class__) if name not in ("do_EOF", "do_quit")]

    def _run(self, node: str, command: str) -> None:
        """Runs a command in a node on this terminal."""
        words = self._words(command)
        with Client(find(str(os.getpid()))) as client:
            code = attach(client, node, words, terminal=self.interactive, keyboard=self.interactive)
        self.failed |= code != 0

    def _words(self, command: str) -> list[str]:
        """The words of a command in a node, with addresses instead of names."""
        if needs_shell(command):
            return ["/bin/sh", "-c", _replaced(command, self.lab.addresses)]
        return with_addresses(shlex.split(command), self.lab.addresses)


def _replaced(command: str, addresses: dict[str, str]) -> str:
    """Replaces bare node names in a shell command and leaves everything else unchanged."""
    return " ".join(addresses.get(word, word) if i else word for i, word in enumerate(command.split(" ")))


def _begin(words: Iterable[str], text: str) -> list[str]:
    return sorted(word for word in words if word.startswith(text))


def _keys(model: type[Model]) -> list[str]:
    """The keys of a part of the scenario, as `set` and `add` take them."""
    return [f"{field.alias or name}=" for name, field in model.model_fields.items()]


def _number(text: str, default: float) -> float:
    if not text.strip():
        return default
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= _LONGEST:
        raise Misuse(f"{text.strip()!r} is not a number of seconds, at most {_LONGEST:g}")
    return number
