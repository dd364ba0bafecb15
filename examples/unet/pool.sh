#!/usr/bin/env bash
# How few rollouts of the teacher are enough, and what stopping merges early saves: students of one jump from a teacher of four steps, from the
# same seeds,
#
#   bash examples/unet/pool.sh [FOLDER]              pools of rollouts of several sizes against fresh rollouts (default: runs/pool)
#   bash examples/unet/pool.sh --gain [FOLDER]       --gain-bound 0.01 against as many updates as were asked for (default: runs/gain)
#
# Both print their tables (pool.py). The question can be changed by the environment: UPDATES of a merge (100; --gain: 400), BATCH (8), LR (3e-4),
# TRIALS, seeds from 0 on (5; --gain: 3), POOLS, 0 for fresh rollouts (0 267 133), BOUNDS, 0 for no stop (0 0.01), ARMS as below, TEACHER and SCHEDULE.
# MERGEPLAN is the program (default: the newest one under build/, else the one on PATH). What is there already is not done again.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
KIND=pool
if [ "${1:-}" = --gain ]; then
  KIND=gain
  shift
fi
OUT=${1:-runs/$KIND}
BATCH=${BATCH:-8} LR=${LR:-3e-4}
ARMS=${ARMS:-vanilla boot progressive planned}
TEACHER=${TEACHER:-unet:$HERE/teacher}
SCHEDULE=${SCHEDULE:-$HERE/teacher/scheduler/scheduler_config.json}
source "$HERE/../find_program.sh"
mkdir -p "$OUT"
export OMP_NUM_THREADS=1

if [ "$KIND" = pool ]; then
  UPDATES=${UPDATES:-100} TRIALS=${TRIALS:-5} VALUES=${POOLS:-0 267 133}
else
  UPDATES=${UPDATES:-400} TRIALS=${TRIALS:-3} VALUES=${BOUNDS:-0 0.01}
fi
for ((seed = 0; seed < TRIALS; ++seed)); do
  for value in $VALUES; do
    for arm in $ARMS; do
      folder="$OUT/$value/$arm-$seed"
      [ -e "$folder/result.toml" ] && continue
      # planned: (1 2 (3 4)), the noisy half first, then all that is left in one merge.
      how=(--strategy "$arm")
      [ "$arm" != planned ] || how=(--strategy manual --set merges=3-4,1-4)
      [ "$KIND" = pool ] && how+=(--pool-rows "$value") || how+=(--gain-bound "$value")
      how+=(--teacher "$TEACHER" --schedule "$SCHEDULE" --teacher-steps 4 --inputs rollout --iterations "$UPDATES" --batch "$BATCH" --lr "$LR"
        --seed "$seed")
      [ ! -e "$folder/run.toml" ] || how=(--resume)
      "$PROGRAM" distill "${how[@]}" --threads 1 --quiet -o "$folder" >/dev/null
    done
  done
done
python3 "$HERE/pool.py" "$KIND" "$OUT" | tee "$OUT/$KIND.md"
