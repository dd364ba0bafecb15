#!/usr/bin/env bash
# Four strategies and the planned merge schedule on the shipped teacher, for students of one and of two jumps, under both budgets:
#
#   bash examples/unet/compare.sh [FOLDER]           default: runs/compare; less than an hour on two cores
#
# The question can be changed by the environment: UPDATES (150), BATCH (8), LR (3e-4), TRIALS (1), STUDENTS (one two); TEACHER and SCHEDULE
# another network (`script:model.toml`, `unet:FOLDER`), DATA its training data, TEST what samples are compared with, STEPS the teacher's steps (8),
# CALIBRATE=no for the four strategies without a plan of its own, MORE any other options of bench and calibrate.
# Needs the release build (`ninja -C build/release`) or an installed mergeplan on the PATH. What is there already is not done again.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
OUT=${1:-runs/compare}
UPDATES=${UPDATES:-150} BATCH=${BATCH:-8} LR=${LR:-3e-4} TRIALS=${TRIALS:-1} STEPS=${STEPS:-8}
TEACHER=${TEACHER:-unet:$HERE/teacher}
SCHEDULE=${SCHEDULE:-$HERE/teacher/scheduler/scheduler_config.json}
DATA=${DATA:-/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz}
TEST=${TEST:-/usr/share/datasets/fashion-mnist/t10k-images-idx3-ubyte.gz}
MERGEPLAN="$HERE/../../build/release/bin/mergeplan"
[ -x "$MERGEPLAN" ] || MERGEPLAN=mergeplan
mkdir -p "$OUT"
export OMP_NUM_THREADS=1

read -r -a REST <<<"${MORE:-}"
QUESTION=(--teacher "$TEACHER" --schedule "$SCHEDULE" --teacher-steps "$STEPS" --iterations "$UPDATES" --batch "$BATCH" --lr "$LR"
  --threads 1 --data "$DATA" --data-rows 8192 "${REST[@]}")

# compare NAME JUMPS: what merges cost on this network, the plan for that, and all strategies.
compare() {
  local name=$1 jumps=$2
  local strategies=vanilla,progressive,boot,consistency
  [ "${CALIBRATE:-yes}" = no ] || strategies+=",$OUT/$name.toml"
  [ "${CALIBRATE:-yes}" = no ] || [ -e "$OUT/$name.toml" ] ||
    "$MERGEPLAN" calibrate "${QUESTION[@]}" --student-steps "$jumps" --replicates 1 -o "$OUT/$name-measured.toml" \
      --plan-output "$OUT/$name.toml" >"$OUT/$name-calibrate.txt" 2>"$OUT/$name-calibrate.log" || return
  [ -e "$OUT/$name/bench.csv" ] ||
    "$MERGEPLAN" bench "${QUESTION[@]}" --student-steps "$jumps" --trials "$TRIALS" \
      --strategies "$strategies" --budget both --judge "$TEST" --judge-samples 2000 \
      --judge-rows 2000 -o "$OUT/$name" >"$OUT/$name.txt" 2>"$OUT/$name.log"
}

# Both students at the same time, a core each.
RUNNING=()
for student in ${STUDENTS:-one two}; do
  case "$student" in
    one) compare one 1 & ;;
    two) compare two 2 & ;;
    *) echo "STUDENTS=$STUDENTS: expected one, two or both" >&2; exit 2 ;;
  esac
  RUNNING+=($!)
done
CODE=0
for job in "${RUNNING[@]}"; do wait "$job" || CODE=1; done
if [ "$CODE" -ne 0 ]; then
  for log in "$OUT"/*.log; do tail -n 3 "$log" >&2; done
  exit 1
fi
for student in ${STUDENTS:-one two}; do
  [ ! -e "$OUT/$student-calibrate.txt" ] || cat "$OUT/$student-calibrate.txt"
  cat "$OUT/$student.txt"
done
