"""Peers of the benchmarks, where they are installed on this machine."""
