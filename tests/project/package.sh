#!/usr/bin/env bash
# Strategy plugins from outside: installs a build into an empty prefix (its path has spaces), builds the plugins of
# examples/ against nothing but that, by find_package with clang -O0 and by pkg-config with gcc, and uses them.
#
#   bash tests/project/package.sh [BUILD]        BUILD: a built tree, build/release where not given
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../cmake/setup.sh"
BUILD=${1:-$ROOT/build/release}
FOLDER=$(mktemp -d)
trap 'rm -rf "$FOLDER"' EXIT
PREFIX="$FOLDER/pre fix"

fail() {
  echo "package: $*" >&2
  exit 1
}

say "install into an empty prefix"
cmake --install "$BUILD" --prefix "$PREFIX" >/dev/null
mv "$PREFIX" "$FOLDER/moved pre fix" # nothing installed may know where it was
PREFIX="$FOLDER/moved pre fix"
export PKG_CONFIG_PATH="$PREFIX/lib/pkgconfig" PATH="$PREFIX/bin:$PATH"
mergeplan --version

# 64 points in two dimensions as .npy: Gaussian by quantiles, so there is no chance in it.
/usr/bin/python3 - "$FOLDER/points.npy" <<'PYTHON'
import statistics, struct, sys
quantile = statistics.NormalDist().inv_cdf
rows = [(1.5 * quantile((i + 0.5) / 64), 0.5 * quantile((i * 27 % 64 + 0.5) / 64)) for i in range(64)]
header = "{'descr': '<f8', 'fortran_order': False, 'shape': (64, 2), }".ljust(117) + "\n"
data = b"".join(struct.pack("<2d", *row) for row in rows)
open(sys.argv[1], "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)
PYTHON
mergeplan analyze "$FOLDER/points.npy" -o "$FOLDER/spectrum.toml" >/dev/null

# One exported symbol.
check_symbols() {
  local exported
  exported=$(nm -D --defined-only --format=posix "$1" | awk '{print $1}')
  [ "$exported" = mergeplan_plugin_entry ] || fail "$1 exports \"$exported\", expected mergeplan_plugin_entry alone"
}

for example in plugin_c plugin_cpp; do
  for way in find_package pkg-config; do
    say "$example by $way"
    cp -r "$ROOT/examples/$example" "$FOLDER/$example $way"
    cd "$FOLDER/$example $way"
    if [ "$way" = find_package ]; then
      cmake -S . -B build -G Ninja -DCMAKE_PREFIX_PATH="$PREFIX" -DCMAKE_INSTALL_PREFIX="$FOLDER/other" \
        -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_BUILD_TYPE=Debug \
        --no-warn-unused-cli -DCMAKE_C_FLAGS="-O0 -Wall -Wextra -Werror -pedantic" \
        -DCMAKE_CXX_FLAGS="-O0 -Wall -Wextra -Werror -pedantic" >/dev/null
      cmake --build build >/dev/null
      [ "$example" = plugin_c ] || ctest --test-dir build --output-on-failure | tail -3
      cmake --install build >/dev/null
      plugins="$FOLDER/other/lib/mergeplan/plugins"
    else
      make -s CFLAGS="-O2 -Wall -Wextra -Werror -pedantic" CXXFLAGS="-O2 -Wall -Wextra -Werror -pedantic"
      plugins=$PWD
    fi
    for library in "$plugins"/*.so; do
      check_symbols "$library"
      name=$(basename "$library" .so)
      mergeplan plugins list --plugin-dir "$plugins" | grep -E "^$name +[0-9.]+ +[A-Z]" | grep -v unusable ||
        fail "$name is not listed as usable"
      mergeplan plugins check "$library" | tail -1
      if [ -x "$PREFIX/libexec/mergeplan/mergeplan-torch" ]; then
        mergeplan bench --strategies "$library,boot,vanilla" --teacher "analytic:$FOLDER/spectrum.toml" \
          --teacher-steps 8 --schedule cosine --lr 0.01 --iterations 50 --trials 1 --quiet
      fi
    done
  done
done

say "make install puts a plugin where the installed mergeplan finds it"
cd "$FOLDER/plugin_c pkg-config"
make -s install
mergeplan plugins list | grep -q '^halves ' || fail "halves is not found after make install"
echo "package: both examples build, load, pass the conformance suite and run"
