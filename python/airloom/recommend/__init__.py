"""Which kind of node suits a scenario on this machine, and what its figures are worth there.

:mod:`~airloom.recommend.classes` judges classes of experiments, :mod:`~airloom.recommend.carried`
estimates how many nodes fit, :mod:`~airloom.recommend.trials` measures both on this machine.
"""
