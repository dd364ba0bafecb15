#!/usr/bin/env bash
# Builds the fuzzers with clang and lets each attack its parser; findings stay as tests/fuzz/corpus/*/found-*.
#
#   bash tests/fuzz/run.sh [SECONDS each, 300] [TARGET...]      targets: manifest plan_toml plan_json
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../cmake/setup.sh"
seconds=${1:-300}
shift $(($# > 0 ? 1 : 0))
targets=("$@")
[ "${#targets[@]}" -eq 0 ] && targets=(manifest plan_toml plan_json)
declare -A programs=([manifest]=fuzz_Manifest [plan_toml]=fuzz_PlanToml [plan_json]=fuzz_PlanJson)
names=()
for target in "${targets[@]}"; do
  if [ -z "${programs[$target]:-}" ]; then
    echo "tests/fuzz/run.sh: unknown target \"$target\", expected manifest, plan_toml or plan_json" >&2
    exit 2
  fi
  names+=("${programs[$target]}")
done
build fuzz "${names[@]}" || exit 1

corpus="$ROOT/tests/fuzz/corpus"
failed=0
for target in "${targets[@]}"; do
  say "$target"
  grown=$(mktemp -d)
  # New inputs go to a folder of their own; the kept corpus grows only by findings (and by hand: -merge=1).
  "$ROOT/build/fuzz/bin/${programs[$target]}" -max_total_time="$seconds" -max_len=4096 -timeout=20 -rss_limit_mb=2048 \
    -dict="$ROOT/tests/fuzz/$target.dict" -artifact_prefix="$corpus/$target/found-" -print_final_stats=1 \
    "$grown" "$corpus/$target" 2>&1 | grep -E '^(==|stat::|SUMMARY|fuzz:|#[0-9]+.*DONE|.*ERROR|artifact)'
  [ "${PIPESTATUS[0]}" -eq 0 ] || failed=1
  rm -rf "$grown"
done
exit "$failed"
