#!/usr/bin/env bash
# usage: package_test.sh BUILD SOURCE
# The installed prefix: it can be moved, needs no CUDA, and a plugin built against it outside the tree, with
# gcc and with clang, trains to the same bits.
set -euo pipefail
build=$1 source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { printf 'FAILED  %s\n' "$@"; exit 1; }
ok() { echo "ok      $*"; }

cmake --install "$build" --prefix "$work/first" >"$work/install.log" || { cat "$work/install.log"; fail "cmake --install"; }
prefix=$work/moved
mv "$work/first" "$prefix"

for file in bin/trireme lib/libtrireme.so lib/trireme/plugins/convnet.so include/trireme/abi.h \
  lib/cmake/Trireme/TriremeConfig.cmake share/trireme/jobs/quickstart.toml share/trireme/jobscripts/setup.sh; do
  [ -e "$prefix/$file" ] || fail "$file is not installed"
done
for file in bin/trireme lib/libtrireme.so; do
  needs=$(ldd "$prefix/$file")
  ! grep -i -e 'not found' <<<"$needs" || fail "$file misses a library"
  ! grep -i -e cuda -e cublas -e cudnn -e nccl <<<"$needs" || fail "$file needs a CUDA library"
  ! grep -F -e "$build" -e "$source" <<<"$needs" || fail "$file still takes a library from the build"
done
"$prefix/bin/trireme" version >"$work/version.txt" || fail "trireme version ends with $?"
"$prefix/bin/trireme" plugin list >"$work/list.txt" || fail "trireme plugin list ends with $?"
grep -q convnet "$work/list.txt" || fail "the moved prefix does not find its plugins:" "$(cat "$work/list.txt")"
ok "the prefix works where it was moved to"

fashion=/usr/share/datasets/fashion-mnist
"$prefix/bin/trireme" pack --field image=$fashion/t10k-images-idx3-ubyte.gz \
  --field label=$fashion/t10k-labels-idx1-ubyte.gz --files 2 --output "$work/data/train" >"$work/pack.log" 2>&1 ||
  { cat "$work/pack.log"; fail "trireme pack"; }

declare -A hash=()
for compiler in g++ clang++; do
  if ! command -v $compiler >/dev/null; then
    echo "skipped $compiler is not installed"
    continue
  fi
  dir=$work/$compiler
  mkdir "$dir"
  cp -r "$source/plugins/conditional-net" "$dir/source"
  {
    cmake -S "$dir/source" -B "$dir/build" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER=$compiler \
      -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror"
    cmake --build "$dir/build"
  } >"$dir/build.log" 2>&1 || { cat "$dir/build.log"; fail "conditional-net does not build with $compiler"; }
  plugin=$dir/build/conditional-net.so
  others=$(readelf -d "$plugin" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -v -E '^(libstdc\+\+|libm|libgcc_s|libc|ld-linux.*)\.so' || true)
  [ -z "$others" ] || fail "the plugin needs $others"
  "$prefix/bin/trireme" plugin describe "$plugin" --json >"$dir/described.json" || fail "plugin describe ends with $?"
  grep -q '"conditional-net"' "$dir/described.json" || fail "plugin describe says:" "$(cat "$dir/described.json")"

  cat >"$dir/job.toml" <<EOF
plugin = "build/conditional-net.so"
device = "cpu"
[data]
fields = { image = "/image", label = "/label" }
train = ["../data/train-*.h5"]
transform = ["image: scale 1/255"]
classes = 10
[train]
batch = 64
micro_batches = 2
steps = 20
threads = 1
[optimizer]
kind = "adamw"
lr = 1e-3
[checkpoint]
every_steps = 20
[run]
dir = "run"
EOF
  "$prefix/bin/trireme" launch -n 2 train "$dir/job.toml" >"$dir/train.log" 2>&1 ||
    { tail -n 40 "$dir/train.log"; fail "training the plugin of $compiler"; }
  "$prefix/bin/trireme" inspect "$dir/run/checkpoints/step-000000000020" --json >"$dir/inspected.json" ||
    fail "inspect ends with $?"
  hash[$compiler]=$(sed -n 's/.*"state_sha256": *"\([0-9a-f]*\)".*/\1/p' "$dir/inspected.json" | head -n 1)
  [ ${#hash[$compiler]} -eq 64 ] || fail "inspect gives no state_sha256:" "$(head -c 400 "$dir/inspected.json")"
  ok "conditional-net built by $compiler outside the tree trains"
done
if [ ${#hash[@]} -eq 2 ]; then
  [ "${hash[g++]}" = "${hash[clang++]}" ] || fail "g++ and clang++ end with other bits: ${hash[g++]} ${hash[clang++]}"
  ok "both end with the same bits: ${hash[g++]}"
fi
