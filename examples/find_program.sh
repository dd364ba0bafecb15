# Sets PROGRAM for the scripts of the examples: MERGEPLAN where that is given, else the newest build of this tree, else what is on PATH.
# A path is made absolute, since scripts change folders.
_built=$(ls -t "$(dirname "${BASH_SOURCE[0]}")"/../build/*/bin/mergeplan 2>/dev/null | head -1 || true)
PROGRAM="${MERGEPLAN:-${_built:-mergeplan}}"
case "$PROGRAM" in */*) PROGRAM=$(realpath -m "$PROGRAM") ;; esac
