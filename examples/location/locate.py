"""Finds where it is from a scan of `iw`: python3 locate.py INTERFACE MAP X Y WITHIN

MAP has a line for each access point: its SSID, its place in metres (east, north), its power in dBm. The
signal of an access point at the distance d is P - L0 - 10 n log10(d / 1 m), with the loss L0 at one
metre and the exponent n of the scenario's medium. The place is the one whose signals differ least from
those of the scan, by the sum of squared differences in dB, which Gauss and Newton's method finds. It
needs three access points; four tell the two sides of their line apart.

X and Y are where it should be, and WITHIN the error that is allowed, in metres: the program ends with
exit code 1 if it is larger.
"""

import math
import re
import subprocess
import sys
import time

LOSS, EXPONENT = 46.7, 2.5
"""dB at one metre, and the exponent."""
FREQUENCY = "5180"
STEPS = 50


def scanned(interface):
    """Returns the signal in dBm of each network that a scan finds, by SSID."""
    command = ["iw", "dev", interface, "scan", "freq", FREQUENCY, "flush"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = {}
    for part in re.split(r"^BSS ", text, flags=re.MULTILINE)[1:]:
        signal = re.search(r"^\tsignal: (\S+) dBm", part, re.MULTILINE)
        name = re.search(r"^\tSSID: (.+)$", part, re.MULTILINE)
        if signal and name:
            found[name[1]] = float(signal[1])
    return found


def expected(place, hotspot):
    """Returns the signal in dBm of a hotspot at a place, and the distance in metres."""
    x, y, power = hotspot
    distance = max(math.dist(place, (x, y)), 1.0)
    return power - LOSS - 10 * EXPONENT * math.log10(distance), distance


def located(signals, hotspots):
    """Returns the place in metres that explains the signals best."""
    heard = [(hotspots[name], signal) for name, signal in signals.items() if name in hotspots]
    if len(heard) < 3:
        sys.exit(f"{len(heard)} known access points are heard: a place needs three")
    # Strong ones are near: it begins at their mean, weighted by power.
    weighted = [(hotspot, 10 ** (signal / 20)) for hotspot, signal in heard]
    whole = sum(weight for _, weight in weighted)
    place = [sum(hotspot[axis] * weight for hotspot, weight in weighted) / whole for axis in (0, 1)]
    for _ in range(STEPS):
        # Normal equations of the signals' derivatives by the place: k (x - x_i) / d^2.
        a = b = c = p = q = 0.0
        for hotspot, signal in heard:
            value, distance = expected(place, hotspot)
            scale = -10 * EXPONENT / math.log(10) / distance**2
            east, north = (scale * (place[axis] - hotspot[axis]) for axis in (0, 1))
            rest = signal - value
            a, b, c = a + east * east, b + east * north, c + north * north
            p, q = p + east * rest, q + north * rest
        determinant = a * c - b * b
        if determinant <= 0:
            break
        step = ((c * p - b * q) / determinant, (a * q - b * p) / determinant)
        # At most 10 m at a time: far from the solution the signals are not linear in the place.
        size = max(1.0, math.hypot(*step) / 10)
        place = [place[axis] + step[axis] / size for axis in (0, 1)]
    return place


def main():
    """Scans, says where it is, and compares."""
    interface, path, x, y, within = sys.argv[1:]
    with open(path) as lines:
        rows = [line.split() for line in lines if line.strip()]
    hotspots = {name: tuple(map(float, numbers)) for name, *numbers in rows}
    signals = {}
    while len(set(signals) & set(hotspots)) < len(hotspots) and time.monotonic() < DEADLINE:
        # A scan listens for a while on each channel: a beacon that collides is missed.
        signals |= scanned(interface)
    place = located(signals, hotspots)
    error = math.dist(place, (float(x), float(y)))
    heard = ", ".join(f"{name} {signal:.0f} dBm" for name, signal in sorted(signals.items()))
    print(f"at {place[0]:.1f} m, {place[1]:.1f} m; {error:.1f} m away from {x} m, {y} m; heard: {heard}")
    sys.exit(error > float(within))


DEADLINE = time.monotonic() + 5
if __name__ == "__main__":
    main()
