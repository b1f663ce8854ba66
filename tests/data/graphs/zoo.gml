# A network of three towns, in the form of the Topology Zoo: two nodes of one name, two edges of one pair.
graph [
  DateObtained "3/02/11"
  directed 0
  multigraph 1
  node [
    id 0
    label "Bras&#237;lia"
    Country "Brazil"
    Longitude -47.92972
    Internal 1
    Latitude -15.77972
  ]
  node [
    id 1
    label "S&#227;o Paulo"
    Longitude -46.63611
    Internal 1
    Latitude -23.5475
    graphics [ x 1.5 y 2 type "oval" ]
  ]
  node [
    id 2
    label "S&#227;o Paulo"
    hyperedge 1
  ]
  edge [
    source 0
    target 1
    LinkSpeed "10"
    LinkLabel "10 Gbps
fibre"
    LinkSpeedUnits "G"
    LinkSpeedRaw 10000000000.0
    key 0
  ]
  edge [
    source 1
    target 0
    LinkSpeedRaw 2.5e9
    key 1
  ]
  edge [
    source 1
    target 2
  ]
  edge [ source 2 target 2 ]
]
