"""Links, switches and addresses: their settings for the engine, interfaces, VLANs, tunnels and neighbours."""
