// SPDX-License-Identifier: Apache-2.0
// Which defects a `verify` tries: the planted ones of this build, or those that a file lists, as a switchable program
// prints them with --list-defects (generated mutants are tried so). Starts nothing.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace plumbline::conformance {

struct ListedDefect {
  std::string id;
  std::string title;
  std::string family;                 // of the cases that it is tried on
  std::string expect;                 // of its edit
  std::string hypothesis;             // that the diagnosis is to find; empty: none
  std::vector<std::string> expected;  // checks, of which one is to catch it; empty: any failure will do
};

// Different kinds and checks, from a value to a count: what a run that is not about defects tries in a few seconds.
// Those of the second line are of family gpt2, of the third of llama.
inline constexpr std::string_view kSmokeDefects[] = {"G1", "G9", "G14",         //
                                                     "C2", "L5", "O3b", "Z16",  //
                                                     "X123"};
// Each is caught on one of the first cases of its family, on which alone it is tried then; and so is the clean twin.
inline constexpr size_t kSmokeDefectCases = 3;

// All, or those of kSmokeDefects.
std::vector<ListedDefect> PlantedDefects(bool all);

// Lines `id TAB title TAB expect TAB family`. Throws contract::Error (InvalidArgument) naming the line that is not one,
// or whose family is none; Environment if the file cannot be read.
std::vector<ListedDefect> ReadDefectList(const std::filesystem::path& path);

// "gradient, loss: of embed.weight" -> gradient, loss, as apply_edits.py demands it; of "any: ..." none.
std::vector<std::string> ExpectedChecks(std::string_view expect);

}  // namespace plumbline::conformance
