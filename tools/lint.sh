#!/usr/bin/env bash
# Checks the formatting of all files, and runs clang-tidy on as many as fit into a time budget:
# files that differ from BASE first, then the rest, where mistakes cost most first.
#   tools/lint.sh [BUDGET_SECONDS] [BASE]      default: 600 seconds, HEAD~1
# Needs what is generated in build/release (tools/test.sh makes it).
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/setup.sh
need_packages clang-format clang-tidy

budget=${1:-600}
base=${2:-HEAD~1}
git ls-files '*.cc' '*.cu' '*.h' '*.hpp' '*.c' | xargs clang-format --dry-run -Werror
echo "formatting is right"

# Each file by itself and without precompiled headers, which clang cannot read: a missing include shows.
cmake --preset release -B build/lint -DINTERP_PCH=OFF -DINTERP_UNITY=OFF >/dev/null
# clang does not know these options of GCC.
sed -i "s,$PWD/build/lint,$PWD/build/release,g; s, -fvect-cost-model=dynamic,,g; s, --param=[^ ]*,,g" build/lint/compile_commands.json

deadline=$(($(date +%s) + budget))
# Peers of benchmarks need headers that are not here.
peers=':!tests/bench/*_peer.cc'
changed=$(git diff --name-only --diff-filter=d "$base" -- '*.cc' "$peers" 2>/dev/null || true)
rest=$(git ls-files 'interpreter/*.cc' 'interp/*.cc' 'core/*.cc' 'passes/*.cc' 'tools/*.cc' 'kernels/*.cc' 'tests/*.cc' "$peers")
failed=$(mktemp)
trap 'rm -f "$failed"' EXIT

# One file, unless the time is up.
check_file() {
  [ "$(date +%s)" -ge "$deadline" ] && return 0
  local output
  if output=$(clang-tidy -p build/lint --quiet --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-unknown-pragmas "$1" 2>/dev/null); then
    echo "tidy: $1"
  else
    printf '%s\n' "$output"
    echo "$1" >>"$failed"
  fi
}
export -f check_file
export deadline failed
printf '%s\n' $changed $rest | awk 'NF && !seen[$0]++' | xargs -P "$(nproc)" -I{} bash -c 'check_file {}'
if [ -s "$failed" ]; then
  echo "clang-tidy objects to: $(sort "$failed" | tr '\n' ' ')"
  exit 1
fi
echo "clang-tidy is content"
