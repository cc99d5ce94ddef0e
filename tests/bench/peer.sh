#!/usr/bin/env bash
# Trireme beside PyTorch on this machine, alternating in one run; one JSON line a case on standard output. Run by hand: it
# fetches PyTorch from PyPI (7 GB on disk with its CUDA libraries, which stay unused).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage() {
  cat <<'END'
usage: bash tests/bench/peer.sh [--build-dir DIR] [--cases LIST] [--rounds N] [--seconds S]

  --build-dir DIR  where Trireme is built and PyTorch installed (default: build/bench)
  --cases LIST     of step, start, loader, save, growth (default: all, with commas between)
  --rounds N       how often both sides take turns (default: 3)
  --seconds S      of one measurement (default: 6)
  -h, --help       this text

example: bash tests/bench/peer.sh --cases step --rounds 5 >>step.jsonl
END
}

build=build/bench options=()
while [ $# -gt 0 ]; do
  case $1 in
    --build-dir | --cases | --rounds | --seconds)
      [ $# -ge 2 ] || { echo "peer.sh: $1 needs a value" >&2; exit 64; }
      if [ "$1" = --build-dir ]; then build=$2; else options+=("$1" "$2"); fi
      shift
      ;;
    -h | --help) usage; exit 0 ;;
    *) echo "peer.sh: unknown option $1" >&2; usage >&2; exit 64 ;;
  esac
  shift
done

mkdir -p "$build"
build=$(realpath "$build")
{
  bash jobscripts/setup.sh
  cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTRIREME_TESTS=OFF -DTRIREME_CUDA=OFF
  cmake --build "$build"
  [ -x "$build/torch/bin/python" ] || python3 -m venv "$build/torch"
  "$build/torch/bin/pip" install --quiet 'torch==2.9.0' 'numpy>=2' 'h5py>=3.11'
} >&2

data=$build/peer-data
if [ ! -e "$data/.complete" ]; then
  images=$(find /usr/share -name train-images-idx3-ubyte.gz -path '*ashion*' -print -quit 2>/dev/null || true)
  [ -n "$images" ] || { echo "peer.sh: Fashion-MNIST is not installed (package dataset-fashion-mnist)" >&2; exit 65; }
  mkdir -p "$data"
  fields=(--field image="$images" --field label="${images%images-idx3-ubyte.gz}labels-idx1-ubyte.gz" --overwrite)
  "$build/bin/trireme" pack "${fields[@]}" --files 4 --output "$data/train" >&2
  "$build/bin/trireme" pack "${fields[@]}" --deflate 4 --shuffle-filter --output "$data/gzip" >&2
  touch "$data/.complete"
fi
exec "$build/torch/bin/python" tests/bench/peer.py --trireme "$build/bin/trireme" --data "$data" "${options[@]}"
