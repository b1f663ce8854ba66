"""Takes RTP in a node and prints each packet: time of arrival in ns, sequence, timestamp, payload in base64.

usage: recorder.py PORT
"""

import base64
import socket
import sys
import time

with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taker:
    taker.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    taker.bind(("", int(sys.argv[1])))
    print("listening", flush=True)
    while True:
        packet = taker.recv(1 << 16)
        now = time.monotonic_ns()
        sequence, stamp = int.from_bytes(packet[2:4], "big"), int.from_bytes(packet[4:8], "big")
        print("packet", now, sequence, stamp, base64.b64encode(packet[12:]).decode(), flush=True)
