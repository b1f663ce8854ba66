"""Topologies: builders for Python, generators, positions, and GraphML files."""
