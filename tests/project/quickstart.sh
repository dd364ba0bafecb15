#!/usr/bin/env bash
# Runs the quickstart into a folder whose path has spaces and holds its results against the predicted law: every strategy
# agrees, a run whose learning rate was 5 % off does not.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../cmake/setup.sh"
setup_torch
FOLDER=$(mktemp -d)
trap 'rm -rf "$FOLDER"' EXIT
OUT="$FOLDER/quick start"
begin=$(date +%s%N)
bash "$ROOT/examples/quickstart.sh" "$OUT"
echo "the quickstart took $((($(date +%s%N) - begin) / 1000000)) ms"
export PATH="$ROOT/build/release/bin:$PATH"
/usr/bin/python3 "$ROOT/tests/project/quickstart_check.py" "$OUT"
