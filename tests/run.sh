#!/usr/bin/env bash
# Every test, from nothing: installs what is missing, builds once, runs all through CTest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  cat <<'EOF'
usage: bash tests/run.sh [--full] [-R REGEX] [--build-dir DIR]

  -R REGEX         only the tests whose names match, as ctest takes it
  --build-dir DIR  where to build (default: build/tests); kept, so a second run builds little
  --full           also what is run by hand: sanitizers, all GPU architectures, tests/full/*.sh
  -h, --help       this text

example: bash tests/run.sh -R '^(comm|checkpoint)'
EOF
}

full=no build=build/tests select=()
while [ $# -gt 0 ]; do
  case $1 in
    --full) full=yes ;;
    -R | --build-dir)
      [ $# -ge 2 ] || { echo "tests/run.sh: $1 needs a value" >&2; exit 64; }
      if [ "$1" = -R ]; then select=(-R "$2"); else build=$2; fi
      shift
      ;;
    -h | --help) usage; exit 0 ;;
    *) echo "tests/run.sh: unknown option $1" >&2; usage >&2; exit 64 ;;
  esac
  shift
done

cores=$(nproc)
step() { printf '\n== %s (%d s)\n' "$*" "$SECONDS"; }

# configure DIR OPTION…: one build folder; quiet unless it fails.
configure() {
  local dir=$1
  shift
  mkdir -p "$dir"
  if command -v ccache >/dev/null; then  # hits in another clone and with the precompiled header, too
    export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros
    set -- "$@" -DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache
  fi
  cmake -S . -B "$dir" -G Ninja "$@" >"$dir/configure.log" 2>&1 || { cat "$dir/configure.log"; exit 70; }
}

# build DIR: on a terminal ninja's moving line, elsewhere (a log) every 25th of its lines.
build() {
  if [ -t 1 ]; then
    cmake --build "$1"
  else
    NINJA_STATUS='[%f/%t] ' cmake --build "$1" | awk '!/^\[[0-9]+\/[0-9]+\]/ || ++n % 25 == 0; {fflush()}'
  fi
}

# run_tests JUNIT OPTION…; PROCESSORS of a test says how many ranks or threads it keeps busy; tests of faults and of whole
# runs mostly wait, so one more runs than there are cores. Ranks that find no core yield instead of spinning, so no test is
# held up by its neighbour's OpenMP.
run_tests() {
  local junit
  junit=$(realpath -m "$1")
  shift
  OMP_WAIT_POLICY=passive ctest -j $((cores + 1)) --output-on-failure --no-tests=error --output-junit "$junit" \
    "$@" "${select[@]}"
}

step "what is needed"
bash jobscripts/setup.sh --tests

step "configure and build into $build"
configure "$build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CUDA_ARCHITECTURES=90
build "$build"

if [ $full = yes ]; then
  for preset in asan tsan; do
    step "sanitizer build $preset"
    configure "build/$preset" --preset "$preset"
    build "build/$preset"
    run_tests "build/$preset/junit.xml" --preset "$preset"
  done
  if command -v nvcc >/dev/null; then
    step "all GPU architectures"
    configure build/cuda-all -DCMAKE_BUILD_TYPE=Release -DTRIREME_CUDA=ON -DTRIREME_TESTS=OFF \
      '-DCMAKE_CUDA_ARCHITECTURES=80;86;89;90'
    build build/cuda-all
  fi
  for script in tests/full/*.sh; do
    [ -e "$script" ] || continue
    step "$script"
    bash "$script" "$PWD/$build"
  done
fi

# Last, so that CTest's summary closes the run.
step "tests"
run_tests "$build/junit.xml" --test-dir "$build"
