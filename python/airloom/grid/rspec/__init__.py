"""GENI resource specifications, version 3: requests and manifests."""
