#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs every libFuzzer program of a folder side by side, until its share of the time or its number of executions is
# over.
#
#   run_fuzzers.sh PACK OUT [SECONDS [PROCESSES [EXECUTIONS]]]
#
# PACK/bin/NAME are the programs, PACK/corpus/NAME their corpora, PACK/weight (optional) lines `NAME N`: how many of the
# processes NAME gets. OUT gets result.txt (a line each: executions, seconds, crashes), a log of each process, and
# inputs that broke something under crashes/NAME. Ends with 1 if there are any.
set -u
pack=$(realpath "$1"); mkdir -p "$2"; out=$(realpath "$2")
seconds=${3:-500}; processes=${4:-16}; executions=${5:--1}
scratch=$(mktemp -d -p /dev/shm fuzzers.XXXXXX || mktemp -d); trap 'rm -rf "$scratch"' EXIT
export TMPDIR=$scratch ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1:handle_abort=1

# One process: its own corpus of finds, restarted after a crash, so that one find does not end the search.
fuzz() {
  local name=$1 number=$2 ends=$3 round=0 left
  local finds=$scratch/$name.$number crashes=$out/crashes/$name
  mkdir -p "$finds" "$crashes"
  while left=$((ends - $(date +%s))); [ "$left" -gt 1 ] && [ "$round" -lt 20 ]; do
    round=$((round + 1))
    "$pack/bin/$name" -max_total_time="$left" -runs="$executions" -timeout=20 -rss_limit_mb=3000 -malloc_limit_mb=2000 \
      -max_len=16384 -seed=$((number * 100 + round)) -print_final_stats=1 -print_funcs=0 \
      -report_slow_units=600 -artifact_prefix="$crashes/" "$finds" "$pack/corpus/$name" > "$out/$name.$number.$round.log" 2>&1 && break
  done
}

# Programs one after the other in rounds of `processes`, heavier ones with several processes.
jobs_list=()
for program in "$pack"/bin/*; do
  name=$(basename "$program")
  weight=$(awk -v n="$name" '$1 == n {print $2}' "$pack/weight" 2>/dev/null)
  for ((i = 1; i <= ${weight:-1}; ++i)); do jobs_list+=("$name $i"); done
done
rounds=$(((${#jobs_list[@]} + processes - 1) / processes))
share=$((seconds / rounds))
for ((round = 0; round < rounds; ++round)); do
  ends=$(($(date +%s) + share))
  for job in "${jobs_list[@]:round * processes:processes}"; do fuzz $job "$ends" & done
  wait
done

for program in "$pack"/bin/*; do
  name=$(basename "$program")
  runs=$(cat "$out/$name".*.log | awk '/stat::number_of_executed_units/ {sum += $2; next}
    /^Done|DONE/ {next} END {print sum + 0}')
  spent=$(cat "$out/$name".*.log | awk '/^Done [0-9]+ runs in/ {sum += $5} END {print sum + 0}')
  crashes=$(ls "$out/crashes/$name" 2>/dev/null | wc -l)
  echo "$name executions $runs seconds $spent crashes $crashes"
done | tee "$out/result.txt"
total=$(awk '{sum += $3; crashes += $7} END {print "total executions " sum " crashes " crashes}' "$out/result.txt")
echo "$total" | tee -a "$out/result.txt"
[[ "$total" == *" crashes 0" ]]
