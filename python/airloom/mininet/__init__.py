"""Mininet's Python API as a door to the laboratory.

A script written for Mininet runs when ``mininet`` in its import lines becomes ``airloom.mininet``, or
unchanged with ``airloom mn-run SCRIPT``. Hosts are nodes with the host's kernel, links and switches
are the engine's; what Mininet can do and this cannot is one error that names the line of the script
(see :mod:`airloom.mininet.errors`). The table in ``docs/guide/mininet.md`` says what works.
"""
