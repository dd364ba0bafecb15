#!/usr/bin/env bash
# Does clang-tidy find anything in the library code? (LibTorch's headers take it minutes a file, so files that include them
# are left out.) Needs the compile commands of a configured build.
#
#   bash tests/project/tidy.sh [FILE...]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../cmake/setup.sh"
cd "$ROOT"
cmake --preset torch-free >/dev/null
FILES=("$@")
[ "${#FILES[@]}" -eq 0 ] && mapfile -t FILES < <(find planner plugins adapters/{analytic,experts,linear,noise,parallel} adapters/calibrate/{answer,curve,design,fit,judge,linear,measurements,print}.cc \
  adapters/judge/{frechet,grid,neighbours,peak_memory}.cc adapters/network/{levels,loss,sidecar,signature,wrapper}.cc -name "*.cc" | sort)
printf '%s\0' "${FILES[@]}" | xargs -0 -n 1 -P "$(nproc)" clang-tidy -p build/torch-free --quiet 2>/dev/null
