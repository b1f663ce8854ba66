#!/bin/sh
# Every form of a report of one run: reports.sh RESULTS [TARGET]
set -eu
run=$1
target=${2:-$run/export}
airloom report "$run" --png "$target/png" --svg "$target/svg" --csv "$target/csv" --flent "$target/flent"
ls "$target"
