"""A file over TCP, timed by its sender until the receiver has said that all of it came.

usage: transfer.py receive PORT
       transfer.py send HOST PORT OCTETS
"""

import json
import socket
import sys
import tempfile
import time


def receive(port):
    """Takes one file after the other; the length comes first, in eight octets."""
    with socket.create_server(("", port)) as server:
        while True:
            peer, _ = server.accept()
            with peer:
                left = int.from_bytes(peer.recv(8, socket.MSG_WAITALL), "big")
                while left:
                    got = len(peer.recv(min(left, 1 << 20)))
                    if not got:
                        break
                    left -= got
                if not left:
                    peer.sendall(b"!")


def send(host, port, octets):
    """Sends a file of zeros, which takes no room, and prints how long it took."""
    with tempfile.TemporaryFile() as file, socket.create_connection((host, port)) as peer:
        file.truncate(octets)
        begun = time.monotonic()
        peer.sendall(octets.to_bytes(8, "big"))
        peer.sendfile(file)
        if peer.recv(1) != b"!":
            sys.exit("the receiver went away")
        print(json.dumps({"octets": octets, "seconds": time.monotonic() - begun}), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "receive":
        receive(int(sys.argv[2]))
    else:
        send(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
