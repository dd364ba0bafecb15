#!/usr/bin/env bash
# Builds and runs the benchmark of encoding and the same networks in eager PyTorch, in turns on one and on two threads, measures what memory
# `mergeplan encode` takes, and writes the tables into README.md beside this script.
#
#   bash bench/vae/table.sh PYTHON     a Python with torch and diffusers; about ten minutes
#
# MERGEPLAN_SHARED names the folder of reference data with the other networks and CIFAR-10 (left out where it is not there).
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../cmake/setup.sh"
cd "$ROOT"
PEER=${1:?"bash bench/vae/table.sh PYTHON: a Python with torch and diffusers is missing"}
"$PEER" -c 'import diffusers, torch' || { echo "$PEER: import of torch and diffusers failed" >&2; exit 1; }
SHARED="${MERGEPLAN_SHARED:-$(dirname "$ROOT")/shared}"
setup_packages
setup_torch
build release vae_bench mergeplan mergeplan-torch
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
BIN="$ROOT/build/release/bin"
FASHION=/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz
CIFAR="$SHARED/data/cifar10/train-0000.tar"
TURNS=3

# both NAME PICTURES NETWORK PEER CHANNELS SIZE SAMPLES BATCH: in turns.
both() {
  local threads turn
  for threads in 1 2; do
    for ((turn = 0; turn < TURNS; ++turn)); do
      OMP_NUM_THREADS=$threads "$PEER" bench/peers/vae_eager.py "$4" --channels "$5" --size "$6" --samples "$7" --batch "$8" \
        --threads $threads >>"$WORK/$1.$threads.peer"
      OMP_NUM_THREADS=$threads "$BIN/vae_bench" "$2" "$3" --size "$6" --limit "$7" --batch "$8" --threads $threads \
        >>"$WORK/$1.$threads.ours"
    done
  done
}

both mssim "$FASHION" examples/mssim_vae/vae examples/mssim_vae/vae 1 32 1024 16
if [ -e "$CIFAR" ]; then
  both kl "$CIFAR" "$SHARED/reference/diffusers/vaes/kl" "$SHARED/reference/diffusers/vaes/kl" 3 64 256 16
  both tiny "$CIFAR" "$SHARED/reference/diffusers/vaes/tiny" "$SHARED/reference/diffusers/vaes/tiny" 3 64 512 16
  "$PEER" -c "import diffusers; diffusers.AutoencoderKL(block_out_channels=(128, 256, 512, 512), layers_per_block=2, latent_channels=4,
    down_block_types=('DownEncoderBlock2D',) * 4, up_block_types=('UpDecoderBlock2D',) * 4).save_pretrained('$WORK/large')"
  both large "$CIFAR" "$WORK/large" "$WORK/large" 3 64 16 4
  printf '%s\n' 'format = 1' "encoder = \"$SHARED/data/weights/taesd-flux2/encoder.ts\"" 'pixels = "0:1"' 'latent_channels = 32' \
    'reduction = 8' >"$WORK/taesd.toml"
  both taesd "$CIFAR" "$WORK/taesd.toml" "$SHARED/data/weights/taesd-flux2/net.py:encoder" 3 64 32 8
  for threads in 1 2; do
    for ((turn = 0; turn < TURNS; ++turn)); do
      OMP_NUM_THREADS=$threads "$PEER" bench/peers/vae_eager.py "$SHARED/data/weights/taesd-flux2/encoder.ts" --size 64 --samples 32 \
        --batch 8 --threads $threads >>"$WORK/taesd.$threads.script"
    done
  done
fi

# Peak memory of the whole command, by pictures and by batch.
for batch in 16 64; do
  for samples in 500 2000 8000; do
    /usr/bin/python3 bench/vae/peak.py "$BIN/mergeplan" encode "$FASHION" --vae examples/mssim_vae/vae --size 64 --limit $samples --batch $batch \
      --threads 1 --quiet -o "$WORK/latents-$batch-$samples" | sed "s/^{/{\"batch\": $batch, \"samples\": $samples, /" >>"$WORK/memory"
  done
done
/usr/bin/python3 bench/vae/table.py "$WORK" bench/vae/README.md
