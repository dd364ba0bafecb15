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
#     search_device_test adapters_linear_test experts_test vae_latent_test adapters_network_test mergeplan mergeplan-torch \
#     mergeplan_graph mergeplan-plugins mergeplan_plugins
# A device machine needs of them bin/, libexec/, lib/ and gpu-lib.tar.xz. LibTorch is the one they were linked with, or
# python3's. Checks whose binary is not there are left out, and said to be, except the search's; so are those that need a python3 with
# torch.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
BUILD="${MERGEPLAN_BUILD:-build/release}"
TARGETS="search_device_test adapters_linear_test experts_test vae_latent_test adapters_network_test mergeplan mergeplan-torch mergeplan_graph"
TARGETS+=" mergeplan-plugins mergeplan_plugins"
BINARIES=("$BUILD"/bin/{search_device_test,adapters_linear_test,experts_test,vae_latent_test,adapters_network_test,mergeplan} "$BUILD"/libexec/mergeplan/*
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

# left_out PROGRAM: a check whose program is not there is left out, and said to be.
left_out() {
  [ -x "$1" ] && return 1
  echo "left out: $1 is not there"
}

say "linear students: every recipe on the device against the processor, on the same noise"
left_out "$BUILD/bin/adapters_linear_test" ||
  gtest "$BUILD/bin/adapters_linear_test" 'UnitSums.TrainOnCudaWhatTheProcessorTrains' 40 || FAILED+=("linear students")

say "students of a mixture: trainings of random sizes on the device against the processor, on the same rows"
left_out "$BUILD/bin/experts_test" ||
  gtest "$BUILD/bin/experts_test" 'DeviceTraining.OnCuda*' 60 || FAILED+=("students of a mixture")

say "moments of latents on the device against one pass on the processor, and against the same kernels as loops"
left_out "$BUILD/bin/vae_latent_test" ||
  gtest "$BUILD/bin/vae_latent_test" 'LatentMoments.AreSummedOnCuda:DeviceMoments.OnCuda*' 40 || FAILED+=("moments of latents")

say "kernels of networks (the DDIM wrapper, the average of parameters) against LibTorch on the processor"
left_out "$BUILD/bin/adapters_network_test" ||
  gtest "$BUILD/bin/adapters_network_test" '*.OnCuda*' 40 || FAILED+=("kernels of networks")

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
  for recipe in "" "--optimizer adam --ema 0.9"; do
    for device in cpu cuda; do
      # shellcheck disable=SC2086
      timeout 30 "$BUILD/bin/mergeplan" distill --strategy boot --teacher-steps 16 --schedule cosine --lr 0.05 \
        --iterations 40 --batch 256 --teacher "analytic:$WORK/spectrum.toml" --seed 1 $recipe --device "$device" --json \
        --quiet -o "$WORK/$device$recipe" >"$WORK/$device.json" || FAILED+=("distill --device $device $recipe")
    done
    # The noise is the same, so the errors are, up to rounding.
    python3 - "$WORK" <<'PY' || FAILED+=("distill: cuda against cpu $recipe")
import json, sys
cpu, cuda = (json.load(open("%s/%s.json" % (sys.argv[1], device))) for device in ("cpu", "cuda"))
apart = abs(cuda["achieved_error"] / cpu["achieved_error"] - 1)
print("achieved error %.12e (cpu), %.12e (cuda), %.1e apart, tolerance 1e-9" % (cpu["achieved_error"], cuda["achieved_error"], apart))
sys.exit(0 if cpu["predicted_error"] == cuda["predicted_error"] and apart <= 1e-9 else 1)
PY
  done

  say "distill --teacher mixture: --device cuda against --device cpu, and taken up again"
  python3 - "$WORK" <<'PY'
import hashlib, io, math, struct, sys, zipfile
K, d = 8, 2
def array(values, shape):
    header = "{'descr': '<f8', 'fortran_order': False, 'shape': %r, }" % (shape,)
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack("<%dd" % len(values), *values)
file = io.BytesIO()
with zipfile.ZipFile(file, "w") as z:
    z.writestr("weights.npy", array([1 / K] * K, (K,)))
    z.writestr("means.npy", array([5 * f(2 * math.pi * k / K) for k in range(K) for f in (math.cos, math.sin)], (K, d)))
    z.writestr("variances.npy", array([0.09] * (K * d), (K, d)))
open(sys.argv[1] + "/mixture.npz", "wb").write(file.getvalue())
open(sys.argv[1] + "/mixture.toml", "w").write("""format = 1
kind = "mixture"
name = "circle"
K = %d
d = %d
covariance = "diagonal"
[arrays]
file = "mixture.npz"
sha256 = "%s"
""" % (K, d, hashlib.sha256(file.getvalue()).hexdigest()))
PY
  modes=("$BUILD/bin/mergeplan" distill --teacher "mixture:$WORK/mixture.toml" --strategy boot --teacher-steps 4
    --schedule cosine --seed 1 --json --quiet)
  for device in cpu cuda; do
    timeout 30 "${modes[@]}" -o "$WORK/mixture-$device" --device "$device" --iterations 40 --fit-iterations 60 --batch 700 \
      --eps 1e-4 --dtype float64 >"$WORK/$device.json" || FAILED+=("distill of a mixture --device $device")
  done
  # The rows drawn are the same, so the errors are, up to rounding and what 160 updates make of it.
  python3 - "$WORK" <<'PY' || FAILED+=("distill of a mixture: cuda against cpu")
import json, sys
cpu, cuda = (json.load(open("%s/%s.json" % (sys.argv[1], device))) for device in ("cpu", "cuda"))
apart = abs(cuda["achieved_error"] / cpu["achieved_error"] - 1)
print("achieved error %.12e (cpu), %.12e (cuda), %.1e apart, tolerance 1e-6; %.2f and %.2f s of training"
      % (cpu["achieved_error"], cuda["achieved_error"], apart, cpu["seconds"], cuda["seconds"]))
sys.exit(0 if apart <= 1e-6 else 1)
PY
  # A run that was stopped ends with the same bits as one that was not.
  modes+=(--device cuda --iterations 20000 --fit-iterations 20000)
  timeout 60 "${modes[@]}" -o "$WORK/whole" >"$WORK/whole.json" || FAILED+=("distill of a mixture: a whole run")
  python3 - "$WORK/pieces" "${modes[@]}" <<'PY'
import os, signal, subprocess, sys, time
run = subprocess.Popen(sys.argv[2:] + ["--checkpoint-seconds", "1", "-o", sys.argv[1]], stdout=subprocess.DEVNULL)
end = time.time() + 40
while run.poll() is None and time.time() < end and not os.path.exists(sys.argv[1] + "/checkpoint.npz"):
    time.sleep(0.05)
if run.poll() is None:
    run.send_signal(signal.SIGINT)
print("stopped with code", run.wait(20))
PY
  timeout 60 "$BUILD/bin/mergeplan" distill --resume --json --quiet -o "$WORK/pieces" >"$WORK/pieces.json" ||
    FAILED+=("distill of a mixture: a run taken up")
  python3 - "$WORK" <<'PY' || FAILED+=("distill of a mixture: bits of a run taken up")
import json, sys
whole, pieces = (json.load(open("%s/%s.json" % (sys.argv[1], name))) for name in ("whole", "pieces"))
print("achieved error %.17g (whole, %.1f s of training), %.17g (stopped and taken up)"
      % (whole["achieved_error"], whole["seconds"], pieces["achieved_error"]))
sys.exit(0 if whole["achieved_error"] == pieces["achieved_error"] else 1)
PY
fi

# 4. Networks.
say "distill of networks: --device cuda against --device cpu, with and without CUDA graphs"
if [ ! -x "$BUILD/libexec/mergeplan/mergeplan-torch" ] || [ ! -x "$BUILD/bin/mergeplan" ]; then
  echo "left out: $BUILD/libexec/mergeplan/mergeplan-torch is not there"
else
  # shellcheck source=tests/gpu_networks.sh
  source tests/gpu_networks.sh
fi

say "result"
if [ "${#FAILED[@]}" -gt 0 ]; then
  printf 'FAILED: %s\n' "${FAILED[@]}"
  exit 1
fi
echo "all checks on the device passed"
