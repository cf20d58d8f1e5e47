#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds every libFuzzer program and puts them, with their corpora, into a folder that run_fuzzers.sh runs, also on
# another machine (x86-64, with glibc and libstdc++ no older than this one's).
#
#   pack_fuzzers.sh PACK [BAZEL_OPTION...]
#
# What does not build is left out and said; then it ends with 1.
set -u
pack=$1; shift
cd "$(dirname "$0")/.."
mapfile -t labels < <(bazel query 'filter("_fuzz_libfuzzer$", kind(cc_binary, //...))' 2>/dev/null)
[ ${#labels[@]} -gt 0 ] || { echo "no fuzzers found" >&2; exit 1; }
bazel build --config=fuzz --keep_going "$@" "${labels[@]}"
built=$(bazel info --config=fuzz bazel-bin 2>/dev/null)
mkdir -p "$pack/bin" "$pack/corpus"
missing=0
for label in "${labels[@]}"; do
  folder=${label#//}; folder=${folder%%:*}; name=${label##*:}; name=${name%_fuzz_libfuzzer}
  [ -f "$built/$folder/${name}_fuzz_libfuzzer" ] || { echo "$label did not build" >&2; missing=1; continue; }
  key=${folder//\//_}_$name
  strip -o "$pack/bin/$key" "$built/$folder/${name}_fuzz_libfuzzer"
  mkdir -p "$pack/corpus/$key"
  # parser_fuzz keeps corpora in corpus/NAME/{accepted,refused}, fuzz_target in NAME_corpus.
  for files in "$folder/corpus/$name" "$folder/${name}_corpus"; do
    [ -d "$files" ] || continue
    find "$files" -type f | while read -r file; do
      cp "$file" "$pack/corpus/$key/$(sha1sum < "$file" | cut -c1-16)"
    done
  done
done
cp -r "reports/record/record_corpus/." "$pack/corpus/cli_rendered_record/" 2>/dev/null
printf '%s\n' 'conformance_contract_fuzz_case_folder 3' 'conformance_fuzz_dump 3' 'conformance_fuzz_traces 2' \
  'conformance_contract_fuzz_batches 2' 'conformance_contract_fuzz_tensor_file 2' 'conformance_contract_fuzz_trace 2' \
  'cli_rendered_record 2' > "$pack/weight"
cp bazel/run_fuzzers.sh "$pack/run_fuzzers.sh"
printf '#!/bin/bash\nexec "$(dirname "$0")/run_fuzzers.sh" "$(dirname "$0")" "$1" 500 16\n' > "$pack/run_all.sh"
chmod +x "$pack/run_all.sh"
exit $missing
