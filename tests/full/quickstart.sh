#!/usr/bin/env bash
# The quickstart, whole and twice: accuracy at least 0.91, and the second run starts training within 20 s.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bash jobscripts/quickstart.sh --clean
bash jobscripts/quickstart.sh | tee build/quickstart-1.log
accuracy=$(sed -n 's/^ *accuracy  *\([0-9.]*\).*/\1/p' build/quickstart-1.log)
awk -v a="$accuracy" 'BEGIN {exit !(a >= 0.91)}' || { echo "accuracy $accuracy is below 0.91" >&2; exit 1; }
start=$(date +%s)
bash jobscripts/quickstart.sh >build/quickstart-2.log 2>&1 &
second=$!
until grep -q '^step ' build/quickstart-2.log; do
  [ $(($(date +%s) - start)) -le 20 ] || { kill -TERM $second; echo "no step after 20 s in the second run" >&2; exit 1; }
  sleep 0.2
done
echo "second run: first steps after $(($(date +%s) - start)) s"
wait $second
