#!/usr/bin/env bash
# Installs what is missing, builds everything and runs all tests.
#   tools/test.sh [PRESET] [CTEST ARGUMENTS...]      PRESET: release (default), dev, asan, tsan
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/setup.sh

preset=${1:-release}
[ $# -gt 0 ] && shift
need_build_packages
need_packages python3-jsonschema
configure "$preset"
cmake --build --preset "$preset"
ctest --test-dir "build/$preset" --output-on-failure -j "$(nproc)" "$@"
