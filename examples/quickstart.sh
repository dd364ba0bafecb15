#!/usr/bin/env bash
# The main job on real data, from nothing: installs what is missing, builds, then analyses Fashion-MNIST, plans its merge
# schedule, executes the plan and the four usual strategies with SGD, and writes a report.
#
#   bash examples/quickstart.sh [FOLDER]      results go to FOLDER (default: build/quickstart)
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/setup.sh"

OUT="${1:-$ROOT/build/quickstart}"
setup_packages
setup_torch
say "building"
build release mergeplan mergeplan-torch mergeplan-plugins mergeplan_plugins
export PATH="$ROOT/build/release/bin:$PATH"

DATA=/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz
PROBLEM=(--teacher-steps 32 --schedule cosine --lr 0.005 --iterations 320 --batch 64)
mkdir -p "$OUT"
rm -rf "$OUT/runs"
mkdir "$OUT/runs"

say "1. analyze: which regime are the images in?"
mergeplan analyze "$DATA" -o "$OUT/spectrum.toml" "${PROBLEM[@]}"

say "2. plan: which merge schedule loses least?"
mergeplan plan "$OUT/spectrum.toml" "${PROBLEM[@]}" --basis pca --gap 0.01 -o "$OUT/plan.toml"

say "3. distill: train every merge of every strategy"
for strategy in vanilla progressive boot consistency; do
  mergeplan distill --strategy "$strategy" "${PROBLEM[@]}" --teacher "analytic:$OUT/spectrum.toml" --basis pca \
    -o "$OUT/runs/$strategy"
done
mergeplan distill --plan "$OUT/plan.toml" --teacher "analytic:$OUT/spectrum.toml" -o "$OUT/runs/dp_custom"

say "4. report: predicted against achieved"
mergeplan report "$OUT/runs/"{vanilla,progressive,boot,consistency,dp_custom} --plan "$OUT/plan.toml" \
  --title "Fashion-MNIST, 32 steps into one" -o "$OUT/report.html"
