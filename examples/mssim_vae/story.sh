#!/usr/bin/env bash
# The latent story on Fashion-MNIST: encode the test set with the VAE that lies here, analyse its latents, compare the four strategies and
# the planner's own at 10, 100, 1000 and 10,000 updates under both budgets, and look at their samples decoded.
#
#   bash examples/mssim_vae/story.sh [FOLDER]     results go to FOLDER (default: build/mssim_vae)
#
#   TRAIN=yes    trains the VAE first (README.md has the time), in place of the one that lies here
#   MERGEPLAN    the program (default: the newest one under build/, else the one on PATH)
#   UPDATES      of a merge (default: 10 100 1000 10000)
#   SAMPLES      that are decoded and judged (default: 1000)
#   DATA         folder of Fashion-MNIST (default: that of Debian's package dataset-fashion-mnist)
set -euo pipefail
HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
ROOT="$(cd "$HERE/../.." && pwd)"
OUT="${1:-$ROOT/build/mssim_vae}"
source "$HERE/../find_program.sh"
UPDATES="${UPDATES:-10 100 1000 10000}"
SAMPLES="${SAMPLES:-1000}"
DATA="${DATA:-/usr/share/datasets/fashion-mnist}"
TEST="$DATA/t10k-images-idx3-ubyte.gz"
if [ ! -f "$TEST" ]; then
  echo "$TEST is missing: install the package dataset-fashion-mnist, or say DATA=FOLDER" >&2
  exit 1
fi
mkdir -p "$OUT"

VAE="$HERE/vae"
if [ "${TRAIN:-no}" = yes ]; then
  VAE="$OUT/vae"
  go_on=(--model "$HERE/config.json" --data "$DATA/train-images-idx3-ubyte.gz" --size 32 --iterations 2500 --batch 32 --lr 2e-3
    --warmup 100 --ema 0.998 --kl-weight 5e-5 --log-every 25 --sample-every 500)
  if [ -f "$VAE/train.toml" ]; then go_on=(--resume); fi
  "$PROGRAM" train-vae "${go_on[@]}" --threads 1 -o "$VAE"
fi

# SGD as the paper has it for linear students: features of squared norm 32, batches of 2560. Its rate of 1e-3 would diverge along the
# largest variance of these latents; with half of it 100 updates are a time s of 1.6. `--draws chi2` draws the sums that a linear student sees
# of its batches from their own law, in place of the samples: the same law, much faster.
question=(--schedule cosine --lr 0.0005 --feature-norm 32 --batch 2560)
# mean: the means of the encoder's law, along their principal directions. mean-diagonal: the same, of which only the variances along the
# latents' own axes are looked at, as the paper does. sample: a draw from every law.
for run in mean mean-diagonal sample; do
  echo "== $run"
  content="${run%-diagonal}" basis=auto
  if [ "$run" != "$content" ]; then basis=diagonal; fi
  mkdir -p "$OUT/$run"
  latents="$OUT/latents-$content"
  "$PROGRAM" encode "$TEST" --size 32 --vae "$VAE" --content "$content" -o "$latents"
  # The report has the covariance as a heatmap and the variances, sorted, with their intervals.
  "$PROGRAM" analyze "$latents" --basis "$basis" -T 32 "${question[@]}" --iterations 100 \
    -o "$OUT/$run/spectrum.toml" --report "$OUT/$run/analysis.html" | tee "$OUT/$run/analysis.txt"
  "$PROGRAM" analyze "$latents" --basis "$basis" --no-gaussianity --json >"$OUT/$run/latents.json"
  # What comes out of the decoder is judged too, of the means' teacher.
  judge=()
  if [ "$run" = mean ]; then judge=(--judge "$TEST" --vae "$VAE" --judge-samples "$SAMPLES"); fi
  for updates in $UPDATES; do
    "$PROGRAM" bench --teacher "analytic:$OUT/$run/spectrum.toml" --teacher-steps 32 "${question[@]}" --iterations "$updates" \
      --draws chi2 --budget both --trials 1 --strategies vanilla,progressive,boot,consistency,dp_custom "${judge[@]}" \
      -o "$OUT/$run/bench-$updates.csv" --quiet >"$OUT/$run/bench-$updates.txt"
  done
done

# Error maps of decoded samples, as the paper's: students of the means' teacher, the same noise for all. In all, only strategies of fewer
# merges than BOOT have other updates under the second budget: vanilla and the planner's.
decoded() { # decoded OUTPUT RUN [--teacher]
  [ -f "$1" ] && return 0
  "$PROGRAM" sample "${@:2}" --count 8 -o "$OUT/samples.npz" >/dev/null
  "$PROGRAM" decode "$OUT/samples.npz" --vae "$VAE" --dtype float32 -o "$1" >/dev/null
}
for updates in $UPDATES; do
  students=()
  for strategy in vanilla progressive boot consistency dp_custom vanilla-in-all; do
    own="$updates"
    if [ "$strategy" = vanilla-in-all ]; then own=$((31 * updates)); fi
    folder="$OUT/runs-$updates/$strategy"
    if [ ! -f "$folder/result.toml" ]; then
      "$PROGRAM" distill --strategy "${strategy%-in-all}" --teacher "analytic:$OUT/mean/spectrum.toml" --teacher-steps 32 \
        "${question[@]}" --iterations "$own" --draws chi2 -o "$folder" --quiet >/dev/null
    fi
    decoded "$folder/decoded.npz" "$folder"
    students+=("$folder/decoded.npz")
  done
  decoded "$OUT/teacher.npz" "$OUT/runs-$updates/boot" --teacher
  python3 "$HERE/error_maps.py" "$OUT/error-maps-$updates.png" "$OUT/teacher.npz" "${students[@]}"
done

python3 "$HERE/table.py" "$OUT" | tee "$OUT/table.md"
echo "reports: $OUT/*/analysis.html, error maps: $OUT/error-maps-*.png"
