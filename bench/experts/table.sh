#!/usr/bin/env bash
# Writes the tables of the affine mixture-of-experts student.
#
#   bash bench/experts/table.sh updates              times, with eager torch in the same run, into README.md beside this script
#   bash bench/experts/table.sh figure [OPTION...]   losses of fig:gmm_error_plot, into adapters/experts/README.md
#
# OPTIONs go to `experts_bench figure` (--help lists them).
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../cmake/setup.sh"
cd "$ROOT"
WHAT=${1:?updates or figure}
shift
setup_packages
build torch-free experts_bench
BIN="$ROOT/build/torch-free/bin/experts_bench"
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
case "$WHAT" in
  updates)
    setup_torch
    "$VENV/bin/python" bench/peers/experts_eager.py >"$WORK/eager.csv"
    "$BIN" updates >"$WORK/updates.csv"
    /usr/bin/python3 bench/experts/table.py updates "$WORK/updates.csv" "$WORK/eager.csv" bench/experts/README.md
    ;;
  figure)
    "$BIN" figure "$@" | tee "$WORK/figure.csv"
    /usr/bin/python3 bench/experts/table.py figure "$WORK/figure.csv" "figure $*" adapters/experts/README.md
    ;;
  *) echo "table.sh: '$WHAT' is unknown, expected updates or figure" >&2; exit 2 ;;
esac
