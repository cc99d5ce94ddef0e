#!/usr/bin/env bash
# usage: format.sh ROOT [--fix]
# Every source is laid out as clang-format 14 does it with the project's .clang-format; other versions
# lay out otherwise, so without version 14 this test is skipped (77). --fix lays them out.
set -euo pipefail
cd "$1"
for program in clang-format-14 clang-format; do
  if "$program" --version 2>/dev/null | grep -q 'version 14'; then
    mapfile -t sources < <(find core io plugins tests -name '*.h' -o -name '*.cpp' -o -name '*.cu' | sort)
    if [ "${2:-}" = --fix ]; then
      "$program" -i "${sources[@]}"
      exit 0
    fi
    others=$("$program" --dry-run --ferror-limit=1 "${sources[@]}" 2>&1 | sed -n 's/^\([^:]*\):[0-9]*:.*clang-format-violations.*/\1/p' | sort -u)
    [ -n "$others" ] || exit 0
    printf 'laid out otherwise than clang-format does it: %s\n' $others
    echo "put right by: bash tests/style/format.sh . --fix"
    exit 1
  fi
done
echo "skipped: no clang-format 14 here"
exit 77
