#!/usr/bin/env bash
# A U-Net as the teacher of the latents of the VAE that lies here: encode the training set, train the teacher, look at its samples decoded,
# distil it to one jump by the four strategies, and judge their samples decoded.
#
#   bash examples/mssim_vae/unet.sh [FOLDER]     results go to FOLDER (default: build/mssim_unet); what is there already is not done again
#
#   MERGEPLAN    the program (default: the newest one under build/, else the one on PATH)
#   ITERATIONS   of the teacher's training (default: 3000)
#   UPDATES      of a merge (default: 100); BATCH (32), LR (5e-4), STEPS of the teacher (8), TRIALS (1)
#   SAMPLES      that are decoded and judged (default: 1000)
#   DATA         folder of Fashion-MNIST (default: that of Debian's package dataset-fashion-mnist)
set -euo pipefail
HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
ROOT="$(cd "$HERE/../.." && pwd)"
OUT="${1:-$ROOT/build/mssim_unet}"
source "$HERE/../find_program.sh"
DATA="${DATA:-/usr/share/datasets/fashion-mnist}"
TRAIN="$DATA/train-images-idx3-ubyte.gz" TEST="$DATA/t10k-images-idx3-ubyte.gz"
SAMPLES="${SAMPLES:-1000}" STEPS="${STEPS:-8}"
if [ ! -f "$TRAIN" ]; then
  echo "$TRAIN is missing: install the package dataset-fashion-mnist, or say DATA=FOLDER" >&2
  exit 1
fi
mkdir -p "$OUT"
export OMP_NUM_THREADS=1

echo "== 1. encode the 60,000 training pictures"
"$PROGRAM" encode "$TRAIN" --size 32 --vae "$HERE/vae" --threads 1 --quiet -o "$OUT/latents"

echo "== 2. train the teacher"
if [ ! -d "$OUT/teacher" ]; then
  go_on=(--model "$HERE/unet.json" --schedule ddpm-cosine --data "$OUT/latents" --iterations "${ITERATIONS:-3000}" --batch 64 --lr 2e-3
    --warmup 100 --ema 0.998 --log-every 50)
else
  go_on=(--resume)
fi
"$PROGRAM" train-teacher "${go_on[@]}" --threads 1 --quiet -o "$OUT/teacher"
for steps in 50 "$STEPS"; do
  "$PROGRAM" sample "unet:$OUT/teacher" --teacher-steps "$steps" --count 64 --threads 1 -o "$OUT/samples-$steps.npz"
  "$PROGRAM" decode "$OUT/samples-$steps.npz" --vae "$HERE/vae" --threads 1 -o "$OUT/samples-$steps.png"
done

# --latents: where those of --data lie already. Under the second budget only strategies of fewer merges than BOOT have other updates: vanilla.
compare() { # compare NAME STRATEGIES BUDGET
  [ ! -e "$OUT/$1/bench.csv" ] || return 0
  "$PROGRAM" bench --teacher "unet:$OUT/teacher" --schedule "$OUT/teacher" --teacher-steps "$STEPS" --iterations "${UPDATES:-100}" \
    --batch "${BATCH:-32}" --lr "${LR:-5e-4}" --threads 1 --data "$TRAIN" --size 32 --latents "$OUT/latents" --vae "$HERE/vae" \
    --judge "$TEST" --judge-samples "$SAMPLES" --judge-rows "$SAMPLES" --strategies "$2" --budget "$3" --trials "${TRIALS:-1}" \
    -o "$OUT/$1" | tee "$OUT/$1.txt"
}
echo "== 3. the same updates for every merge"
compare per-merge vanilla,progressive,boot,consistency per-merge
echo "== 4. as many updates in all as BOOT has"
compare total vanilla total
echo "pictures: $OUT/samples-*.png, $OUT/per-merge/*.png, $OUT/total/*.png"
