"""Network helpers of nodes: neighbour tables, packet sockets, the proxy for OpenFlow controllers."""
