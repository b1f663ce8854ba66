graph [
  directed 1
  node [
    id 0
    label "home"
    host_bandwidth_down "20 Mbit"
    host_bandwidth_up "2 megabit"
  ]
  node [
    id 1
    label "centre"
    host_bandwidth_down "1 Gbit"
    host_bandwidth_up "1 Gbit"
  ]
  edge [
    source 0
    target 0
    latency "1 ms"
    packet_loss 0.0
  ]
  edge [
    source 0
    target 1
    latency "30 ms"
    jitter "3 ms"
    packet_loss 0.02
  ]
  edge [
    source 1
    target 0
    latency "10000 us"
    jitter "0 ms"
    packet_loss 0.0
  ]
]
