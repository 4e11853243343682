#!/usr/bin/env bash
# Runs the digit model on emulated processors, with the build of the preset `package`, and checks which
# variant of the library the loader takes. Needs qemu-user, whose processors end at x86-64-v3; no test
# runs it.
#   tests/package/run_on_processors.sh [INTERP]      default: build/package/interp
set -euo pipefail
cd "$(dirname "$0")/../.."
interp=${1:-build/package/interp}
digits=tools/digits

# check LEVEL COMMAND...: the command before `interp` makes it run on a processor of this level.
check() {
  local level=$1
  shift
  "$@" "$interp" --version 2>/dev/null | grep "for $level: " || {
    echo "expected the variant for $level with: $*" >&2
    exit 1
  }
  "$@" "$interp" run $digits/digits.pdmodel --params $digits/digits.pdiparams --feed $digits/image.npy \
    --expect $digits/expected.npz 2>/dev/null | grep ": ok, "
}

check x86-64-v2 qemu-x86_64 -cpu Nehalem
check x86-64-v3 qemu-x86_64 -cpu Haswell
