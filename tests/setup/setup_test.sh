#!/usr/bin/env bash
# usage: setup_test.sh PATH_OF_setup.sh
# What jobscripts/setup.sh decides, with a package system of its own: dpkg-query, apt-get, id and sudo are
# played by scripts, so nothing is installed and no network is asked.
set -euo pipefail
setup=$1
command -v dpkg >/dev/null || { echo "skipped: dpkg compares the versions, and there is none here"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/bare" "$work/build"

# Tools that the script may use, and no compiler: what is there is told by dpkg-query alone.
for tool in bash cat dirname dpkg env grep head id mkdir mktemp mv realpath rm sed tail touch uname; do
  ln -s "$(command -v $tool)" "$work/bare/$tool"
done
play() { printf '#!%s\n%s\n' "$(command -v bash)" "$2" >"$work/bin/$1"; chmod +x "$work/bin/$1"; }
play dpkg-query "cat '$work/installed'"
play id 'echo "${PLAYED_UID:-0}"'

all='g++ installed 4:12.2.0-3
cmake installed 3.25.1-1
ninja-build installed 1.11.1-2
libopenmpi-dev installed 4.1.4-3+b1
openmpi-bin installed 4.1.4-3+b1
libhdf5-dev installed 1.10.8+repack1-1
libboost-dev installed 1.74.0.3
libtomlplusplus-dev installed 3.3.0+ds-1
libcli11-dev installed 2.1.2+ds-1
libspdlog-dev installed 1:1.10.0+ds-0.4
libfmt-dev installed 9.1.0+ds1-2
nlohmann-json3-dev installed 3.11.2-2
libxxhash-dev installed 0.8.1-1
zlib1g-dev installed 1:1.2.13.dfsg-1
dataset-fashion-mnist installed 0.0~git20200523.55506a9-1
libdnnl-dev installed 3.6-1'

failures=0
# expect NAME CODE WORDS OPTION…: runs the script and compares its exit code and what it says.
expect() {
  local name=$1 code=$2 words=$3 got=0 said
  shift 3
  said=$(PATH="$work/bin:$work/bare" bash "$setup" --build-dir "$work/build" "$@" 2>&1) || got=$?
  if [ "$got" -eq "$code" ] && [[ $said == *"$words"* ]]; then
    echo "ok      $name"
  else
    echo "FAILED  $name: exit $got (expected $code), expected '$words' in:"
    echo "$said"
    failures=$((failures + 1))
  fi
}

play apt-get "echo called >>'$work/apt'; exit 1"
echo "$all" >"$work/installed"
expect 'everything there' 0 'everything is there'
expect 'an unknown option' 64 'unknown option --nonsense' --nonsense
expect 'an option without its value' 64 'needs a folder' --build-dir
[ ! -e "$work/apt" ] || { echo "FAILED  apt was called with everything there"; failures=$((failures + 1)); }

grep -v -e libhdf5 -e libfmt <<<"$all" >"$work/installed"
PLAYED_UID=1000 expect 'missing, neither root nor sudo' 64 'apt-get install libhdf5-dev libfmt-dev' </dev/null
expect 'apt fails' 74 'apt-get update failed'

sed 's/^libhdf5-dev installed.*/libhdf5-dev config-files 1.10.8/' <<<"$all" >"$work/installed"
PLAYED_UID=1000 expect 'removed but configured counts as missing' 64 'apt-get install libhdf5-dev' </dev/null

sed 's/3\.25\.1-1/3.22.1-1/' <<<"$all" >"$work/installed"
expect 'too old' 64 'cmake 3.22.1-1 (needs 3.25)'
play cmake 'echo "cmake version 4.0.2"'
expect 'a newer one from elsewhere' 0 'everything is there'
play cmake 'echo "cmake version 3.9.0"'
expect 'an older one from elsewhere' 64 'needs 3.25'
rm "$work/bin/cmake"

echo "$all" >"$work/installed"
expect 'the tests need more' 74 'libgtest-dev libgmock-dev clang python3' --tests

# An installation that works: apt-get adds what it is asked for.
grep -v libxxhash-dev <<<"$all" >"$work/installed"
play apt-get "case \$1 in install) echo pmstatus:libxxhash-dev:50.0:Unpacking >&3; echo libxxhash-dev installed 0.8.1 >>'$work/installed' ;; esac"
expect 'installs what is missing' 0 'installing 1 packages with apt: libxxhash-dev'
expect 'and is content the second time' 0 'everything is there'
grep -v libxxhash-dev <<<"$all" >"$work/installed"
play apt-get ':'
expect 'apt says yes and installs nothing' 74 'still missing after the installation: libxxhash-dev'

play python3 'exit 1'
expect 'an installed oneDNN will do alone' 0 'everything is there' --onednn
sed 's/^libdnnl-dev.*/libdnnl-dev installed 2.7.2-1/' <<<"$all" >"$work/installed"
expect 'an old one will not' 64 'needs python3 with pip' --onednn
grep -v libdnnl <<<"$all" >"$work/installed"
expect 'oneDNN alone needs pip' 64 'needs python3 with pip' --onednn
play uname 'echo riscv64'
expect 'no wheels for this processor' 64 'no oneDNN wheels for riscv64' --onednn
mkdir -p "$work/own"
touch "$work/own/dnnl-config.cmake"
dnnl_DIR=$work/own expect 'a oneDNN of the user' 0 'everything is there'
rm "$work/bin/dpkg-query"
expect 'no Debian' 64 'INSTALL.md'
play uname 'echo x86_64'
expect 'oneDNN alone on no Debian' 64 'needs python3 with pip' --onednn

[ "$failures" -eq 0 ] || { echo "$failures failed"; exit 1; }
