#!/usr/bin/env bash
# quickstart.sh: from a bare Debian 12 or Ubuntu to a trained model, in a folder of its own.
#
#   bash jobscripts/quickstart.sh             install what is missing, build, pack, train on 2 ranks, evaluate
#   bash jobscripts/quickstart.sh --clean     remove the folder quickstart/ and build/release
#   bash jobscripts/quickstart.sh --help
#
#   TRIREME_CUDA=auto|off   build the CUDA module where nvcc is found (auto, the default), or never
#   TRIREME_RANKS=2         ranks to train on; 1, 2 and 4 give the same bits
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
folder=$root/quickstart
build=$root/build/release
ranks=${TRIREME_RANKS:-2}
fashion=/usr/share/datasets/fashion-mnist

case ${1:-} in
  "") ;;
  --help | -h) sed -n '2,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
  --clean) rm -rf "$folder" "$build"; echo "removed $folder and $build"; exit 0 ;;
  *) echo "quickstart.sh: unknown option '$1' (--clean, --help)" >&2; exit 64 ;;
esac
case ${TRIREME_CUDA:-auto} in
  auto | off) ;;
  *) echo "quickstart.sh: TRIREME_CUDA is '$TRIREME_CUDA'; it may be auto or off" >&2; exit 64 ;;
esac

say() { printf '\n== %s\n' "$*"; }

say "1/4 packages and libraries"
bash jobscripts/setup.sh --build-dir "$build"

say "2/4 build"
if [ -x "$build/bin/trireme" ]; then echo "using the build in $build (rebuilding what changed)"; fi
mkdir -p "$build"
cuda=AUTO; [ "${TRIREME_CUDA:-auto}" = off ] && cuda=OFF
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTRIREME_TESTS=OFF -DTRIREME_CUDA=$cuda >"$build/configure.log" 2>&1 ||
  { tail -n 20 "$build/configure.log" >&2; exit 70; }
# A moving line on a terminal; elsewhere every 20th step.
if [ -t 1 ]; then
  cmake --build "$build"
else
  NINJA_STATUS='[%f/%t] ' cmake --build "$build" | awk '!/^\[[0-9]+\/[0-9]+\]/ || ++n % 20 == 0; {fflush()}'
fi
trireme=$build/bin/trireme

say "3/4 data: Fashion-MNIST into sharded HDF5"
mkdir -p "$folder"
if [ -f "$folder/data/.complete" ]; then
  echo "using the packed data in $folder/data"
else
  # find fails on folders that it may not read, or that are not there, whatever it has found.
  images() { find "$fashion" /usr/share -name "$1-images-idx3-ubyte.gz" -path '*ashion*' -print -quit 2>/dev/null || true; }
  train=$(images train) test=$(images t10k)
  [ -n "$train" ] && [ -n "$test" ] || { echo "quickstart.sh: Fashion-MNIST is not installed (package dataset-fashion-mnist)" >&2; exit 65; }
  rm -rf "$folder/data"; mkdir -p "$folder/data"
  "$trireme" pack --field image="$train" --field label="${train%images-idx3-ubyte.gz}labels-idx1-ubyte.gz" \
    --files 4 --output "$folder/data/train"
  "$trireme" pack --field image="$test" --field label="${test%images-idx3-ubyte.gz}labels-idx1-ubyte.gz" \
    --files 1 --output "$folder/data/test"
  touch "$folder/data/.complete"
fi
[ -f "$folder/job.toml" ] || cp share/jobs/quickstart.toml "$folder/job.toml"

say "4/4 train on $ranks ranks"
cd "$folder"
run=runs/quickstart
if [ -f "$run/summary.json" ] && grep -q '"result": "done"' "$run/summary.json"; then
  n=2; while [ -e "runs/quickstart-$n" ]; do n=$((n + 1)); done
  run=runs/quickstart-$n
  echo "runs/quickstart is finished; this run goes to $run"
fi
code=0
"$trireme" launch -n "$ranks" train job.toml --run-dir "$run" || code=$?
if [ $code -ne 0 ]; then
  [ $code -eq 75 ] && echo "stopped and saved: the same command goes on from there"
  exit $code
fi

value() { sed -n "s/^ *\"$1\": *\"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}\$/\1/p" "$run/summary.json" | head -n 1; }
percent() { awk -v x="$(value "$1")" 'BEGIN {printf "%.1f %%", 100 * x}'; }
checkpoints=$(find "$run/checkpoints" -maxdepth 1 -name 'step-*' | sort | sed 's|.*/||' | paste -sd ' ')
cat <<EOF

  accuracy             $(awk -v x="$(value eval_accuracy)" 'BEGIN {printf "%.4f", x}') on the test split (best $(awk -v x="$(value best_value)" 'BEGIN {printf "%.4f", x}') at step $(value best_step))
  speed                $(awk -v x="$(value samples_per_second)" 'BEGIN {printf "%.0f", x}') samples/s on $ranks ranks
  time to first step   $(awk -v x="$(value first_step_seconds)" 'BEGIN {printf "%.2f", x}') s
  waiting for data     $(percent data_wait_share)
  waiting for ranks    $(percent comm_wait_share)
  checkpoints          $checkpoints
  everything lies in   $folder/$run  (metrics.jsonl, summary.json, logs, checkpoints)

  What to try next (in $folder):
    $trireme eval job.toml --run-dir $run
    $trireme inspect $run/checkpoints/step-$(printf '%012d' "$(value last_checkpoint)")
    $trireme launch -n 4 train job.toml --run-dir runs/four --set train.epochs=1
    $trireme plugin describe convnet
EOF
