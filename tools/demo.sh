#!/usr/bin/env bash
# Installs what is missing, builds interp, trains LeNet and reads a handwritten digit.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/setup.sh

need_build_packages
configure release
cmake --build --preset release --target interp_cli train_lenet

interp=build/release/interp
digits=tools/digits
echo
echo "A network learns digits that the program draws (tools/examples/train_lenet.cc):"
echo
echo "\$ build/release/examples/train_lenet 100"
build/release/examples/train_lenet 100
echo
echo "Another, trained with Paddle, sees the picture in $digits/image.npy:"
# Behind 128 bytes of header lie 28 rows of 28 floats from 0 to 1.
od -An -v -tf4 -w112 -j128 "$digits/image.npy" |
  awk '{ row = ""; for (i = 1; i <= NF; i++) row = row substr(" .:*#@", int($i * 5.99) + 1, 1); print "  " row }'

command=("$interp" run "$digits/digits.pdmodel" --params "$digits/digits.pdiparams"
  --feed "$digits/image.npy" --expect "$digits/expected.npz")
echo
echo "\$ ${command[*]}"
report=$("${command[@]}")
echo "$report"
echo
# The values are the probabilities of the digits 0 to 9.
echo "$report" | awk '$1 == "values" {
  split("zero one two three four five six seven eight nine", words)
  best = 2
  for (i = 3; i <= NF; i++) if ($i > $best) best = i
  printf "interp sees a %s (%.2f %% sure), and its numbers are those of Paddle.\n", words[best - 1], 100 * $best
}'
