#!/usr/bin/env bash
# Builds and runs the benchmark of the plugins' border and writes its table into README.md beside this script.
#
#   bash bench/plugins/table.sh            everything: half a minute
#   bash bench/plugins/table.sh REGEX      only the benchmarks that match, to the terminal
#
# MERGEPLAN_BUILD names a configured build folder (default: build/torch-free of this tree, configured where it is missing).
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../cmake/setup.sh"
cd "$ROOT"
if [ -n "${MERGEPLAN_BUILD:-}" ]; then
  ninja -C "$MERGEPLAN_BUILD" plugins_bench
else
  setup_packages
  build torch-free plugins_bench
fi
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
"${MERGEPLAN_BUILD:-build/torch-free}/bin/plugins_bench" --benchmark_filter="${1:-.}" --benchmark_repetitions=5 \
  --benchmark_out="$WORK/result.json" --benchmark_out_format=json
[ $# -gt 0 ] || /usr/bin/python3 bench/plugins/table.py "$WORK/result.json" bench/plugins/README.md
