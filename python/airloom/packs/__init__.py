"""Packs: one archive with a result and everything that another machine needs to run it again.

:mod:`~airloom.packs.archive` is the format and its checks, :mod:`~airloom.packs.contents` collects
what belongs to a result, :mod:`~airloom.packs.rerun` unpacks it and runs it again.
"""
