"""Mininet's Python API on an Airloom laboratory.

A script written for Mininet runs when ``mininet`` in its import lines becomes
``airloom.mininet``, or unchanged with ``airloom mn-run SCRIPT``. Hosts are nodes on the host's
kernel; the engine emulates links and switches. A call that Airloom does not support raises an
error that names the line of the script (see :mod:`airloom.mininet.errors`).
``docs/guide/mininet.md`` lists the supported calls.
"""
