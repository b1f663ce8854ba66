Creator "a script"
Version 1
graph
[
  directed 0
  node [ id 10 label "a" ]
  node [ id 11 label "b" ]
  edge [ source 10 target 11 latency 12.5 packet_loss 0.001 ]
]
