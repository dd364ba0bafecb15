#!/usr/bin/env bash
# Measures updates per second in each layout and precision on this machine, all of its threads, and writes the table into
# README.md beside this script. Some minutes.
#
#   bash bench/network/layouts.sh
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../cmake/setup.sh"
cd "$ROOT"
setup_packages
setup_torch
build release layout_bench unet_bench
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
BIN="$ROOT/build/release/bin"
"$BIN/unet_bench" make "$WORK/pipe/unet" --width 24 --layers 1
mkdir -p "$WORK/pipe/scheduler"
echo '{"_class_name": "DDIMScheduler", "beta_start": 0.0001, "beta_end": 0.02, "beta_schedule": "linear", "clip_sample": false,
  "num_train_timesteps": 1000, "prediction_type": "epsilon"}' >"$WORK/pipe/scheduler/scheduler_config.json"
{
  echo "| network | parameters | batch | threads | contiguous full | channels_last full | contiguous bf16 | channels_last bf16 | probe chooses | in |"
  echo "|---|---|---|---|---|---|---|---|---|---|"
  "$BIN/layout_bench" '`examples/unet/teacher`' unet:examples/unet/teacher 5 32
  "$BIN/layout_bench" "diffusers UNet2DModel, as above" "unet:$WORK/pipe/unet" 2 32
} >"$WORK/table"
echo "$(nproc) cores ($(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1)), load $(cut -d' ' -f2 /proc/loadavg) over the last five minutes, $(date +%F)." >"$WORK/machine"
awk -v work="$WORK" '
  /<!-- end of layouts -->/ { inside = 0 }
  !inside { print }
  /<!-- layouts -->/ {
    inside = 1
    while ((getline line < (work "/machine")) > 0) print line
    print ""
    while ((getline line < (work "/table")) > 0) print line
  }' bench/network/README.md >"$WORK/README.md"
cp "$WORK/README.md" bench/network/README.md
