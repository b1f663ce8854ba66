"""The OML Measurement Stream Protocol (OMSP) with text encoding, versions 1 to 5.

A connection begins with lines of headers and an empty line::

    protocol: 4
    domain: NAME
    start-time: 1281591603
    sender-id: NAME
    app-name: NAME
    schema: 0 _experiment_metadata subject:string key:string value:string
    schema: 1 APP_POINT FIELD:TYPE ...
    content: text

Each further line is a tuple: seconds since ``start-time``, number of the schema, sequence number,
and the fields, separated by tabs. From version 4 on, a tuple of schema 0 with the subject ``.`` and
the key ``schema`` defines one more schema. Source: "OML Measurement Stream Protocol (OMSP)
Specification", oml-doc.orbit-lab.org.

The octets come from other programs and are not trusted. Binary encoding, compressed streams and
vectors are refused.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

VERSIONS = range(1, 6)
LONGEST_LINE = 65536
MOST_SCHEMAS = 256
MOST_FIELDS = 200
METADATA = "_experiment_metadata"

Value = int | float | str | bytes | bool

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}", re.ASCII)
_WORD = re.compile(r"[-.A-Za-z0-9_]{1,64}", re.ASCII)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "\\": "\\"}
_WRITTEN = str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r", "\\": "\\\\"})
_INTEGERS = {
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint64": (0, 2**64 - 1),
    "long": (-(2**63), 2**63 - 1),
    "guid": (0, 2**64 - 1),
}
"""Range of the values of each type of integer; ``long`` is of version 1."""
TYPES = (*_INTEGERS, "double", "string", "blob", "bool")
_HEADERS = {
    "protocol": "protocol", "domain": "domain", "experiment-id": "domain", "start-time": "start",
    "start_time": "start", "sender-id": "sender", "app-name": "application", "content": "content",
}  # fmt: skip
"""Key of a header, also in the spelling of versions 1 to 3: what it is."""


class StreamError(ValueError):
    """A line breaks the protocol."""


@dataclass(frozen=True, slots=True)
class Schema:
    """The fields of one measurement stream: names and types."""

    number: int
    name: str
    fields: tuple[tuple[str, str], ...]

    @classmethod
    def read(cls, text: str) -> Schema:
        """Returns the schema of ``NUMBER NAME FIELD:TYPE ...``."""
        number, _, rest = text.strip().partition(" ")
        name, *said = rest.split()[: MOST_FIELDS + 2] or [""]
        if not re.fullmatch(r"[0-9]{1,9}", number, re.ASCII) or int(number) >= MOST_SCHEMAS:
            raise StreamError(f"a schema has a number from 0 to {MOST_SCHEMAS - 1}")
        if not _NAME.fullmatch(name) or name.lower().startswith("sqlite_"):
            raise StreamError(f"{name[:40]!r} is not the name of a schema")
        if len(said) > MOST_FIELDS:
            raise StreamError(f"the schema {name} has more than {MOST_FIELDS} fields")
        fields = []
        for each in said:
            key, _, kind = each.partition(":")
            if not _NAME.fullmatch(key) or key.lower().startswith("oml_") or kind not in TYPES:
                raise StreamError(f"{each[:40]!r} is not a field of a known type")
            fields.append((key, kind))
        if len({key.lower() for key, _ in fields}) < len(fields):
            raise StreamError(f"the schema {name} has two fields of one name")
        return cls(int(number), name, tuple(fields))

    def __str__(self) -> str:
        return " ".join([str(self.number), self.name, *(f"{key}:{kind}" for key, kind in self.fields)])


EXPERIMENT = Schema(0, METADATA, (("subject", "string"), ("key", "string"), ("value", "string")))
"""The schema of metadata."""


@dataclass(slots=True)
class Header:
    """What the headers say."""

    protocol: int = 0
    domain: str = ""
    start: float = 0.0
    """Start of the sender's time, in seconds since 1970."""
    sender: str = ""
    application: str = ""
    content: str = ""
    schemas: dict[int, Schema] = field(default_factory=dict)

    def written(self) -> str:
        """Returns the headers with the empty line."""
        assert self.protocol >= 4
        lines = [
            f"protocol: {self.protocol}", f"domain: {self.domain}", f"start-time: {int(self.start)}",
            f"sender-id: {self.sender}", f"app-name: {self.application}",
            *(f"schema: {schema}" for schema in self.schemas.values()), "content: text", "", "",
        ]  # fmt: skip
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Tuple:
    """One measurement."""

    schema: Schema
    sequence: int
    time: float
    """Seconds since the sender's start."""
    values: tuple[Value, ...]

    def written(self) -> str:
        """Returns its line."""
        kinds = (kind for _, kind in self.schema.fields)
        parts = [_written(value, kind) for value, kind in zip(self.values, kinds, strict=True)]
        return "\t".join([f"{self.time:.9f}", str(self.schema.number), str(self.sequence), *parts]) + "\n"


class Parser:
    """Reads a stream that arrives in pieces."""

    def __init__(self) -> None:
        self.header = Header()
        self.begun = False
        """Whether the headers are complete."""
        self._rest = b""
        self._line = 0

    def feed(self, octets: bytes) -> Iterator[Tuple]:
        """Yields the tuples that are complete by now; raises :class:`StreamError` with the line."""
        *lines, self._rest = (self._rest + octets).split(b"\n")
        for line in lines:
            self._line += 1
            try:
                if len(line) > LONGEST_LINE:
                    raise StreamError(f"longer than {LONGEST_LINE} octets")
                found = self._read(line.decode(errors="replace").removesuffix("\r"))
            except StreamError as error:
                raise StreamError(f"line {self._line}: {error}") from None
            except (ValueError, OverflowError):  # of whatever reads a value
                raise StreamError(f"line {self._line}: not understood") from None
            if found is not None:
                yield found
        if len(self._rest) > LONGEST_LINE:
            raise StreamError(f"line {self._line + 1}: longer than {LONGEST_LINE} octets")

    def _read(self, line: str) -> Tuple | None:
        if self.begun:
            return self._tuple(line) if line else None
        if line:
            self._key(line)
            return None
        header = self.header
        missing = [
            name
            for name, there in (
                ("protocol", header.protocol), ("domain", header.domain), ("sender-id", header.sender),
                ("app-name", header.application), ("content", header.content),
            )
            if not there
        ]  # fmt: skip
        if missing:
            raise StreamError(f"the header {missing[0]!r} is missing")
        if header.protocol >= 4:
            header.schemas.setdefault(0, EXPERIMENT)
        self.begun = True
        return None

    def _key(self, line: str) -> None:
        key, colon, text = line.partition(":")
        key, text = key.strip(), text.strip()
        if key == "schema" and colon:
            self._define(text)
            return
        what = _HEADERS.get(key)
        if what is None or not colon:
            raise StreamError(f"{line[:40]!r} is not a header of OML as text")
        if what == "protocol":
            if text not in map(str, VERSIONS):
                raise StreamError(f"version {text[:10]} of the protocol is unknown")
            self.header.protocol = int(text)
        elif what == "start":
            self.header.start = _double(text)
        elif what == "content":
            if text != "text":
                raise StreamError(f"content is {text[:20]!r}: start the client with --oml-text")
            self.header.content = text
        elif not _WORD.fullmatch(text) or text.startswith("."):
            raise StreamError(f"{text[:40]!r} is not a name for {key!r}")
        else:
            setattr(self.header, what, text)

    def _define(self, text: str) -> None:
        schema = Schema.read(text)
        if schema.number == 0 and schema != EXPERIMENT:
            raise StreamError("schema 0 is that of metadata")
        self.header.schemas[schema.number] = schema

    def _tuple(self, line: str) -> Tuple:
        parts = line.split("\t")
        if len(parts) < 3:
            raise StreamError("a tuple has a time, a schema, a sequence number and fields")
        number, sequence = _integer(parts[1], "uint32"), _integer(parts[2], "int64")
        schema = self.header.schemas.get(number)
        if schema is None:
            raise StreamError(f"there is no schema {number}")
        if len(parts) - 3 != len(schema.fields):
            raise StreamError(
                f"{schema.name} has {len(schema.fields)} fields, and this tuple has {len(parts) - 3}"
            )
        kinds = (kind for _, kind in schema.fields)
        values = tuple(_read(text, kind) for text, kind in zip(parts[3:], kinds, strict=True))
        if number == 0 and values[:2] == (".", "schema"):
            self._define(str(values[2]))
        return Tuple(schema, sequence, _double(parts[0]), values)


def _read(text: str, kind: str) -> Value:
    if kind in _INTEGERS:
        return _integer(text, kind)
    if kind == "double":
        return _double(text)
    if kind == "bool":
        # As the server of OML does: every beginning of "false" is false, all else is true.
        return not (text and "false".startswith(text.lower()))
    if kind == "blob":
        try:
            return base64.b64decode(text, validate=True)
        except ValueError:  # binascii.Error, or characters that are not ASCII
            raise StreamError(f"{text[:40]!r} is not base64") from None
    return re.sub(r"\\([tnr\\])", lambda found: _ESCAPED[found[1]], text)


def _written(value: Value, kind: str) -> str:
    if kind == "blob":
        assert isinstance(value, bytes)
        return base64.b64encode(value).decode()
    if kind == "bool":
        return "true" if value else "false"
    return str(value).translate(_WRITTEN) if kind == "string" else repr(value)


def _integer(text: str, kind: str) -> int:
    low, high = _INTEGERS[kind]
    # No integer of 64 bits has more digits; Python's own limit would raise another error.
    if re.fullmatch(r"[+-]?[0-9]{1,20}", text, re.ASCII) and low <= int(text) <= high:
        return int(text)
    raise StreamError(f"{text[:40]!r} is not of type {kind}")


def _double(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise StreamError(f"{text[:40]!r} is not a number") from None


def name_of(*words: str) -> str:
    """Returns words as the name of a sender, an application or a schema."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", "_".join(words))[:63]
    return name if name and not name[0].isdigit() else f"_{name}"[:63]
