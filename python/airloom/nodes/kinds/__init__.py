"""The kinds of nodes, one module each."""
