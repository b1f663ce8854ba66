"""Mininet-WiFi's API on Airloom: ``airloom mn-run`` maps ``mn_wifi`` to this package.

Stations and access points are nodes with radios of the engine: 802.11 with contention, rate control,
collisions and interference by distance, as on the media of a scenario. The nodes see an Ethernet
interface; ``iw``, ``hostapd`` and ``wpa_supplicant`` need nodes with an 802.11 stack of their own, which a
scenario has (``device: wlan``).
"""
