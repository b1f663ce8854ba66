"""The reference of scenarios, written from the model itself.

``python -m airloom.cli.scenario_reference > docs/guide/scenario.md`` renews the page.
"""

from __future__ import annotations

import re
import sys
from typing import Any

from airloom.planning import addresses, lifetime, routes
from airloom.scenario import model, paths
from airloom.scenario.model import Model, Scenario
from airloom.scenario.topology import generators
from airloom.units.quantities import QUANTITIES

_PARTS: tuple[type[Model], ...] = (
    model.Scenario,
    model.Node,
    model.Guest,
    model.SharedGuest,
    model.Interface,
    model.Adapter,
    model.Switch,
    model.Tunnel,
    model.Link,
    model.Direction,
    model.UniformJitter,
    model.NormalJitter,
    model.ParetoJitter,
    model.ExponentialJitter,
    model.TableJitter,
    model.GilbertElliott,
    model.Queue,
    model.Slice,
    model.Grant,
    model.Flow,
    model.Topology,
    model.Medium,
    model.Propagation,
    model.Shadowing,
    model.Fading,
    model.Wall,
    model.Errors,
    model.FrameError,
    model.Noise,
    model.Radio,
    model.Tuning,
    model.Mobility,
    model.Waypoint,
    model.Pools,
    model.Program,
    model.Ready,
    model.Event,
    model.Measurement,
    model.Ping,
    model.Iperf3,
    model.Traffic,
    model.Claim,
    model.Limits,
)

_HEAD = """\
# Scenarios

<!-- Written by `python -m airloom.cli.scenario_reference`; change the model, not this page. -->

A scenario is one YAML file, or one `airloom.Scenario` in Python: the same model, the same words, the same
errors. `airloom check FILE` says what is wrong with it and what it would build, and touches nothing.

```yaml
name: two-hosts
nodes: {h1: , h2: , r1: }
links:
  - {ends: [h1, r1], rate: 100 Mbit/s, delay: 1 ms}
  - {ends: [r1, h2], rate: 10 Mbit/s, delay: 5 ms, queue: {packets: 50}}
measurements:
  - {name: rtt, ping: {from: h1, to: h2}}
```

```python
from airloom import Scenario, check
from airloom.scenario.model import Link, Measurement, Node, Ping

scenario = Scenario(
    name="two-hosts",
    nodes={"h1": Node(), "h2": Node(), "r1": Node()},
    links=[
        Link(ends=("h1", "r1"), rate="100 Mbit/s", delay="1 ms"),
        Link(ends=("r1", "h2"), rate="10 Mbit/s", delay="5 ms", queue={"packets": 50}),
    ],
    measurements=[Measurement(name="rtt", ping=Ping(source="h1", to="h2"))],
)
experiment = check(scenario)      # the plans of all runs, or a ScenarioError
print(scenario.to_yaml())         # the same scenario as a file
```

(`from` is a reserved word of Python, so it is `source` there.)

A mistake is answered in one line, with file, line, column and path, what is allowed and the nearest
valid word; nothing is started, and the exit code is 2:

```
net.yaml:6:5 links[0].dealy: unknown key 'dealy' (did you mean 'delay'? allowed: rate, ...) [key.unknown]
```

## Editors

`airloom schema > airloom.schema.json` prints the JSON schema. An editor with the YAML language server
completes and checks a scenario that begins with

```yaml
# yaml-language-server: $schema=airloom.schema.json
```

## Text

Scenarios are YAML 1.2 in UTF-8, data only. `on`, `off`, `yes` and `no` are text, and so are times such as
`10:30`; truth values are `true` and `false`. Keys are text and stand once. Anchors, aliases and merge
keys (`<<`) work. Relative paths of files start at the scenario's own folder.

Names of nodes, switches, tunnels, links, programs and measurements are letters, digits, `-` and `_`,
at most 63, with a letter or digit first and last.
"""

_PATHS = """\
## Options, sweeps, repetitions

`--set PATH=VALUE` changes one value, `sweep` lets it take several:

```yaml
sweep:
  topology.nodes: [2, 5, 10]
  topology.link.delay: [1 ms, 10 ms]
repetitions: 5
```

gives 3 x 2 points with 5 runs each. The last path varies fastest.

{paths}

Where the topology is swept, `$first` and `$last` stand for the first and the last node that its
generator made: `ping: {{from: $first, to: $last}}`.

Every run has its own seed: the first 63 bits of the SHA-256 of base seed, point and repetition, so that
adding points changes no other point's seed. A scenario without sweep and repetitions uses its `seed` as it
is. A random topology is drawn from the base seed and stays the same in all runs.
"""

_RULES = """\
## What a run cannot be

Refused before anything starts, beside unknown words and wrong units: two things of one name; references to
what is not there; an address or MAC twice; networks that overlap; a link from a node to itself; a loop of
switches or hubs of the engine, since these speak no spanning tree; two slices that claim the same frames
on a link; different MTUs within a segment; a rate of zero or
beyond 1 Tbit/s; a file that is not there; events and measurements after the end of the run; a measurement
whose packets would find no way, unless a routing daemon may still make one; a native node on a link that
the kernel's own wire cannot be.

Exact messages: one file for each rule in `tests/refused/`.
"""


def _flat(text: str | None) -> str:
    """A docstring as Markdown: its own line breaks do not matter, its double back-quotes become single."""
    lines = [line.strip() for line in (text or "").strip().splitlines()]
    return "\n".join(lines).replace("``", "`")


def _value(schema: dict[str, Any]) -> str:
    """What may stand for a value, in words."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    for word in ("anyOf", "oneOf"):
        if word in schema and schema.get("title") not in ("fraction", "share"):
            parts = [_value(each) for each in schema[word] if each != {"type": "null"}]
            return " or ".join(dict.fromkeys(parts))
    if "enum" in schema:
        return ", ".join(f"`{word}`" for word in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if schema.get("title") in _TITLES:
        return str(schema["title"])
    kind = schema.get("type")
    if kind == "array":
        if "prefixItems" in schema:
            return f"two: {_value(schema['prefixItems'][0])}"
        return f"list of {_value(schema.get('items', {}))}"
    if kind == "object":
        inner = [*schema.get("patternProperties", {}).values()] or [schema.get("additionalProperties") or {}]
        return f"by name: {_value(inner[0])}"
    if kind in ("integer", "number"):
        return ("whole number" if kind == "integer" else "number") + _bounds(schema)
    return {"string": "text", "boolean": "`true`, `false`", "null": "nothing"}.get(str(kind), "any value")


_TITLES = {
    *(quantity.WORD for quantity in QUANTITIES),
    "fraction",
    "share",
    "address",
    "prefix",
    "place",
    "velocity",
}


def _bounds(schema: dict[str, Any]) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f", {low} to {high}"
    if "exclusiveMinimum" in schema:
        return f", above {schema['exclusiveMinimum']:g}"
    return f", {low} or more" if low is not None else ""


def _default(schema: dict[str, Any], required: bool) -> str:
    if required:
        return "needed"
    default = schema.get("default")
    if default in (None, "", [], {}) or isinstance(default, dict):
        return ""
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("``", "`").replace("\n", " ")


def _part(part: type[Model], definitions: dict[str, Any]) -> str:
    schema = definitions[part.__name__]
    parent = {model.Link: model.Direction, model.Radio: model.Tuning}.get(part)
    inherited = set(parent.KEYS) if parent is not None else set()
    lines = [f"### {part.__name__}", "", _flat(part.__doc__), ""]
    lines += ["| key | value | default | meaning |", "| --- | --- | --- | --- |"]
    for key, value in schema["properties"].items():
        if key in inherited:
            continue
        default = _default(value, key in schema.get("required", ()))
        lines.append(
            f"| `{key}` | {_cell(_value(value))} | {default} | {_cell(value.get('description', ''))} |"
        )
    if parent is not None:
        name = parent.__name__
        both = ", for both directions" if parent is model.Direction else ""
        lines += ["", f"and every key of [{name}](#{name.lower()}){both}."]
    return "\n".join(lines)


def _units() -> str:
    lines = [
        "## Units",
        "",
        "A quantity is a number and a unit, `10 Mbit/s`; without a unit it is refused.",
        "",
    ]
    lines += ["| quantity | units | example |", "| --- | --- | --- |"]
    for quantity in QUANTITIES:
        lines.append(
            f"| {quantity.WORD} | {' '.join(f'`{unit}`' for unit in quantity.UNITS)} | `{quantity.EXAMPLE}` |"
        )
    lines += [
        "| fraction | `%`, or a plain number from 0 to 1 | `1 %` |",
        "| share | `%`, or a plain number: 2 is two whole processors | `50 %` |",
        "| address | with its prefix length | `10.0.0.1/24` |",
        "",
        "Rates, durations, sizes and frequencies are kept as whole numbers of bit/s, ns, octets and Hz;",
        "what is not a whole number of these (`0.5 ns`) is refused, never rounded. `k`, `M` and `G` are",
        "powers of ten, `Ki`, `Mi` and `Gi` powers of two. In Python `Duration(5_000_000)` makes a quantity",
        'of base units, `Duration("5 ms")` the same from text; a plain number is refused there too.',
    ]
    return "\n".join(lines)


def _topologies() -> str:
    text = generators.__doc__ or ""
    rows: list[list[str]] = []
    for line in re.split(r"^=+.*$", text, flags=re.MULTILINE)[2].strip("\n").splitlines():
        cells = [line[:12].strip(), line[12:42].strip(), line[42:].strip()]
        if cells[0]:
            rows.append(cells)
        else:
            rows[-1][2] += " " + cells[2]
    lines = [
        "## Topologies",
        "",
        "`topology` makes nodes and links beside those that the scenario gives itself;",
    ]
    lines += ["a node given under `nodes` with the name of a generated one says more about that.", ""]
    lines += ["| generator | takes | gives |", "| --- | --- | --- |"]
    lines += [f"| `{row[0]}` | {row[1]} | {_cell(row[2])} |" for row in rows]
    lines += ["", _flat(text.split("\n\n")[-1])]
    return "\n".join(lines)


def _body(text: str | None) -> str:
    """A docstring without its title."""
    return _flat("\n\n".join((text or "").strip().split("\n\n")[1:]))


def page() -> str:
    """The whole page."""
    schema = Scenario.model_json_schema(by_alias=True)
    definitions = {**schema["$defs"], "Scenario": schema}
    parts = [
        _HEAD,
        _units(),
        "",
        "## Parts",
        "",
        "\n\n".join(_part(part, definitions) for part in _PARTS),
        "",
        _topologies(),
        "",
        _PATHS.format(paths=_body(paths.__doc__)),
        "## Addresses",
        "",
        "Addresses that are given are checked against each other, the others are assigned.",
        "",
        _body(addresses.__doc__),
        "",
        "## Routes",
        "",
        "Nodes with `routing: static` get routes along shortest paths.",
        "",
        _body(routes.__doc__),
        "",
        _body(lifetime.__doc__),
        "",
        _RULES,
    ]
    return "\n".join(parts).rstrip() + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
