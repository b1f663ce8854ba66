"""Nodes: how they are created and controlled during a run.

:mod:`~airloom.nodes.kind` defines the interface of a node; :mod:`~airloom.nodes.all_nodes` creates
the nodes of a plan, of all kinds.
"""
