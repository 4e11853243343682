# Sourced by demo.sh and test.sh: installs what is missing to build interp on Debian 12.

# need_packages PACKAGE...: installs those that are not there.
need_packages() {
  local missing=() package
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  if ! command -v apt-get >/dev/null; then
    echo "this is no Debian: install by hand what these packages hold: ${missing[*]}" >&2
    return 1
  fi
  local root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "run as root, or install sudo: ${missing[*]}" >&2; return 1; }
    root=(sudo)
  fi
  echo "installing ${missing[*]}"
  "${root[@]}" apt-get update -qq
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    "${missing[@]}" >/dev/null
}

need_build_packages() {
  need_packages g++ cmake ninja-build ccache mold python3 protobuf-compiler libprotobuf-dev \
    libabsl-dev libxxhash-dev libdnnl-dev libeigen3-dev ocl-icd-opencl-dev zlib1g-dev libpng-dev libturbojpeg0-dev \
    libcli11-dev nlohmann-json3-dev libgtest-dev libgmock-dev libbenchmark-dev xz-utils python3-dev \
    python3-numpy pybind11-dev openmpi-bin libopenmpi-dev libboost-context-dev
}

# configure PRESET: configures build/PRESET.
configure() {
  cmake --preset "$1" >/dev/null
}
