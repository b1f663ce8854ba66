"""Processes of nodes: the supervisor, the first process of a node, their channel, control groups."""
