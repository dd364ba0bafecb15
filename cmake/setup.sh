# Sourced by examples/quickstart.sh and tests/run.sh: brings a Debian 12 machine to where mergeplan can be built, and
# builds it. What is there already is left alone.
#
#   setup_packages            Debian packages
#   setup_torch               LibTorch: what CMAKE_PREFIX_PATH names, else a virtual environment with torch
#   setup_python_build        the tools that build the Python package's wheel
#   build PRESET [TARGET...]  configures build/PRESET and builds
#
# MERGEPLAN_VENV names another folder for the virtual environment.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export PATH="${PATH:-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin}"
export HOME="${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}"
TORCH_VERSION=2.11.0
VENV="${MERGEPLAN_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/mergeplan/torch-$TORCH_VERSION}"

PACKAGES=(
  g++ cmake ninja-build ccache mold pkg-config python3 python3-venv
  libabsl-dev libtomlplusplus-dev libcli11-dev nlohmann-json3-dev libeigen3-dev
  libarchive-dev libpng-dev libjpeg-dev libssl-dev
  libgtest-dev libgmock-dev librapidcheck-dev libbenchmark-dev
  libopenmpi-dev openmpi-bin clang-format clang-tidy dataset-fashion-mnist
)

say() { printf '\n== %s\n' "$*"; }

setup_packages() {
  local missing=() package
  for package in "${PACKAGES[@]}"; do
    dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null | grep -q '^ii' || missing+=("$package")
  done
  [ "${#missing[@]}" -eq 0 ] && return 0
  say "installing ${missing[*]}"
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "these Debian packages are missing: ${missing[*]}; install them as root" >&2; return 1; }
    as_root=(sudo)
  fi
  "${as_root[@]}" apt-get update -qq
  DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# Does one of the folders in CMAKE_PREFIX_PATH hold a LibTorch?
_own_torch() {
  local folder
  local IFS=':;'
  for folder in ${CMAKE_PREFIX_PATH:-}; do
    [ -e "$folder/share/cmake/Torch/TorchConfig.cmake" ] || [ -e "$folder/Torch/TorchConfig.cmake" ] && return 0
  done
  return 1
}

setup_torch() {
  _own_torch && return 0
  if [ ! -e "$VENV/complete" ]; then
    say "making a virtual environment with torch $TORCH_VERSION in $VENV (once, some minutes and 5 GB)"
    mkdir -p "$(dirname "$VENV")"
    (
      flock 9
      if [ ! -e "$VENV/complete" ]; then
        rm -rf "$VENV"
        /usr/bin/python3 -m venv "$VENV"
        "$VENV/bin/pip" install --quiet --disable-pip-version-check "torch==$TORCH_VERSION" numpy
        touch "$VENV/complete"
      fi
    ) 9>"$VENV.lock"
  fi
  local torch
  torch=$(echo "$VENV"/lib/python3*/site-packages/torch)
  export CMAKE_PREFIX_PATH="$torch${CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH}"
}

# A virtual environment with what adapters/python/pyproject.toml builds with: it stays where it is, so that ccache knows what was
# compiled against its headers. Sets PYTHON_BUILD.
setup_python_build() {
  local requires
  requires=$(/usr/bin/python3 -c 'import sys, tomllib; print("\n".join(tomllib.load(open(sys.argv[1], "rb"))["build-system"]["requires"]))' \
    "$ROOT/adapters/python/pyproject.toml")
  PYTHON_BUILD="$(dirname "$VENV")/python-build-$(sha256sum <<<"$requires" | cut -c1-12)"
  [ -e "$PYTHON_BUILD/complete" ] && return 0
  say "making a virtual environment with ${requires//$'\n'/, } in $PYTHON_BUILD"
  mkdir -p "$(dirname "$PYTHON_BUILD")"
  (
    flock 9
    if [ ! -e "$PYTHON_BUILD/complete" ]; then
      rm -rf "$PYTHON_BUILD"
      /usr/bin/python3 -m venv "$PYTHON_BUILD"
      "$PYTHON_BUILD/bin/pip" install --quiet --disable-pip-version-check -r <(echo "$requires")
      touch "$PYTHON_BUILD/complete"
    fi
  ) 9>"$PYTHON_BUILD.lock"
}

# Compilers that use 1.5 GB a file: no more jobs than the memory carries.
_jobs() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/MemAvailable/ {print int($2 / 2000000)}' /proc/meminfo)
  [ "$memory" -lt 1 ] && memory=1
  [ "$memory" -lt "$cores" ] && echo "$memory" || echo "$cores"
}

build() {
  local preset=$1 log
  shift
  log=$(mktemp)
  (
    cd "$ROOT"
    if ! cmake --preset "$preset" >"$log" 2>&1; then
      cat "$log" >&2
      exit 1
    fi
    if ! ninja -C "build/$preset" -j "$(_jobs)" "$@" >"$log" 2>&1; then
      grep -v '^\[' "$log" | head -60 >&2
      exit 1
    fi
  )
  local code=$?
  rm -f "$log"
  return $code
}
