"""Downloads a video over HTTP in a node: prints when it asked, and each piece with its time in ns.

usage: client.py HOST PORT

The pieces are printed in base64 after the last one came, so that printing does not slow the download.
"""

import base64
import http.client
import sys
import time

if __name__ == "__main__":
    asked = time.monotonic_ns()
    connection = http.client.HTTPConnection(sys.argv[1], int(sys.argv[2]), timeout=60)
    connection.request("GET", "/video.ts")
    response = connection.getresponse()
    pieces = []
    while piece := response.read1(1 << 16):
        pieces.append((time.monotonic_ns(), piece))
    print("asked", asked)
    for now, piece in pieces:
        print("chunk", now, base64.b64encode(piece).decode())
    if sum(len(piece) for _, piece in pieces) != int(response.headers["Content-Length"]):
        sys.exit("the video is not complete")
