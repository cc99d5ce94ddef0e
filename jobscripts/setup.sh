#!/usr/bin/env bash
# Installs what Trireme is built from, on Debian 12, Ubuntu 24.04 or newer: Debian packages (as root or
# with sudo) and oneDNN. What is there is left alone; with everything there it ends within a second.
# A cluster without root takes its libraries from modules instead: see INSTALL.md.
set -euo pipefail

usage() {
  cat <<'EOF'
usage: bash jobscripts/setup.sh [--tests | --onednn] [--build-dir DIR]

  --tests          also what the tests need (GoogleTest, clang)
  --onednn         oneDNN alone, without root: for a cluster whose modules bring the rest
  --build-dir DIR  where oneDNN is put: DIR/onednn (default: build in the source tree)
  -h, --help       this text

example: bash jobscripts/setup.sh && cmake --preset release && cmake --build --preset release

A oneDNN of your own (3.2 or newer) is taken when its package is installed or dnnl_DIR names the
folder of its dnnl-config.cmake. Exit codes: 0 all there, 64 something only you can do, 74 a download
or an installation failed.
EOF
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build
with_tests=no onednn_alone=no
while [ $# -gt 0 ]; do
  case $1 in
    --tests) with_tests=yes ;;
    --onednn) onednn_alone=yes ;;
    --build-dir)
      [ $# -ge 2 ] || { echo "setup: --build-dir needs a folder" >&2; exit 64; }
      build=$(realpath -m "$2")
      shift
      ;;
    -h | --help) usage; exit 0 ;;
    *) echo "setup: unknown option $1" >&2; usage >&2; exit 64 ;;
  esac
  shift
done

say() { printf 'setup: %s\n' "$*"; }
die() { local code=$1; shift; printf 'setup: %s\n' "$@" >&2; exit "$code"; }

# NAME[>=MINIMUM]; minimums are those the build states, the older systems that miss them are refused.
packages=(
  'g++>=4:12' 'cmake>=3.25' ninja-build
  'libopenmpi-dev>=4.1' openmpi-bin 'libhdf5-dev>=1.10' 'libboost-dev>=1.74'
  'libtomlplusplus-dev>=3.3' 'libcli11-dev>=2.1' 'libspdlog-dev>=1:1.10' 'libfmt-dev>=9'
  'nlohmann-json3-dev>=3.11' 'libxxhash-dev>=0.8' zlib1g-dev
  dataset-fashion-mnist
)
if [ $with_tests = yes ]; then
  packages+=('libgtest-dev>=1.12' 'libgmock-dev>=1.12' 'clang>=1:14' python3)
fi

# The wheels as they were tested; pip refuses any other bytes.
onednn_wheels='onednn-cpu-gomp==2023.2.0 --hash=sha256:2f22a54d6a890ed14bfa185d42a4be65d8b5b1df85dc1f0f3a9abe31620416fb
onednn-devel-cpu-gomp==2023.2.0 --hash=sha256:9763c69e8c907e119056bd52ad918ca84ac9ba939d130a99dfa95ccca3e5e284'

# Prints the version of an installed package, nothing where it is not installed.
declare -A installed=()
read_installed() {
  local name status version
  installed=()
  while read -r name status version; do
    if [ "$status" = installed ]; then installed[${name%%:*}]=$version; fi
  done < <(dpkg-query -W -f '${Package} ${db:Status-Status} ${Version}\n' "${packages[@]%%>=*}" \
    python3-pip libdnnl-dev 2>/dev/null || true)
}

# A program may also come from elsewhere than a package (a newer CMake in /usr/local, say).
has_program() {
  local version
  case $1 in
    cmake | 'g++' | clang) version=$("$1" --version 2>/dev/null | grep -oE '[0-9]+\.[0-9.]+' | head -n 1) || return 1 ;;
    ninja-build) version=$(ninja --version 2>/dev/null) || return 1 ;;
    python3) version=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || return 1 ;;
    *) return 1 ;;
  esac
  local minimum=${2#*:}
  [ -z "$minimum" ] || dpkg --compare-versions "$version" ge "$minimum"
}

# Sets missing (not installed) and old (installed below the minimum), names only.
find_missing() {
  local item name minimum
  missing=() old=()
  read_installed
  for item in "${packages[@]}"; do
    name=${item%%>=*} minimum=
    if [ "$name" != "$item" ]; then minimum=${item#*>=}; fi
    if [ -z "${installed[$name]:-}" ]; then
      has_program "$name" "$minimum" || missing+=("$name")
    elif [ -n "$minimum" ] && dpkg --compare-versions "${installed[$name]}" lt "$minimum"; then
      has_program "$name" "$minimum" || old+=("$name ${installed[$name]} (needs $minimum)")
    fi
  done
}

# A line of apt's status channel each: `kind:what:percent:text`. On a terminal one line that moves.
show_progress() {
  local kind percent shown=-1 word
  while IFS=: read -r kind _ percent _; do
    case $kind in dlstatus) word=downloading ;; pmstatus) word=installing ;; *) continue ;; esac
    percent=${percent%%.*}
    if [ -t 1 ]; then
      printf '\r       %-11s %3d %%\033[K' "$word" "$percent"
    elif [ "$word$((percent / 25))" != "$shown" ]; then
      shown=$word$((percent / 25))
      printf '       %-11s %3d %%\n' "$word" "$percent"
    fi
  done
  if [ -t 1 ]; then printf '\r\033[K'; fi
}

install_packages() {
  local log=$work/apt.log as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null || ! { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
      die 64 "these packages are missing and only root can install them:" "  $*" \
        "ask your administrator to run: apt-get install $*" \
        "(on a cluster, modules can stand in for them: see INSTALL.md)"
    fi
    as_root=(sudo)
  fi
  say "installing $# packages with apt: $*"
  "${as_root[@]}" apt-get update -qq >"$log" 2>&1 || die 74 "apt-get update failed:" "$(tail -n 5 "$log")"
  {  # the redirections stand inside, since sudo passes no other descriptor on
    # shellcheck disable=SC2016
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive bash -c 'exec 3>&1 >"$0" 2>&1; exec apt-get "$@"' "$log" \
      install -y -q --no-install-recommends -o APT::Status-Fd=3 -o DPkg::Lock::Timeout=300 "$@" ||
      touch "$work/apt.failed"
  } | show_progress
  [ ! -e "$work/apt.failed" ] || die 74 "apt-get install failed:" "$(tail -n 8 "$log")"
}

# oneDNN's wheels hold a prefix under *.data/data/, with three full copies of one library.
install_onednn() {
  local stage=$work/onednn
  [ "$(uname -m)" = x86_64 ] || die 64 "there are no oneDNN wheels for $(uname -m): build oneDNN 3.2 or newer and set dnnl_DIR"
  python3 -m pip --version >/dev/null 2>&1 ||
    die 64 "fetching oneDNN needs python3 with pip (on a cluster, try: module load python)"
  say "fetching oneDNN 3.2 (39 MB) into $build/onednn"
  mkdir -p "$work/wheels" "$stage"
  printf '%s\n' "$onednn_wheels" >"$work/wheels.txt"
  python3 -m pip download -q --disable-pip-version-check --no-deps --require-hashes \
    -d "$work/wheels" -r "$work/wheels.txt" >"$work/pip.log" 2>&1 ||
    die 74 "pip could not fetch oneDNN:" "$(tail -n 5 "$work/pip.log")"
  for wheel in "$work"/wheels/*.whl; do
    python3 -m zipfile -e "$wheel" "$work/unpacked"
  done
  cp -r "$work"/unpacked/*.data/data/. "$stage"
  ln -sf libdnnl.so.3.2 "$stage/lib/libdnnl.so.3"
  ln -sf libdnnl.so.3 "$stage/lib/libdnnl.so"
  strip --strip-unneeded "$stage/lib/libdnnl.so.3.2"
  rm -rf "$build/onednn"
  mv -T "$stage" "$build/onednn"
}

has_onednn() {
  local version=${installed[libdnnl-dev]:-}
  [ -e "$build/onednn/lib/cmake/dnnl/dnnl-config.cmake" ] && return 0
  [ -n "${dnnl_DIR:-}" ] && [ -e "$dnnl_DIR/dnnl-config.cmake" ] && return 0
  [ -n "$version" ] && dpkg --compare-versions "$version" ge 3.2
}

missing=() old=()
if [ $onednn_alone = no ]; then
  command -v dpkg-query >/dev/null ||
    die 64 "this is no Debian or Ubuntu; INSTALL.md lists what to install, or which modules to load"
  find_missing
else
  read_installed  # an installed oneDNN will do, where there are packages at all
fi
if [ ${#missing[@]} -eq 0 ] && [ ${#old[@]} -eq 0 ] && has_onednn; then
  say "everything is there"
  exit 0
fi

mkdir -p "$build"
work=$(mktemp -d "$build/.setup.XXXXXX")  # beside its destination, so that the last step is a rename
trap 'rm -rf "$work"' EXIT
if [ $onednn_alone = no ] && ! has_onednn && ! python3 -m pip --version >/dev/null 2>&1; then
  missing+=(python3 python3-pip)
fi
if [ ${#missing[@]} -gt 0 ]; then
  install_packages "${missing[@]}"
  find_missing
fi
if [ ${#missing[@]} -gt 0 ]; then
  die 74 "still missing after the installation: ${missing[*]}"
fi
if [ ${#old[@]} -gt 0 ]; then
  die 64 "too old here:" "${old[@]/#/  }" "Debian 12 and Ubuntu 24.04 have what is needed; for others see INSTALL.md"
fi
has_onednn || install_onednn
say "done"
