#!/usr/bin/env bash
# Four strategies and the planned merge schedule on the shipped teacher, for students of one and of two jumps, under both budgets:
#
#   bash examples/unet/compare.sh [FOLDER]           default: runs/compare; less than an hour on two cores
#
# UPDATES, BATCH and TRIALS change the question (150, 8, 1); DATA and TEST name other copies of Fashion-MNIST. Needs the release
# build (`ninja -C build/release`) or an installed mergeplan on the PATH. Goes on where it was stopped, bench by bench.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
OUT=${1:-runs/compare}
UPDATES=${UPDATES:-150} BATCH=${BATCH:-8} TRIALS=${TRIALS:-1}
DATA=${DATA:-/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz}
TEST=${TEST:-/usr/share/datasets/fashion-mnist/t10k-images-idx3-ubyte.gz}
MERGEPLAN="$HERE/../../build/release/bin/mergeplan"
[ -x "$MERGEPLAN" ] || MERGEPLAN=mergeplan
mkdir -p "$OUT"
export OMP_NUM_THREADS=1

TEACHER=(--teacher "unet:$HERE/teacher" --schedule "$HERE/teacher/scheduler/scheduler_config.json" --teacher-steps 8)
TRAINING=(--iterations "$UPDATES" --batch "$BATCH" --lr 3e-4 --threads 1 --data "$DATA" --data-rows 8192)

# compare NAME JUMPS: what merges cost on this network, the plan for that, and all strategies.
compare() {
  local name=$1 jumps=$2
  [ -e "$OUT/$name.toml" ] ||
    "$MERGEPLAN" calibrate "${TEACHER[@]}" "${TRAINING[@]}" --student-steps "$jumps" --replicates 1 -o "$OUT/$name-measured.toml" \
      --plan-output "$OUT/$name.toml" >"$OUT/$name-calibrate.txt" 2>"$OUT/$name-calibrate.log" || return
  [ -e "$OUT/$name/table.csv" ] ||
    "$MERGEPLAN" bench "${TEACHER[@]}" "${TRAINING[@]}" --student-steps "$jumps" --trials "$TRIALS" \
      --strategies "vanilla,progressive,boot,consistency,$OUT/$name.toml" --budget both --judge "$TEST" --judge-samples 2000 \
      --judge-rows 2000 -o "$OUT/$name" >"$OUT/$name.txt" 2>"$OUT/$name.log"
}

# Both students at the same time, a core each.
compare one 1 &
FIRST=$!
CODE=0
compare two 2 || CODE=1
wait "$FIRST" || CODE=1
[ "$CODE" -eq 0 ] || { tail -n 3 "$OUT"/*.log >&2; exit 1; }
cat "$OUT"/{one,two}-calibrate.txt "$OUT"/{one,two}.txt
