"""A program with OML measurement points, by the text protocol alone: the load of its node's processor.

Usage: OML_COLLECT=tcp:HOST:PORT OML_NAME=NODE OML_DOMAIN=NAME client.py SECONDS
"""

import os
import socket
import sys
import time

_, host, port = os.environ["OML_COLLECT"].split(":")
start = int(time.time())
with socket.create_connection((host, int(port)), 10) as server:
    server.sendall(
        f"protocol: 4\ndomain: {os.environ['OML_DOMAIN']}\nstart-time: {start}\n"
        f"sender-id: {os.environ['OML_NAME']}\napp-name: load\n"
        "schema: 0 _experiment_metadata subject:string key:string value:string\n"
        "schema: 1 load_average one_minute:double tasks:string\ncontent: text\n\n".encode()
    )
    for number in range(int(float(sys.argv[1]) * 10)):
        with open("/proc/loadavg") as file:
            one, _, _, tasks, _ = file.read().split()
        server.sendall(f"{time.time() - start:.6f}\t1\t{number}\t{one}\t{tasks}\n".encode())
        time.sleep(0.1)
