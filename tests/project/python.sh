#!/usr/bin/env bash
# Builds the wheel of adapters/python, installs it into an empty virtual environment, and runs tests/python there, in an environment
# that has nothing of this one.
#
#   bash tests/project/python.sh [PYTEST ARGUMENT...]
#
# Needs the network for pip (build tools, numpy, pytest), where its cache does not have them.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../cmake/setup.sh"
FOLDER=$(mktemp -d)
trap 'rm -rf "$FOLDER"' EXIT
clean=(env -i "HOME=$HOME" "PATH=/usr/local/bin:/usr/bin:/bin" LANG=C.UTF-8 CCACHE_BASEDIR=/ CCACHE_NOHASHDIR=1)
for name in PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_CERT PIP_PROXY PIP_CONFIG_FILE SSL_CERT_FILE REQUESTS_CA_BUNDLE http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
  [ -z "${!name:-}" ] || clean+=("$name=${!name}")
done

# Registries are not always there at the first knock.
retry() {
  local attempt
  for attempt in 1 2 3; do
    "$@" && return 0
    echo "python: try $attempt of 3 failed: ${*: -3}" >&2
    sleep $((attempt * 5))
  done
  echo "python: gave up; pip needs the network, or a cache or index (PIP_INDEX_URL) that has what it names above" >&2
  return 1
}

unzip_names() { /usr/bin/python3 -c 'import sys, zipfile; print(*sorted(zipfile.ZipFile(sys.argv[1]).namelist()), sep="\n")' "$1"; }

say "the wheel"
# A subshell of its own: a function that is tried does not stop at its first error.
retry bash -euo pipefail -c 'source "$0/cmake/setup.sh"; setup_python_build' "$ROOT"
setup_python_build
begin=$(date +%s)
"${clean[@]}" "PATH=$PYTHON_BUILD/bin:/usr/local/bin:/usr/bin:/bin" "$PYTHON_BUILD/bin/pip" wheel --quiet --disable-pip-version-check \
  --no-deps --no-build-isolation "$ROOT/adapters/python" -w "$FOLDER/wheel"
wheel=$(echo "$FOLDER"/wheel/mergeplan-*.whl)
echo "$(basename "$wheel"): $(stat -c %s "$wheel") bytes, built in $(($(date +%s) - begin)) s"

# Unpacked elsewhere it builds the same wheel; with arguments these tests are not meant.
if [ "$#" -eq 0 ]; then
  say "the sdist"
  begin=$(date +%s)
  (cd "$ROOT/adapters/python" && PYTHONPATH=backend "$PYTHON_BUILD/bin/python" -c \
    'import sys, mergeplan_build; print(mergeplan_build.build_sdist(sys.argv[1]))' "$FOLDER" | tail -n 1)
  "${clean[@]}" "PATH=$PYTHON_BUILD/bin:/usr/local/bin:/usr/bin:/bin" "$PYTHON_BUILD/bin/pip" wheel --quiet --disable-pip-version-check \
    --no-deps --no-build-isolation "$FOLDER"/mergeplan-*.tar.gz -w "$FOLDER/wheel of the sdist"
  diff <(unzip_names "$wheel") <(unzip_names "$FOLDER/wheel of the sdist/"*.whl)
  echo "the same files in its wheel, built in $(($(date +%s) - begin)) s"
fi

say "an empty environment with it"
/usr/bin/python3 -m venv "$FOLDER/clean venv"
retry "${clean[@]}" "$FOLDER/clean venv/bin/pip" install --quiet --disable-pip-version-check "$wheel" pytest
python=("${clean[@]}" "MERGEPLAN_SHARED=${MERGEPLAN_SHARED:-$(dirname "$ROOT")/shared}" "MERGEPLAN_BIN=${MERGEPLAN_BIN:-$ROOT/build/release/bin/mergeplan}"
  "$FOLDER/clean venv/bin/python")
"${python[@]}" - <<'PYTHON'
import time
begin = time.perf_counter()
import mergeplan
print(f"mergeplan {mergeplan.__version__} imported in {(time.perf_counter() - begin) * 1e3:.0f} ms")
PYTHON

say "its tests"
cd "$FOLDER"
"${python[@]}" -m pytest -q -p no:cacheprovider --rootdir "$ROOT/tests/python" "$ROOT"/tests/python/test_planner_*.py "$@"

# What needs torch and diffusers has an environment of its own, on top of the one with torch; with arguments these tests are meant.
if [ "$#" -eq 0 ]; then
  say "torch and diffusers"
  bash "$ROOT/tests/project/python_torch.sh" "$wheel"
fi
