#!/usr/bin/env bash
# A pretrained autoencoder, from pictures to decoded samples of distilled students: TAESD for FLUX.2 on CIFAR-10 enlarged to 128 x 128.
#
#   bash examples/taesd/story.sh WEIGHTS PICTURES [FOLDER]
#
#   WEIGHTS    folder with encoder.ts and decoder.ts (README.md says what they take and give)
#   PICTURES   pictures as `mergeplan encode` reads them, such as a CIFAR-10 tar
#   FOLDER     of all results (default: build/taesd); a story that was stopped goes on with the same command
#
#   MERGEPLAN  the program (default: the newest one under build/, else the one on PATH)
#   SAMPLES    pictures to encode, from the first (default: 2000)
#   TRIALS     of the comparison (default: 3)
#   PYTHON     a Python with numpy (default: python3)
set -euo pipefail
if [ $# -lt 2 ]; then
  sed -n '2,14s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
WEIGHTS="$(cd "$1" && pwd)"
PICTURES="$(realpath "$2")"
HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
ROOT="$(cd "$HERE/../.." && pwd)"
OUT="${3:-$ROOT/build/taesd}"
source "$HERE/../find_program.sh"
# Said now, not after minutes of encoding.
"${PYTHON:-python3}" -c 'import numpy' || {
  echo "${PYTHON:-python3} has no numpy: install it, or say PYTHON=PROGRAM of a Python that has" >&2
  exit 1
}
mkdir -p "$OUT"
cd "$OUT"

echo "== 1. encode"
printf '%s\n' 'format = 1' "encoder = \"$WEIGHTS/encoder.ts\"" "decoder = \"$WEIGHTS/decoder.ts\"" 'pixels = "0:1"' \
  'latent_channels = 32' 'reduction = 8' >vae.toml
"$PROGRAM" encode "$PICTURES" --vae vae.toml --size 128 --limit "${SAMPLES:-2000}" --part-samples 250 -o latents

echo "== 2. analyze: per channel and by the cosine transform; by principal directions where there are samples enough"
"$PROGRAM" analyze latents --basis dct --per-channel --no-gaussianity -o spectrum.toml --report analysis.html --json \
  >analysis.json
"${PYTHON:-python3}" "$HERE/cut.py" latents middle.npy positions.npy
"$PROGRAM" analyze middle.npy -o middle.toml --report middle.html --json >middle.json
"$PROGRAM" analyze positions.npy -o positions.toml --report positions.html --json >positions.json
"${PYTHON:-python3}" "$HERE/regimes.py" "all of a latent=analysis.json" "its middle, 4 x 4=middle.json" \
  "one position=positions.json" | tee regimes.md

echo "== 3. plan, for the same updates a merge and for the same updates in all"
PROBLEM=(--teacher-steps 32 --schedule cosine --lr 0.005 --iterations 320)
"$PROGRAM" compare spectrum.toml --basis dct "${PROBLEM[@]}" | tee compare.txt
"$PROGRAM" plan spectrum.toml --basis dct "${PROBLEM[@]}" --time-limit 60 -o plan.toml | tee plan.txt

echo "== 4. distil: the four strategies and the plan, under both budgets"
"$PROGRAM" bench --teacher analytic:spectrum.toml --basis dct "${PROBLEM[@]}" --draws chi2 --trials "${TRIALS:-3}" \
  --strategies vanilla,progressive,boot,consistency,plan.toml -o bench.json | tee bench.txt

echo "== 5. decode samples from the same noise"
for strategy in vanilla progressive boot consistency plan; do
  how=(--strategy "$strategy" "${PROBLEM[@]}" --basis dct)
  if [ "$strategy" = plan ]; then how=(--plan plan.toml); fi
  [ -e "runs/$strategy/result.toml" ] ||
    "$PROGRAM" distill "${how[@]}" --teacher analytic:spectrum.toml --draws chi2 --quiet -o "runs/$strategy"
  "$PROGRAM" sample "runs/$strategy" --count 16 -o "$strategy-latents.npz"
  "$PROGRAM" decode "$strategy-latents.npz" --vae vae.toml --dtype float32 -o "$strategy.npz" -o "$strategy.png"
done
"$PROGRAM" sample runs/boot --teacher --count 16 -o teacher-latents.npz
"$PROGRAM" decode teacher-latents.npz --vae vae.toml --dtype float32 -o teacher.npz -o teacher.png
"$PROGRAM" decode latents --vae vae.toml --count 16 -o pictures.npz -o pictures.png
"${PYTHON:-python3}" "$HERE/apart.py" teacher vanilla progressive boot consistency plan | tee apart.md
echo "all of it: $OUT; reports: analysis.html, middle.html, positions.html"
