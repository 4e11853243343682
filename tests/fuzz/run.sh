#!/usr/bin/env bash
# Builds one fuzz target and runs it on small golden files as seeds.
#   tests/fuzz/run.sh TARGET [SECONDS]      TARGET: program, text, params, pickle, npy, list, record, slot,
#                                         picture, pictures (a list of them) or plan
# Inputs found so far are kept in build/fuzz/corpus/TARGET; one that fails is written there as
# crash-*, and belongs as a byte string into the unit test of the file it broke.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=$1
seconds=${2:-180}
case $target in
  program) patterns=('*.pb' '*.pdmodel') max_kib=16 ;;
  text) patterns=() max_kib=8 ;;
  params) patterns=('*.pdiparams') max_kib=64 ;;
  pickle) patterns=('*.pdopt' '*.pdparams' '*.pickle' '*.pdtensor') max_kib=4 ;;
  npy) patterns=('*.npy' '*.npz') max_kib=4 ;;
  list) patterns=('*.params') max_kib=4 ;;
  record) patterns=('*.rec' '*.idx') max_kib=8 ;;
  slot) patterns=('*.slot') max_kib=4 ;;
  picture) patterns=('*.png' '*.jpg') max_kib=16 ;;
  pictures) patterns=('*.lst') max_kib=4 ;;
  plan) patterns=() max_kib=16 ;;
  *) echo "no target '$target'; there are program, text, params, pickle, npy, list, record, slot, picture, pictures and plan" >&2; exit 2 ;;
esac

cmake --preset fuzz >/dev/null
cmake --build --preset fuzz --target "${target}_fuzz"
corpus=build/fuzz/corpus/$target
seeds=build/fuzz/seeds/$target
mkdir -p "$corpus" "$seeds"
goldens=build/fuzz/goldens
if [ ! -d "$goldens" ]; then
  mkdir -p "$goldens"
  tar xf tests/goldens/set_a.tar.xz -C "$goldens"
fi
if [ "$target" = plan ]; then
  cmake --build --preset fuzz --target plan_seeds
  build/fuzz/tests/fuzz/plan_seeds "$seeds"
fi
if [ "$target" = text ]; then
  # The programs of the tests of passes and plans, which are many in a file.
  csplit -sz -n 4 -f "$seeds/case-" <(cat tests/passes/*.txt tests/interpreter/inspect/*.txt) \
    '/^block 0/' '{*}'
  sed -i '/^---\|^===/,$d' "$seeds"/case-*
fi
for pattern in "${patterns[@]}"; do
  find "$goldens" tools/digits tests/core/io/pickles tests/core/io/array_lists tests/core/io/records \
    -name "$pattern" -size -"${max_kib}k" | while read -r file; do
    cp "$file" "$seeds/$(sha1sum <"$file" | cut -c1-16)"
  done
done

export ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=1
export UBSAN_OPTIONS=print_stacktrace=1
exec "build/fuzz/tests/fuzz/${target}_fuzz" "$corpus" "$seeds" -max_total_time="$seconds" \
  -max_len=$((max_kib * 1024)) -timeout=10 -rss_limit_mb=2048 -artifact_prefix="$corpus/" \
  -print_final_stats=1
