"""The grid manager over HTTPS."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from airloom.errors import HostError
from airloom.grid import require

try:
    require()
except HostError as error:
    pytest.skip(str(error), allow_module_level=True)

from helpers import REPOSITORY, forked
from helpers.grid import SMALL
from helpers.grid_server import Server

pytestmark = pytest.mark.timeout(300)


def pair(folder: Path, name: str) -> tuple[Path, Path]:
    """A certificate for this machine's own address, signed by itself, and its key."""
    certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=grid",
         "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    return certificate, key


def command(home: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    given = {**os.environ, "PYTHONPATH": str(REPOSITORY / "python"), "XDG_CONFIG_HOME": str(home)}
    return forked.run(("grid", *words), home, {**given, **environment}, timeout=120)


def test_a_client_trusts_the_certificate_that_it_is_given_and_no_other(tmp_path: Path) -> None:
    certificate, key = pair(tmp_path, "own")
    server = Server(SMALL, str(tmp_path / "grid.db"), "--certificate", str(certificate), "--key", str(key))
    try:
        assert server.url.startswith("https://")
        login = ("login", "--url", server.url, "--token", server.token)
        trusted = command(tmp_path, *login, SSL_CERT_FILE=str(certificate))
        assert trusted.returncode == 0, trusted.stderr
        refused = command(tmp_path, *login)
        assert refused.returncode == 3
        assert "certificate verify failed" in refused.stderr, refused.stderr
    finally:
        server.kill()


@pytest.mark.parametrize("case", ["another key", "no PEM", "no certificate", "no file"])
def test_a_certificate_that_cannot_be_used_is_refused(tmp_path: Path, case: str) -> None:
    certificate, key = pair(tmp_path, "own")
    options = {"--certificate": certificate, "--key": key}
    if case == "another key":
        options["--key"] = pair(tmp_path, "other")[1]
    elif case == "no PEM":
        certificate.write_text("rubbish")
    elif case == "no certificate":
        del options["--certificate"]
    else:
        key.unlink()
    words = [str(word) for pair in options.items() for word in pair]
    done = command(tmp_path, "serve", str(SMALL), "--database", str(tmp_path / "grid.db"), *words)
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert ("[file.missing]" if case == "no file" else "[grid.certificate]") in done.stderr
    assert not (tmp_path / "grid.db").exists(), "nothing was started"
