"""Makes a video and serves it over HTTP in a node.

usage: server.py PORT COMMAND...

The command writes the video to its standard output. It is made before the first request is accepted.
"""

import http.server
import subprocess
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers every request with the video."""

    video: bytes

    def do_GET(self) -> None:
        """Sends all of it; the network says how fast."""
        self.send_response(200)
        self.send_header("Content-Type", "video/mp2t")
        self.send_header("Content-Length", str(len(self.video)))
        self.end_headers()
        self.wfile.write(self.video)


if __name__ == "__main__":
    Handler.video = subprocess.run(sys.argv[2:], stdout=subprocess.PIPE, check=True).stdout
    with http.server.ThreadingHTTPServer(("", int(sys.argv[1])), Handler) as server:
        print("listening", flush=True)
        server.serve_forever()
