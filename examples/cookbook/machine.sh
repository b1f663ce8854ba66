#!/bin/sh
# What this machine can do, and whether two runs of a scenario agree: machine.sh SCENARIO FOLDER
set -eu
airloom doctor
airloom check "$1"
airloom run "$1" --out "$2/a" --quiet
airloom run "$1" --out "$2/b" --quiet --seed 2
airloom compare "$2/a" "$2/b" || [ $? -eq 1 ]
