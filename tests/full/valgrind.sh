#!/usr/bin/env bash
# One small run under valgrind from start to end: no invalid access, nothing used uninitialised, nothing lost.
# usage: valgrind.sh BUILD
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
trireme=$1/bin/trireme
. "$here/small_data.bash"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
small_data "$work"
# Two threads take turns by force, or the one that waits for the other would starve it.
valgrind --quiet --error-exitcode=99 --trace-children=yes --fair-sched=yes --leak-check=full \
  --errors-for-leak-kinds=definite --show-leak-kinds=definite --suppressions="$here/valgrind.supp" --num-callers=30 \
  "$trireme" train "$work/job.toml" --run-dir "$work/run" --set train.threads=1
"$trireme" inspect "$work/run" >/dev/null
echo "valgrind: clean"
