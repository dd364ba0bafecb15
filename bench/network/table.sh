#!/usr/bin/env bash
# Builds and runs the benchmark of network students and the same work in eager PyTorch, in turns on one thread, and writes the
# tables into README.md beside this script.
#
#   bash bench/network/table.sh PYTHON     a Python with torch and diffusers; about a quarter of an hour
#
# MERGEPLAN_SHARED names the folder of reference data with the TorchScript network (left out where it is not there).
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../cmake/setup.sh"
cd "$ROOT"
PEER=${1:?"bash bench/network/table.sh PYTHON: a Python with torch and diffusers is missing"}
"$PEER" -c 'import diffusers, torch' || { echo "$PEER: import of torch and diffusers failed" >&2; exit 1; }
SHARED="${MERGEPLAN_SHARED:-$(dirname "$ROOT")/shared}"
setup_packages
setup_torch
build release network_bench unet_bench
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
export OMP_NUM_THREADS=1
BIN="$ROOT/build/release/bin"

# both NAME OURS PEER: in turns, three times.
both() {
  local turn
  for turn in 1 2 3; do
    "$PEER" bench/peers/network_eager.py "$3" 5 32 >>"$WORK/$1.peer"
    "$BIN/network_bench" "$2" 5 32 >>"$WORK/$1.ours"
  done
}

"$BIN/unet_bench" make "$WORK/pipe/unet" --width 24 --layers 1
mkdir -p "$WORK/pipe/scheduler"
echo '{"_class_name": "DDIMScheduler", "beta_start": 0.0001, "beta_end": 0.02, "beta_schedule": "linear", "clip_sample": false,
  "num_train_timesteps": 1000, "prediction_type": "epsilon"}' >"$WORK/pipe/scheduler/scheduler_config.json"
both unet "unet:$WORK/pipe/unet" "$WORK/pipe/unet"
if [ -e "$SHARED/data/weights/mnist-ddpm/lin.ts" ]; then
  sed "s#@MERGEPLAN_SHARED@#$SHARED#" tests/adapters/network/data/lin.toml >"$WORK/lin.toml"
  both script "script:$WORK/lin.toml" "$SHARED/data/weights/mnist-ddpm/net.py:lin"
fi
"$BIN/unet_bench" make "$WORK/big" --width 384
for turn in 1 2 3; do "$BIN/unet_bench" load "$WORK/big" --runs 2 >>"$WORK/load"; done
/usr/bin/python3 bench/network/table.py "$WORK" bench/network/README.md
