#!/usr/bin/env bash
# Analyses well-known data sets: pixels of CIFAR-10, MNIST and Fashion-MNIST, and TAESD latents of CIFAR-10 enlarged to 128 x 128. A set
# that is not on this machine is left out, with a line that says so.
#
#   bash examples/analyze/run.sh [FOLDER]     spectra, reports and figures go to FOLDER (default: build/analyze)
#
#   MERGEPLAN          the program (default: the newest one under build/, else the one on PATH)
#   MERGEPLAN_SHARED   folder with data/cifar10/train-*.tar, data/mnist/mnist10k.npz and data/weights/taesd-flux2/encoder.ts
#   SAMPLES            pictures to encode, from the first (default: 2000)
set -euo pipefail
HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
ROOT="$(cd "$HERE/../.." && pwd)"
OUT="${1:-$ROOT/build/analyze}"
source "$HERE/../find_program.sh"
SHARED="${MERGEPLAN_SHARED:-}"
mkdir -p "$OUT"

done_sets=()
# analyse NAME TITLE INPUT [FLAGS]: INPUT may be a quoted pattern.
analyse() {
  local name="$1" title="$2" input="$3"
  shift 3
  if ! compgen -G "$input" >/dev/null; then
    echo "$title: left out, there is no $input"
    return
  fi
  echo "== $title"
  "$PROGRAM" analyze "$input" "$@" --per-channel --scaling-curve -T 50 --schedule cosine --train-time 1.6 \
    -o "$OUT/$name.toml" --report "$OUT/$name.html" --json >"$OUT/$name.json"
  done_sets+=("$title=$OUT/$name.json")
}

# Latents by an autoencoder come from `mergeplan encode`, which goes on where it was stopped.
encode_taesd() {
  local weights="$SHARED/data/weights/taesd-flux2" pictures
  pictures=$(compgen -G "$SHARED/data/cifar10/train-*.tar" | head -1 || true)
  if [ ! -e "$weights/encoder.ts" ] || [ -z "$pictures" ]; then return; fi
  printf '%s\n' 'format = 1' "encoder = \"$weights/encoder.ts\"" "decoder = \"$weights/decoder.ts\"" 'pixels = "0:1"' \
    'latent_channels = 32' 'reduction = 8' >"$OUT/taesd.toml"
  "$PROGRAM" encode "$pictures" --vae "$OUT/taesd.toml" --size 128 --limit "${SAMPLES:-2000}" --part-samples 250 \
    -o "$OUT/taesd-latents" || echo "the latents could not be made (mergeplan encode needs a build with LibTorch)"
}

if [ -z "$SHARED" ]; then echo "MERGEPLAN_SHARED is not set: CIFAR-10 and MNIST are left out"; fi
if [ -n "$SHARED" ]; then
  analyse cifar10 "CIFAR-10 pixels" "$SHARED/data/cifar10/train-*.tar"
  analyse mnist "MNIST pixels" "$SHARED/data/mnist/mnist10k.npz" --array images
  encode_taesd
  analyse taesd "TAESD latents of CIFAR-10" "$OUT/taesd-latents"
fi
analyse fashion-mnist "Fashion-MNIST pixels" "/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz"

if [ "${#done_sets[@]}" -eq 0 ]; then
  echo "no data set was found: nothing to show"
  exit 0
fi
python3 "$HERE/table.py" "${done_sets[@]}" | tee "$OUT/table.md"
echo "reports: $OUT/*.html"
