"""Reads laboratories of Kathara and Netkit: ``lab.conf``, ``NAME.startup`` and the devices' folders.

A collision domain of two devices is a link, of more a hub. A device is a container of its image; its
start-up script and ``shared.startup`` are programs, and the files of its folder are in the node.

Source: kathara.org, manual pages kathara-lab.conf(5) and kathara-lab-dirs(7).
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from airloom.host.files import content
from airloom.scenario.imports.draft import Draft

_LINE = re.compile(r"""([\w.-]+)\s*\[\s*([\w-]+)\s*\]\s*=\s*(?:"([^"]*)"|'([^']*)'|(\S+))\s*""")
_OPTION = re.compile(r"""(LAB_\w+)\s*=\s*(?:"([^"]*)"|'([^']*)'|(.*))""")
DEFAULT_IMAGE = "kathara/base"
"""Image of a device without one."""
LARGEST = 2**20
"""Largest file of a device's folder in octets."""
_SERVICES = re.compile(r"\b(systemctl|/etc/init\.d/|service )")


def read(draft: Draft, text: str) -> None:
    """Fills the draft from the text of ``lab.conf`` and the files beside it."""
    folder = draft.path.parent
    draft.top["name"] = draft.tidy(folder.absolute().name)
    # Start-up scripts give addresses and routes, and Docker lets every container forward.
    draft.top |= {"addresses": {"ipv4": None}, "routing": "none"}
    domains: dict[str, list[tuple[str, str, str | None]]] = {}
    devices: dict[str, dict[str, list[str]]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        line = line.split("#")[0].strip() if '"' not in line else line.strip()
        if not line or line.startswith("#"):
            continue
        option = _OPTION.fullmatch(line)
        if option is not None:
            said = next((part for part in option.groups()[1:] if part), "")
            if option[1] == "LAB_DESCRIPTION":
                draft.top["description"] = said
            continue
        found = _LINE.match(line)
        if found is None:
            draft.refuse(
                f"line {number}: {line[:60]!r} is no line of a lab.conf",
                'write it like r1[0]="A" or r1[image]="kathara/frr"',
            )
        name, key, value = found[1], found[2], next((part for part in found.groups()[2:] if part), "")
        devices.setdefault(name, {})
        if key.isdigit():
            domain, _, mac = value.partition("/")
            domains.setdefault(domain, []).append((name, f"eth{key}", mac or None))
        else:
            devices[name].setdefault(key, []).append(value)
    for name, options in devices.items():
        _device(draft, name, options)
    for domain, ends in domains.items():
        _domain(draft, domain, ends)
    used = {
        name: {port for ends in domains.values() for node, port, _ in ends if node == name}
        for name in devices
    }
    for name, options in devices.items():
        _start(draft, folder, name, options, used[name])


def _device(draft: Draft, name: str, options: dict[str, list[str]]) -> None:
    own = draft.name(name)
    node: dict[str, Any] = {"forwarding": True}
    draft.nodes[own] = node
    draft.add_image(node, name, options.get("image", [DEFAULT_IMAGE])[-1])
    known = {"image", "exec", "sysctl", "env", "cpus", "port", "num_terms", "shell", "ipv6"}
    draft.lose_keys(f"device {name}", options, known)
    for setting in options.get("sysctl", ()):
        key, _, value = setting.partition("=")
        node.setdefault("sysctl", {})[key.strip()] = value.strip()
    if "cpus" in options:
        node["cpu"] = draft.number(f"device {name}: cpus", options["cpus"][-1], 0.001, 1024)
    if options.get("ipv6", ["true"])[-1].lower() in ("false", "0"):
        node.setdefault("sysctl", {})["net.ipv6.conf.all.disable_ipv6"] = 1
    for port in options.get("port", ()):
        found = re.fullmatch(r"(?:(\d+):)?(\d+)(?:/(tcp|udp))?", port)
        if found is None:
            draft.refuse(f"device {name}: {port!r} is no port", "write it like 8080:80/tcp")
        published = {"port": int(found[2]), "host_port": int(found[1] or 3000), "host_address": "0.0.0.0"}
        node.setdefault("publish", []).append(published | ({"protocol": found[3]} if found[3] else {}))


def _domain(draft: Draft, domain: str, ends: list[tuple[str, str, str | None]]) -> None:
    for name, port, mac in ends:
        if mac is not None:
            draft.interface(draft.name(name), port)["mac"] = mac
    places = [f"{draft.name(name)}:{port}" for name, port, _ in ends]
    if len(places) == 2:
        draft.add_link(places)
        return
    hub = draft.name(domain if domain not in draft.nodes else f"domain-{domain}")
    draft.switches[hub] = {"kind": "hub"}
    for place in places:
        draft.add_link((place, hub))


def _start(
    draft: Draft, folder: Path, name: str, options: dict[str, list[str]], interfaces: set[str]
) -> None:
    """Adds a device's files, and its start-up scripts in the order in which Kathara runs them."""
    own = draft.name(name)
    env = dict(one.partition("=")[::2] for one in options.get("env", ()))
    root = folder / name
    for path in sorted(root.rglob("*")) if os.path.isdir(root) else ():
        if path.is_file():
            _file(draft, own, f"/{path.relative_to(root)}", path)
    before: list[str] = []
    for file in ("shared.startup", f"{name}.startup"):
        if not os.path.isfile(folder / file):
            continue
        script = _text(draft, folder / file)
        rest = []
        for line in script.splitlines():
            address = draft.address_of(line, interfaces)
            if address is None:
                rest.append(line)
            else:
                draft.add_address(own, *address)
        if _SERVICES.search(script):
            draft.lose(f"{file}: services of systemctl or init, which no node has (start the program itself)")
        if any(line.strip() and not line.strip().startswith("#") for line in rest):
            target = f"/tmp/{file}"
            draft.nodes[own].setdefault("files", {})[target] = "\n".join(rest) + "\n"
            before = [draft.add_program(f"{own}-startup", own, ["/bin/sh", target], after=before, env=env)]
    for line in options.get("exec", ()):
        before = [draft.add_program(f"{own}-exec", own, line, after=before, env=env)]


def _file(draft: Draft, node: str, target: str, path: Path) -> None:
    if path.stat().st_mode & 0o111:
        draft.lose(f"{path}: the right to execute it")
    draft.nodes[node].setdefault("files", {})[target] = _text(draft, path)


def _text(draft: Draft, path: Path) -> str:
    try:
        return content(path, LARGEST).decode()
    except OSError as error:
        draft.refuse(f"{path}: cannot be read: {error.strerror}")
    except UnicodeDecodeError:
        draft.refuse(f"{path}: it is no text", "mount it: 'mounts: [{source: ..., target: ...}]'")
