"""From a scenario to a plan: checks, addresses, routes, media and admission of slices."""
