#!/usr/bin/env bash
# 10,000 steps with their saves and evaluations on two ranks: no rank holds more memory at the end than after the first tenth.
# usage: many_steps.sh BUILD
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
trireme=$1/bin/trireme
. "$here/small_data.bash"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
small_data "$work"
export TRIREME_MANY_STEPS=$work  # by which the ranks are found
"$trireme" launch -n 2 train "$work/job.toml" --run-dir "$work/run" --set train.steps=10000 --set checkpoint.every_steps=500 \
  --set 'eval.every=1000 steps' --set run.log_every_steps=1000 >"$work/log" 2>&1 &
run=$!

# resident RANK: KiB of this run's rank; the ranks are the run's processes that OpenMPI gave a number.
resident() {
  local environment process
  for environment in /proc/[0-9]*/environ; do
    process=${environment%/environ}
    { tr '\0' '\n' <"$environment" | grep -qx "TRIREME_MANY_STEPS=$work"; } 2>/dev/null || continue
    { tr '\0' '\n' <"$environment" | grep -qx "OMPI_COMM_WORLD_RANK=$1"; } 2>/dev/null || continue
    sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "$process/status" 2>/dev/null
    return
  done
}
steps() { wc -l 2>/dev/null <"$work/run/metrics.jsonl" || echo 0; }

early=() late=(0 0)
while kill -0 $run 2>/dev/null; do
  done_steps=$(steps)
  for rank in 0 1; do
    now=$(resident $rank)
    [ -n "$now" ] || continue
    if [ "$done_steps" -ge 1100 ] && [ -z "${early[$rank]:-}" ]; then early[$rank]=$now; fi
    if [ "$done_steps" -ge 8000 ]; then late[$rank]=$now; fi
  done
  sleep 0.2
done
wait $run || { cat "$work/log" >&2; exit 1; }
for rank in 0 1; do
  echo "rank $rank: ${early[$rank]} KiB after a tenth, ${late[$rank]} KiB near the end"
  [ "${late[$rank]}" -gt 0 ] && [ "${late[$rank]}" -le $((early[rank] + 1024)) ] || { echo "rank $rank grew" >&2; exit 1; }
done
