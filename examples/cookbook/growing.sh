#!/bin/sh
# A laboratory that becomes larger while it runs: growing.sh FOLDER
set -eu
here=$(dirname "$0")
airloom up "$here/office.yaml" --out "$1" <<END
pingall
apply $here/office-larger.yaml dry-run
apply $here/office-larger.yaml
pingall
END
