#!/usr/bin/env bash
# Builds and runs the benchmark of the search and writes its tables into README.md beside this script.
#
#   bash bench/search/table.sh            everything: some ten minutes on two cores
#   bash bench/search/table.sh REGEX      only the benchmarks that match, to the terminal
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../cmake/setup.sh"
cd "$ROOT"
setup_packages
build torch-free mergeplan search_bench
BIN="$ROOT/build/torch-free/bin"
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT

IMAGES=/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz
if [ -e "$IMAGES" ]; then
  "$BIN/mergeplan" analyze "$IMAGES" -o "$WORK/spectrum.toml" >/dev/null
  export MERGEPLAN_SPECTRUM="$WORK/spectrum.toml"
fi
"$BIN/search_bench" --benchmark_filter="${1:-.}" --benchmark_out="$WORK/result.json" --benchmark_out_format=json
[ $# -gt 0 ] || /usr/bin/python3 bench/search/table.py "$WORK/result.json" bench/search/README.md
