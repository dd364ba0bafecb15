# Of tests/gpu.sh, which sources this file: networks on the device. Uses its BUILD, WORK, FAILED and say.
# shellcheck shell=bash disable=SC2154

# distil NAME OPTIONS...: a run in $WORK/NAME with its figures in NAME.json.
distil() {
  local name=$1
  shift
  timeout 40 "$BUILD/bin/mergeplan" distill "$@" --seed 1 --threads 1 --json --quiet -o "$WORK/$name" >"$WORK/$name.json" 2>"$WORK/$name.log" && return
  tail -n 3 "$WORK/$name.log"
  FAILED+=("distill: $name")
  return 1
}
# agree A B TOLERANCE: the achieved errors of two runs, relative.
agree() {
  python3 - "$WORK" "$@" <<'PY' || FAILED+=("distill: $1 against $2")
import json, sys
work, a, b, tolerance = sys.argv[1:]
try:
    x, y = (float(json.load(open("%s/%s.json" % (work, name)))["achieved_error"]) for name in (a, b))
except (ValueError, TypeError):
    sys.exit("no error of %s or of %s" % (a, b))
print("achieved error %.9e (%s), %.9e (%s), %.1e apart, tolerance %s" % (x, a, y, b, abs(y / x - 1), tolerance))
sys.exit(0 if abs(y / x - 1) <= float(tolerance) else 1)
PY
}
# with_graphs NAME: the run's steps were taken down as graphs; where they were not, its log says so.
with_graphs() {
  ! grep -i 'without .*CUDA graph' "$WORK/$1.log" || FAILED+=("CUDA graphs: $1")
}

# A native U-Net, made by two updates on noise, and where python3 has torch a TorchScript network.
cat >"$WORK/config.json" <<'JSON'
{"_class_name": "UNet2DModel", "sample_size": 16, "in_channels": 1, "out_channels": 1, "block_out_channels": [16, 32],
 "down_block_types": ["DownBlock2D", "AttnDownBlock2D"], "up_block_types": ["AttnUpBlock2D", "UpBlock2D"], "layers_per_block": 1,
 "attention_head_dim": 8, "norm_num_groups": 8}
JSON
python3 - "$WORK" <<'PY'
import os, struct, sys
n = 64 * 16 * 16
header = "{'descr': '<f4', 'fortran_order': False, 'shape': (64, 1, 16, 16), }"
header += " " * (-(10 + len(header) + 1) % 64) + "\n"
numbers = [2 * (x + 0.5) / 65536 - 1 for x in struct.unpack("<%dH" % n, os.urandom(2 * n))]
with open(sys.argv[1] + "/noise.npy", "wb") as f:
    f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack("<%df" % n, *numbers))
PY
timeout 40 "$BUILD/bin/mergeplan" train-teacher --model "$WORK/config.json" --schedule ddpm-cosine --prediction v_prediction \
  --data "$WORK/noise.npy" --iterations 2 --batch 8 --lr 1e-3 -o "$WORK/made" >"$WORK/made.log" 2>&1 ||
  { tail -n 3 "$WORK/made.log"; FAILED+=("train-teacher"); }
networks=(unet)
cat >"$WORK/net.py" <<'PY'
import sys
import torch
class Net(torch.nn.Module):
    def __init__(self, width: int = 64):
        super().__init__()
        self.first = torch.nn.Conv2d(1, width, 3, padding=1)
        self.time = torch.nn.Linear(1, width)
        self.inside = torch.nn.ModuleList([torch.nn.Conv2d(width, width, 3, padding=1) for _ in range(4)])
        self.last = torch.nn.Conv2d(width, 1, 3, padding=1)
    def forward(self, z: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        x = self.first(z) + self.time(time.unsqueeze(1)).unsqueeze(2).unsqueeze(3)
        for layer in self.inside:
            x = x + layer(torch.nn.functional.silu(x))
        return self.last(x)
torch.manual_seed(1)
torch.jit.script(Net()).save(sys.argv[1] + "/net.ts")
open(sys.argv[1] + "/net.toml", "w").write("""format = 1
file = "net.ts"
prediction = "sample"
shape = [1, 28, 28]
dtype = "float32"
arguments = ["z", "time"]
[time]
kind = "level/T"
""")
PY
if ! python3 -c 'import torch' 2>/dev/null; then
  echo "TorchScript left out: python3 has no torch"
elif python3 "$WORK/net.py" "$WORK"; then
  networks+=(script)
else
  FAILED+=("a TorchScript network")
fi

for network in "${networks[@]}"; do
  question=(--strategy boot --teacher "unet:$WORK/made" --schedule "$WORK/made")
  [ "$network" = unet ] || question=(--strategy boot --teacher "script:$WORK/net.toml" --schedule cosine)
  question+=(--teacher-steps 3 --iterations 12 --batch 8 --lr 1e-3 --held-out-rows 32 --inputs rollout --optimizer adamw --ema 0.9)
  # Convolutions in float32 use TF32 on a device, and Adam moves a parameter whose gradient is nothing but rounding as far as any other.
  for device in cpu cuda; do distil "$network-$device" "${question[@]}" --device "$device"; done
  with_graphs "$network-cuda"
  agree "$network-cpu" "$network-cuda" 1e-2
  # A device does not add in the same order every time.
  distil "$network-no-graph" "${question[@]}" --device cuda --cuda-graph no && agree "$network-cuda" "$network-no-graph" 1e-4
  [ "$network" = unet ] || continue
  for device in cpu cuda; do distil "$network-double-$device" "${question[@]}" --dtype float64 --device "$device"; done
  with_graphs "$network-double-cuda"
  agree "$network-double-cpu" "$network-double-cuda" 1e-6
  distil "$network-accumulated" "${question[@]}" --device cuda --accumulate 2 && with_graphs "$network-accumulated"
  distil "$network-accumulated-no" "${question[@]}" --device cuda --accumulate 2 --cuda-graph no &&
    agree "$network-accumulated" "$network-accumulated-no" 1e-4
  distil "$network-bf16" "${question[@]}" --device cuda --precision bf16 && with_graphs "$network-bf16" &&
    agree "$network-cpu" "$network-bf16" 0.1
  # So short a run of fp16 is mostly about the scale of the loss, which changes after updates that are left out.
  distil "$network-fp16" "${question[@]}" --device cuda --precision fp16 && with_graphs "$network-fp16"
  distil "$network-fp16-no-graph" "${question[@]}" --device cuda --precision fp16 --cuda-graph no &&
    agree "$network-fp16" "$network-fp16-no-graph" 1e-2
  if "$BUILD/bin/mergeplan" distill --help | grep -q -e '--layout'; then
    distil "$network-channels-last" "${question[@]}" --device cuda --layout channels_last && agree "$network-cuda" "$network-channels-last" 1e-2
  else
    echo "channels_last left out: this program has no --layout"
  fi
done

say "a step of training: seconds (printed, never a failure)"
# A merge of two teacher steps, batch 32: two teacher calls, forward, backward, AdamW, EMA.
# seconds NAME OPTIONS...: of one update, from runs of two lengths.
seconds() {
  local name=$1 count
  shift
  if [ "$SECONDS" -gt 190 ]; then
    echo "$name left out: the script has run for $SECONDS s"
    return
  fi
  for count in 50 250; do
    distil "time-$name-$count" "$@" --device cuda --strategy manual --set merges=7-8 --student-steps 7 --teacher-steps 8 --iterations "$count" --batch 32 \
      --lr 1e-5 --held-out-rows 2 --inputs rollout --optimizer adamw --ema 0.99 || return
  done
  python3 - "$WORK" "$name" <<'PY'
import json, sys
short, long = (json.load(open("%s/time-%s-%d.json" % (sys.argv[1], sys.argv[2], n)))["seconds"] for n in (50, 250))
print("%-28s %.3f ms" % (sys.argv[2], 1e3 * (long - short) / 200))
PY
}
teacher=examples/unet/teacher
if [ -e "$teacher/unet/config.json" ]; then
  shipped=(--teacher "unet:$teacher" --schedule "$teacher")
  seconds unet "${shipped[@]}"
  seconds unet-no-graph "${shipped[@]}" --cuda-graph no
  seconds unet-bf16 "${shipped[@]}" --precision bf16
  [ "$SECONDS" -gt 190 ] || ! python3 -c 'import diffusers, torch' 2>/dev/null ||
    timeout 40 python3 bench/peers/network_eager.py "$teacher/unet" 20 32 cuda || echo "eager PyTorch: not done"
fi
if [ -e "$WORK/net.ts" ]; then
  seconds script --teacher "script:$WORK/net.toml" --schedule cosine
  seconds script-no-graph --teacher "script:$WORK/net.toml" --schedule cosine --cuda-graph no
  [ "$SECONDS" -gt 190 ] || timeout 40 python3 bench/peers/network_eager.py "$WORK/net.ts" 20 32 cuda || echo "eager PyTorch: not done"
fi
