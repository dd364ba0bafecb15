#!/usr/bin/env bash
# Builds and runs the benchmark of linear students and PyTorch's of the same work, one after the other, and writes the tables
# into README.md beside this script.
#
#   bash bench/runtime/table.sh            about two minutes on two cores
#   bash bench/runtime/table.sh REGEX      only our benchmarks that match, to the terminal
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../cmake/setup.sh"
cd "$ROOT"
setup_packages
setup_torch
build torch-free linear_bench
PYTHON="$VENV/bin/python"
[ -x "$PYTHON" ] || PYTHON=python3
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT

BENCH=("$ROOT/build/torch-free/bin/linear_bench" --benchmark_filter="${1:-.}" --benchmark_out="$WORK/ours.json"
  --benchmark_out_format=json)
if [ $# -gt 0 ]; then
  "${BENCH[@]}"
  exit
fi
# Before and after, since a machine may be busier at one time than at another.
"$PYTHON" bench/peers/linear_eager.py >"$WORK/before.json"
"${BENCH[@]}"
"$PYTHON" bench/peers/linear_eager.py >"$WORK/after.json"
/usr/bin/python3 bench/runtime/table.py "$WORK/ours.json" "$WORK/before.json" "$WORK/after.json" bench/runtime/README.md
