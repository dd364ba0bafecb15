#!/usr/bin/env bash
# Is every C and C++ file as clang-format leaves it?
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
find planner plugins adapters examples tests bench -name '*.h' -o -name '*.cc' -o -name '*.c' | sort |
  xargs -r -d '\n' clang-format --dry-run -Werror
