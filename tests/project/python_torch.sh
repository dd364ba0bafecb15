#!/usr/bin/env bash
# The tests of mergeplan.torch, mergeplan.diffusers and examples/python, with the package of a wheel:
#
#   bash tests/project/python_torch.sh WHEEL [FOLDER_FOR_JUNIT_XML]
#
# They run in a virtual environment of their own on top of the one with torch (cmake/setup.sh): torch is not installed again,
# diffusers and what goes with it are, in the versions below, once.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../cmake/setup.sh"
WHEEL=$(realpath "${1:?which wheel? bash tests/project/python_torch.sh WHEEL [FOLDER]}")
REPORTS=$(realpath "${2:-$(mktemp -d)}")
REQUIREMENTS=(diffusers==0.42.1 accelerate==1.15.0 peft==0.21.2 safetensors==0.8.0 nbclient==0.11.0 nbformat==5.11.1
  ipykernel==7.4.0 pytest==9.2.0)

TORCH_SITE=${MERGEPLAN_TORCH_SITE:-$(echo "$VENV"/lib/python3*/site-packages)}
if [ ! -d "$TORCH_SITE/torch" ]; then
  echo "python_torch.sh: no torch in $TORCH_SITE, expected the environment that setup_torch makes (or name its site-packages in" \
    "MERGEPLAN_TORCH_SITE)" >&2
  exit 1
fi
GLUE="$(dirname "$VENV")/glue-$(printf '%s\n' "$TORCH_SITE" "${REQUIREMENTS[@]}" | sha256sum | cut -c1-12)"
if [ ! -e "$GLUE/complete" ]; then
  say "making a virtual environment with diffusers in $GLUE (once, a minute and 500 MB)"
  (
    flock 9
    if [ ! -e "$GLUE/complete" ]; then
      rm -rf "$GLUE"
      /usr/bin/python3 -m venv "$GLUE"
      echo "$TORCH_SITE" >"$(echo "$GLUE"/lib/python3*/site-packages)/with-torch.pth"
      # Registries are not always there at the first knock.
      for wait in 5 20 60 0; do
        "$GLUE/bin/pip" install --quiet --disable-pip-version-check "${REQUIREMENTS[@]}" && break
        [ "$wait" -gt 0 ] || exit 1
        sleep "$wait"
      done
      touch "$GLUE/complete"
    fi
  ) 9>"$GLUE.lock"
fi

PACKAGE=$(mktemp -d)
trap 'rm -rf "$PACKAGE"' EXIT
"$GLUE/bin/pip" install --quiet --disable-pip-version-check --no-deps --target "$PACKAGE" "$WHEEL"

export PYTHONPATH="$PACKAGE" HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
export MERGEPLAN_SHARED="${MERGEPLAN_SHARED:-$(dirname "$ROOT")/shared}"
export MERGEPLAN_BIN="${MERGEPLAN_BIN:-$ROOT/build/release/bin/mergeplan}"
cd "$ROOT/tests/python"
# Imports take longer than most tests, so two halves side by side.
half() {
  local name=$1
  shift
  "$GLUE/bin/python" -m pytest -q -p no:cacheprovider --junitxml "$REPORTS/python-$name.xml" "$@" >"$PACKAGE/$name.log" 2>&1
}
half torch test_planner_spectrum.py::test_torch_tensors test_torch_arguments.py test_torch_targets.py test_torch_state.py test_torch_wrapped.py test_torch_calibrate.py test_torch_spectrum.py test_torch_moments.py &
first=$!
code=0
half diffusers test_diffusers_classes.py test_diffusers_scheduler.py test_diffusers_entries.py test_diffusers_pipeline.py test_torch_examples.py test_torch_like_cpp.py || code=1
wait "$first" || code=1
for name in torch diffusers; do
  if [ "$code" -ne 0 ]; then cat "$PACKAGE/$name.log"; else tail -n 1 "$PACKAGE/$name.log"; fi
done
exit "$code"
