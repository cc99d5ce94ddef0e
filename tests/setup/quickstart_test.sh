#!/usr/bin/env bash
# usage: quickstart_test.sh PATH_OF_quickstart.sh
# What jobscripts/quickstart.sh makes of the places around it, in a tree of its own with a build that is played: it finds the
# images where find complains, as it does of folders that only root may read, and begins without a build folder.
set -euo pipefail
quickstart=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/bin" "$work/tree/jobscripts" "$work/tree/share/jobs" "$work/images"
cp "$quickstart" "$work/tree/jobscripts/quickstart.sh"
echo 'exit 0' >"$work/tree/jobscripts/setup.sh"
touch "$work/tree/share/jobs/quickstart.toml"
play() { printf '#!%s\n%s\n' "$(command -v bash)" "$2" >"$work/bin/$1"; chmod +x "$work/bin/$1"; }

# A build that ends with a trireme that notes its words, and a training that leaves a summary.
play cmake '
for word in "$@"; do
  if [ "$last" = --build ]; then
    mkdir -p "$word/bin"
    cp "'"$work"'/bin/played-trireme" "$word/bin/trireme"
  fi
  last=$word
done'
play played-trireme '
echo "$*" >>"'"$work"'/words"
if [ "$1" = launch ]; then mkdir -p runs/quickstart/checkpoints; echo "{}" >runs/quickstart/summary.json; fi'
# Both splits several times over, more lines than head would read; 1 at the end, as after "Permission denied".
play find '
case "$*" in
  *checkpoints*) exit 0 ;;
  *train-images*) split=train ;;
  *) split=t10k ;;
esac
case "$*" in
  *-quit*) echo "'"$work"'/images/$split-images-idx3-ubyte.gz" ;;
  *) for i in $(seq 20000); do echo "'"$work"'/images/$split-images-idx3-ubyte.gz"; done ;;
esac
echo "find: a folder: Permission denied" >&2
exit 1'

failures=0
expect() {
  if eval "$2"; then
    echo "ok      $1"
  else
    echo "FAILED  $1 (exit $code):"
    echo "$said"
    failures=$((failures + 1))
  fi
}

code=0
said=$(PATH="$work/bin:$PATH" bash "$work/tree/jobscripts/quickstart.sh" 2>&1) || code=$?
expect 'from nothing to a trained model' '[ "$code" -eq 0 ] && [[ $said == *"What to try next"* ]]'
expect 'packs the images that find has found' \
  'grep -q "pack --field image=$work/images/train-images-idx3-ubyte.gz --field label=$work/images/train-labels-idx1-ubyte.gz" "$work/words"'

play find 'echo "find: a folder: Permission denied" >&2; exit 1'
rm -rf "$work/tree/quickstart"
code=0
said=$(PATH="$work/bin:$PATH" bash "$work/tree/jobscripts/quickstart.sh" 2>&1) || code=$?
expect 'says that there are none' '[ "$code" -eq 65 ] && [[ $said == *"Fashion-MNIST is not installed"* ]]'

[ "$failures" -eq 0 ] || { echo "$failures failed"; exit 1; }
