#!/usr/bin/env bash
# Installs what is missing, builds, runs all tests, ends with "N passed, N failed".
#
#   bash tests/run.sh                style and release: formatting, the build, all tests, the quickstart
#   bash tests/run.sh STAGE...       some of: style release tidy sanitize (clang-tidy; address and UB sanitizers)
#
# MERGEPLAN_SHARED names the folder of reference data (default: ../shared beside this tree); tests that need it skip
# where it is not there.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/setup.sh"
export MERGEPLAN_SHARED="${MERGEPLAN_SHARED:-$(dirname "$ROOT")/shared}"
STAGES=("$@")
[ "${#STAGES[@]}" -eq 0 ] && STAGES=(style release)

setup_packages || exit 1
RESULTS=$(mktemp -d)
trap 'rm -rf "$RESULTS"' EXIT

# One line per check that is no GoogleTest case: NAME passed|failed.
record() { printf '%s %s\n' "$1" "$2" >>"$RESULTS/checks"; }
check() {
  local name=$1
  shift
  if "$@"; then record "$name" passed; else
    echo "FAILED: $name"
    record "$name" failed
  fi
}

run_ctest() {
  local preset=$1
  mkdir -p "$RESULTS/$preset"
  GTEST_OUTPUT="xml:$RESULTS/$preset/" ctest --test-dir "$ROOT/build/$preset" --output-on-failure -j "$(nproc)" \
    --output-junit "$RESULTS/ctest-$preset.xml" --no-tests=error | grep -vE '^ +Start +[0-9]+:'
}

for stage in "${STAGES[@]}"; do
  say "$stage"
  case "$stage" in
    style) check style bash "$ROOT/tests/project/format.sh" ;;
    tidy) check tidy bash "$ROOT/tests/project/tidy.sh" ;;
    release)
      setup_torch || exit 1
      # The environment with torch has numpy, which some tests compare files with.
      [ -n "${MERGEPLAN_PYTHON:-}" ] || [ ! -x "$VENV/bin/python" ] || export MERGEPLAN_PYTHON="$VENV/bin/python"
      build release && record build-release passed || { record build-release failed; continue; }
      run_ctest release
      check quickstart bash "$ROOT/tests/project/quickstart.sh"
      check package bash "$ROOT/tests/project/package.sh"
      check python bash "$ROOT/tests/project/python.sh"
      ;;
    sanitize)
      build dev && record build-sanitize passed || { record build-sanitize failed; continue; }
      # Tests of crashing plugins look at the signal, which the sanitizer would turn into an exit code.
      ASAN_OPTIONS=handle_segv=0:handle_abort=0 run_ctest dev
      ;;
    *)
      echo "tests/run.sh: unknown stage \"$stage\", expected style, tidy, release or sanitize" >&2
      exit 2
      ;;
  esac
done

/usr/bin/python3 "$ROOT/tests/project/count.py" "$RESULTS"
