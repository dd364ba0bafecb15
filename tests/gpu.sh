#!/usr/bin/env bash
# Everything that needs a CUDA device, from binaries built beforehand; no network, under four minutes.
#
#   bash tests/gpu.sh               runs the checks; without a device it says so and ends with 0
#   bash tests/gpu.sh libraries     on the machine that built: packs the shared libraries that the binaries need into
#                                   build/release/gpu-lib.tar.xz, for a device machine that lacks them (not glibc, not
#                                   LibTorch)
#
# The binaries (in build/release, or in the folder that MERGEPLAN_BUILD names):
#   cmake --preset release && cmake --build --preset release --target \
#     search_device_test mergeplan mergeplan-torch mergeplan-plugins mergeplan_plugins adapters_test
# A device machine needs of them bin/, libexec/, lib/ and gpu-lib.tar.xz. LibTorch is the one they were linked with, or
# python3's. Checks whose binary is not there are left out, and said to be, except the search's.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
BUILD="${MERGEPLAN_BUILD:-build/release}"
TARGETS="search_device_test mergeplan mergeplan-torch mergeplan-plugins mergeplan_plugins adapters_test"
BINARIES=("$BUILD"/bin/{search_device_test,mergeplan,adapters_test} "$BUILD"/libexec/mergeplan/*
  "$BUILD"/lib/mergeplan/plugins/*.so)

say() { printf '\n== %s\n' "$*"; }

if [ "${1:-}" = libraries ]; then
  for binary in "${BINARIES[@]}"; do [ -e "$binary" ] && ldd "$binary"; done |
    awk '$2 == "=>" && $3 ~ /^\/(usr\/)?lib/ {print $3}' | sort -u |
    grep -vE '/(libc|libm|libdl|librt|libpthread|libresolv|libutil|libstdc\+\+|libgcc_s|ld-linux[^/]*)\.so' |
    tar -cJhf "$BUILD/gpu-lib.tar.xz" --transform 's#.*/##' -P -T - || exit 1
  du -h "$BUILD/gpu-lib.tar.xz"
  exit 0
elif [ $# -gt 0 ]; then
  echo "tests/gpu.sh: unknown argument \"$1\", expected nothing or \"libraries\"" >&2
  exit 2
fi

# 1. Which device?
devices=$(nvidia-smi --query-gpu=name,driver_version,memory.total,compute_cap --format=csv,noheader 2>/dev/null) || devices=
if [ -z "$devices" ] && ! compgen -G '/dev/nvidia[0-9]*' >/dev/null; then
  echo "skipped: no CUDA device (nvidia-smi lists none, and there is no /dev/nvidia0)"
  exit 0
fi
say "device"
echo "${devices:-/dev/nvidia0; nvidia-smi says nothing about it}"

FAILED=()
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
if [ -e "$BUILD/gpu-lib.tar.xz" ]; then
  python3 -m tarfile -e "$BUILD/gpu-lib.tar.xz" "$WORK/lib" >/dev/null || FAILED+=("unpacking gpu-lib.tar.xz")
  export LD_LIBRARY_PATH="$WORK/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
fi

# gtest PROGRAM FILTER SECONDS: all tests must pass, and none may skip: there is a device.
gtest() {
  local program=$1 filter=$2 seconds=$3
  timeout "$seconds" "$program" --gtest_filter="$filter" --gtest_print_time=1 2>&1 | tee "$WORK/log"
  local code=${PIPESTATUS[0]}
  [ "$code" -eq 124 ] && echo "not done after $seconds s"
  grep -q '^\[  SKIPPED \]' "$WORK/log" && echo "a test skipped although there is a device" && return 1
  grep -qE '^\[  PASSED  \] [1-9]' "$WORK/log" || return 1
  return "$code"
}

# 2. The search: kernels digit by digit, passes, whole searches.
say "search on the device against the processor (bounds and kept parts bit by bit; plan, objective and lower bound equal)"
if [ ! -x "$BUILD/bin/search_device_test" ]; then
  echo "$BUILD/bin/search_device_test is not there; build it: cmake --preset release && cmake --build --preset release --target $TARGETS"
  FAILED+=("search: no binary")
else
  gtest "$BUILD/bin/search_device_test" '*/cuda' 120 || FAILED+=("search on the device")
fi

# 3. Training.
torch=$(python3 -c 'import os, torch; print(os.path.join(os.path.dirname(torch.__file__), "lib"))' 2>/dev/null) || torch=
[ -n "$torch" ] && ! ldd "$BUILD/libexec/mergeplan/mergeplan-torch" 2>/dev/null | grep -q 'libtorch_cpu.so => /' &&
  export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$torch"

say "the law of shrinkage on the device"
if [ -x "$BUILD/bin/adapters_test" ]; then
  gtest "$BUILD/bin/adapters_test" 'ShrinkageLaw.HoldsOnCuda' 40 || FAILED+=("law of shrinkage")
else
  echo "left out: $BUILD/bin/adapters_test is not there"
fi

say "distill --device cuda against --device cpu"
if [ ! -x "$BUILD/libexec/mergeplan/mergeplan-torch" ] || [ ! -x "$BUILD/bin/mergeplan" ]; then
  echo "left out: $BUILD/libexec/mergeplan/mergeplan-torch is not there"
else
  # 4,000 samples of 16 independent normal variables.
  python3 - "$WORK/data.npy" <<'PY'
import random, struct, sys
random.seed(7)
n, d = 4000, 16
with open(sys.argv[1], "wb") as f:
    header = "{'descr': '<f8', 'fortran_order': False, 'shape': (%d, %d), }" % (n, d)
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
    for _ in range(n):
        f.write(struct.pack("<%dd" % d, *[random.gauss(0, 0.3 * 1.15**k) for k in range(d)]))
PY
  "$BUILD/bin/mergeplan" analyze "$WORK/data.npy" -o "$WORK/spectrum.toml" >/dev/null || FAILED+=("analyze")
  for device in cpu cuda; do
    for seed in 1 2 3 4; do
      timeout 30 "$BUILD/bin/mergeplan" distill --strategy boot --teacher-steps 16 --schedule cosine --lr 0.05 \
        --iterations 40 --batch 256 --teacher "analytic:$WORK/spectrum.toml" --seed "$seed" --device "$device" --json \
        --quiet -o "$WORK/$device$seed" >"$WORK/$device$seed.json" || FAILED+=("distill --device $device, seed $seed")
    done
  done
  # The noise differs, so the errors do: the standard deviation of one run's error was seen to be 0.9 % on the
  # processor, of the difference of two means of four 0.64 %; 3 % is more than four times that.
  python3 - "$WORK" <<'PY' || FAILED+=("distill: cuda against cpu")
import json, sys
def runs(device):
    return [json.load(open("%s/%s%d.json" % (sys.argv[1], device, seed))) for seed in (1, 2, 3, 4)]
cpu, cuda = runs("cpu"), runs("cuda")
mean = lambda runs: sum(run["achieved_error"] for run in runs) / len(runs)
apart = abs(mean(cuda) / mean(cpu) - 1)
print("predicted error %.9e (cpu), %.9e (cuda)" % (cpu[0]["predicted_error"], cuda[0]["predicted_error"]))
print("achieved error, mean of 4 seeds: %.6e (cpu), %.6e (cuda), %.2f %% apart, tolerance 3 %%" % (mean(cpu), mean(cuda), 100 * apart))
same = all(a["predicted_error"] == b["predicted_error"] for a, b in zip(cpu, cuda))
sys.exit(0 if same and apart <= 0.03 else 1)
PY
fi

say "result"
if [ "${#FAILED[@]}" -gt 0 ]; then
  printf 'FAILED: %s\n' "${FAILED[@]}"
  exit 1
fi
echo "all checks on the device passed"
