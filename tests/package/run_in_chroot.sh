#!/usr/bin/env bash
# Installs a package that cpack made in a bare Debian 12 and runs the digit model there. Needs root,
# debootstrap and Debian's mirror; no test runs it.
#   tests/package/run_in_chroot.sh PACKAGE.deb [FOLDER]     FOLDER: a bare Debian, kept for the next time
set -euo pipefail

package=$(realpath "$1")
if [ $# -gt 1 ]; then
  root=$2
else
  root=$(mktemp -d)
  trap 'rm -rf "$root"' EXIT
fi
[ -e "$root/bin/sh" ] || debootstrap --variant=minbase bookworm "$root" >/dev/null

inside() { chroot "$root" env PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 "$@"; }

cp "$package" "$root/interp.deb"
cp /etc/resolv.conf "$root/etc/resolv.conf"
inside apt-get update -qq
inside apt-get install -y -qq --no-install-recommends /interp.deb >/dev/null
inside interp --version
digits=/usr/share/interp/digits
inside interp run $digits/digits.pdmodel --params $digits/digits.pdiparams --feed $digits/image.npy \
  --expect $digits/expected.npz
inside apt-get purge -y -qq interp >/dev/null
left=$(inside find /usr -path '*interp*' -not -path '*/python*' -not -path '*/doc/*')
[ -z "$left" ] || { echo "left behind: $left" >&2; exit 1; }
echo "installed, ran and went without a trace"
