"""``airloom grid rspec`` as a command: a request becomes a reservation with a manifest, and a scenario."""

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
from helpers.grid_server import WAIT_S, Server

pytestmark = pytest.mark.timeout(300)

REQUEST = """\
<rspec xmlns="http://www.geni.net/resources/rspec/3" type="request">
  <node client_id="x" component_id="urn:publicid:IDN+small+node+b1"><interface client_id="x:0"/></node>
  <node client_id="y"><interface client_id="y:0"/></node>
</rspec>
"""


def test_a_request_is_reserved_and_its_manifest_is_read(tmp_path: Path) -> None:
    server = Server(SMALL, str(tmp_path / "grid.db"))
    environment = {
        **os.environ,
        "PYTHONPATH": str(REPOSITORY / "python"),
        "AIRLOOM_GRID_URL": server.url,
        "AIRLOOM_GRID_TOKEN": server.token,
    }

    def said(*words: object) -> subprocess.CompletedProcess[str]:
        return forked.run(("grid", "rspec", *map(str, words)), tmp_path, environment, WAIT_S)

    try:
        server.must("POST", "/v1/projects", {"name": "p"})
        (tmp_path / "r.rspec").write_text(REQUEST)
        words = ("--project", "p", "--slice", "mine", "--for", "1 h")
        booked = said("reserve", tmp_path / "r.rspec", *words)
        assert booked.returncode == 0, booked.stderr
        (standing,) = server.must("GET", "/v1/reservations")
        assert f"+sliver+{standing['id']}-b1" in booked.stdout
        again = said("manifest", standing["id"], "--request", tmp_path / "r.rspec")
        assert again.stdout == booked.stdout
        (tmp_path / "m.rspec").write_text(booked.stdout)
        read = said("scenario", tmp_path / "m.rspec", "--name", "mine")
        assert read.stdout.startswith("name: mine\nnodes:\n"), read.stderr
        (tmp_path / "bad.rspec").write_text(REQUEST.replace("+b1", "+b9"))
        refused = said("reserve", tmp_path / "bad.rspec", *words)
        assert (refused.returncode, len(server.must("GET", "/v1/reservations"))) == (2, 1)
        assert "bad.rspec:2" in refused.stderr
        assert "there is no node 'b9'" in refused.stderr
    finally:
        server.kill()
