#!/bin/sh
# pack.sh DIR: writes DIR.tar.xz, byte for byte the same for the same files.
set -e
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
  -C "$(dirname "$1")" -cf - "$(basename "$1")" | xz -9e >"$1.tar.xz"
