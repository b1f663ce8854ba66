"""Nodes: how they are made, and what can be done with them while a run lasts.

:mod:`~airloom.nodes.kind` says what a node is to the rest of Airloom; :mod:`~airloom.nodes.all_nodes`
makes those of a plan, whatever their kinds.
"""
