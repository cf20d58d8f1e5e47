// SPDX-License-Identifier: Apache-2.0
// What docs/config.md says of each supported key is what the parser does: which values it allows, what it assumes for a
// key that is left out, which optimizers have it. Other keys are known_keys_test.cc's; that the page and the parser
// have the same keys is config_keys_test.py's.
#include "conformance/contract/testing/config_document.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "conformance/contract/run_config.h"
#include "conformance/contract/testing/error_message.h"

namespace plumbline::contract {
namespace {

using testing::ConfigWith;
using testing::ErrorMessage;
using testing::Rows;
using testing::Words;

const Words kOptimizers = {"ModularMomentum", "ModularSGD", "AdamW", "SGD", "Adam", "Lion", "Lamb"};
const Words kSchedules = {"WarmupLR", "WarmupDecayLR", "WarmupCosineLR", "OneCycle"};

struct Row {
  std::string key, value, default_value, used_by, remarks;

  bool IsOfSchedule() const { return key.starts_with("scheduler.params."); }

  // The types of a schedule's own key; of other keys, the first type.
  Words Schedules() const {
    if (!IsOfSchedule()) return {kSchedules.front()};
    Words some;
    for (const std::string& type : kSchedules) {
      if (IsNamed(type)) some.push_back(type);
    }
    return some;
  }

  bool IsNamed(const std::string& name) const {
    return (" " + remarks + ",").find(" " + name + ",") != std::string::npos;
  }

  // Of the optimizer's own keys, those that have it; else of the families that may have it.
  Words Optimizers() const {
    Words some;
    for (const std::string& optimizer : kOptimizers) {
      const bool is_modular = optimizer.starts_with("Modular");
      bool named = !is_modular || used_by.starts_with("exact");
      if (key.starts_with("optimizer.params.")) named = IsNamed(optimizer);
      if (key == "param_groups[].betas" && optimizer == "SGD") named = false;
      if (named) some.push_back(optimizer);
    }
    return some;
  }
};

std::vector<Row> Supported() {
  std::vector<Row> rows;
  for (const Words& cells : Rows("Supported")) rows.push_back({cells[0], cells[1], cells[2], cells[3], cells[4]});
  EXPECT_GT(rows.size(), 30u);
  return rows;
}

RunConfig Parse(const std::string& json) { return ParseRunConfig(json, "config"); }

TEST(ConfigDocument, SaysWhichValuesAreAllowed) {
  for (const Row& row : Supported()) {
    const char* wrong = row.key.ends_with("betas") ? "[]" : "-1";
    const std::string json = ConfigWith(row.key, row.Optimizers().back(), row.Schedules().back(), wrong);
    const std::string message = ErrorMessage(ErrorCode::kInvalidArgument, [&] { Parse(json); });
    const std::string allowed = message.substr(message.find("; allowed: ") + 11);
    EXPECT_TRUE(row.value.starts_with(allowed)) << json << ": \"" << message << "\", the page: " << row.value;
  }
}

// Of "`0.01`", or "AdamW `0.01`, SGD `0`", what stands for this optimizer or schedule; nothing where that is no
// literal.
std::optional<std::string> DefaultOf(const Row& row, const std::string& name) {
  const size_t own = row.default_value.find(name + " `");
  const size_t begin = own == std::string::npos ? 0 : own + name.size() + 1;
  if (row.default_value[begin] != '`') return std::nullopt;
  return row.default_value.substr(begin + 1, row.default_value.find('`', begin + 1) - begin - 1);
}

TEST(ConfigDocument, SaysWhatIsAssumedForAKeyThatIsLeftOut) {
  int defaults = 0;
  for (const Row& row : Supported()) {
    for (const std::string& optimizer : row.Optimizers()) {
      for (const std::string& schedule : row.Schedules()) {
        const std::optional<std::string> value = DefaultOf(row, row.IsOfSchedule() ? schedule : optimizer);
        if (!value) continue;
        const std::string with = ConfigWith(row.key, optimizer, schedule, value);
        EXPECT_EQ(Parse(with), Parse(ConfigWith(row.key, optimizer, schedule, std::nullopt))) << with;
        ++defaults;
      }
    }
  }
  EXPECT_GT(defaults, 90);
}

TEST(ConfigDocument, SaysWhichKeysAreRequired) {
  int required = 0;
  for (const Row& row : Supported()) {
    if (row.default_value != "required") continue;
    for (const std::string& schedule : row.Schedules()) {
      const std::string json = ConfigWith(row.key, row.Optimizers().back(), schedule, std::nullopt);
      if (row.key != "optimizer") ErrorMessage(ErrorCode::kInvalidArgument, [&] { Parse(json); });
      ++required;
    }
  }
  ErrorMessage(ErrorCode::kInvalidArgument, [] { Parse(R"({"train_batch_size": 8})"); });
  EXPECT_EQ(required, 9);
}

// Defaults that are no literals: each is looked at here, so that a new one is not passed over.
TEST(ConfigDocument, TakesFromTheOptimizerWhatItSaysIsTaken) {
  Words others;
  for (const Row& row : Supported()) {
    if (row.default_value.find('`') == std::string::npos && row.default_value != "required") others.push_back(row.key);
    if (row.default_value.starts_with("the optimizer's `")) others.push_back(row.key);
  }
  EXPECT_EQ(others, (Words{"param_groups[].lr", "param_groups[].weight_decay", "param_groups[].betas", "scheduler",
                           "scheduler.params.warmup_max_lr", "scheduler.params.cycle_second_step_size",
                           "scheduler.params.cycle_second_stair_count", "adaptive_clipping"}));
  const RunConfig config = Parse(R"({"train_batch_size": 8, "param_groups": [{"match": "*"}],
    "optimizer": {"type": "SGD", "params": {"lr": 0.25}}, "scheduler": {"type": "WarmupLR"}})");
  EXPECT_FALSE(config.groups.at(0).lr);
  EXPECT_FALSE(config.groups.at(0).weight_decay);
  EXPECT_FALSE(config.groups.at(0).betas);
  EXPECT_EQ(config.adaptive_clipping.kind, AdaptiveClipping::Kind::kNone);
  EXPECT_EQ(config.schedule.warmup_max_lr, 0.25);
  const RunConfig cycle =
      Parse(R"({"train_batch_size": 8, "optimizer": {"type": "SGD"}, "scheduler": {"type": "OneCycle",
    "params": {"cycle_min_lr": 0.1, "cycle_max_lr": 0.2, "cycle_first_step_size": 7, "cycle_first_stair_count": 3}}})");
  EXPECT_EQ(cycle.schedule.cycle.second_steps, 7);
  EXPECT_EQ(cycle.schedule.cycle.second_stairs, 3);
  EXPECT_EQ(Parse(R"({"train_batch_size": 8, "optimizer": {"type": "SGD"}})").schedule.kind, Schedule::Kind::kConstant);
}

// What an optimizer is called in the end: Adam is AdamW unless `adam_w_mode` is false.
std::string_view Resolved(const std::string& optimizer, const std::string& key) {
  return optimizer == "Adam" && key != "optimizer.params.adam_w_mode" ? "AdamW" : std::string_view(optimizer);
}

TEST(ConfigDocument, SaysWhichOptimizersHaveAKey) {
  const std::map<std::string, std::string> samples = {{"optimizer.params.lr", "1"},
                                                      {"optimizer.params.betas", "[0, 0]"},
                                                      {"optimizer.params.eps", "1"},
                                                      {"optimizer.params.weight_decay", "1"},
                                                      {"optimizer.params.momentum", "0"},
                                                      {"optimizer.params.nesterov", "false"},
                                                      {"optimizer.params.adam_w_mode", "false"},
                                                      {"optimizer.params.max_coeff", "1"},
                                                      {"optimizer.params.min_coeff", "1"},
                                                      {"param_groups", "[]"},
                                                      {"param_groups[].match", "\"*\""},
                                                      {"param_groups[].lr", "1"},
                                                      {"param_groups[].weight_decay", "1"},
                                                      {"param_groups[].betas", "[0, 0]"},
                                                      {"param_groups[].clip", "false"},
                                                      {"scheduler", "{\"type\": \"WarmupLR\"}"},
                                                      {"scheduler.type", "\"WarmupLR\""},
                                                      {"scheduler.params", "{}"},
                                                      {"scheduler.params.warmup_min_lr", "0"},
                                                      {"scheduler.params.warmup_max_lr", "0"},
                                                      {"scheduler.params.warmup_num_steps", "0"},
                                                      {"scheduler.params.warmup_type", "\"log\""},
                                                      {"scheduler.params.total_num_steps", "5"},
                                                      {"scheduler.params.warmup_min_ratio", "0"},
                                                      {"scheduler.params.cos_min_ratio", "0"},
                                                      {"scheduler.params.cycle_min_lr", "0"},
                                                      {"scheduler.params.cycle_max_lr", "0"},
                                                      {"scheduler.params.cycle_first_step_size", "1"},
                                                      {"scheduler.params.cycle_second_step_size", "1"},
                                                      {"scheduler.params.cycle_first_stair_count", "0"},
                                                      {"scheduler.params.cycle_second_stair_count", "0"},
                                                      {"scheduler.params.decay_step_size", "0"},
                                                      {"scheduler.params.decay_lr_rate", "0"},
                                                      {"scheduler.params.cycle_momentum", "true"},
                                                      {"scheduler.params.cycle_min_mom", "0"},
                                                      {"scheduler.params.cycle_max_mom", "0"},
                                                      {"gradient_clipping", "0"},
                                                      {"adaptive_clipping", "{\"type\": \"unit\"}"},
                                                      {"adaptive_clipping.type", "\"history\""},
                                                      {"adaptive_clipping.ratio", "1"},
                                                      {"adaptive_clipping.eps", "1"},
                                                      {"adaptive_clipping.deviations", "1"},
                                                      {"adaptive_clipping.decay", "0.5"},
                                                      {"adaptive_clipping.warmup_steps", "1"}};
  size_t looked_at = 0;
  for (const Row& row : Supported()) {
    if (row.used_by == "all") continue;
    EXPECT_EQ(row.used_by, "real") << row.key;
    const Words having = row.Optimizers();
    EXPECT_FALSE(having.empty()) << row.key;
    for (const std::string& optimizer : kOptimizers) {
      const std::string json = ConfigWith(row.key, optimizer, row.Schedules().front(), samples.at(row.key));
      if (std::find(having.begin(), having.end(), optimizer) != having.end()) {
        EXPECT_EQ(Name(Parse(json).optimizer), Resolved(optimizer, row.key)) << json;
      } else {
        ErrorMessage(ErrorCode::kInvalidArgument, [&] { Parse(json); });
      }
    }
    const Words types = row.Schedules();
    EXPECT_FALSE(types.empty()) << row.key;
    for (const std::string& type : row.IsOfSchedule() ? kSchedules : Words{}) {
      const std::string json = ConfigWith(row.key, "AdamW", type, samples.at(row.key));
      if (std::find(types.begin(), types.end(), type) != types.end()) {
        EXPECT_NE(ToJson(Parse(json)).find('"' + type + '"'), std::string::npos) << json;
      } else {
        ErrorMessage(ErrorCode::kInvalidArgument, [&] { Parse(json); });
      }
    }
    ++looked_at;
  }
  EXPECT_EQ(looked_at, samples.size());
}

}  // namespace
}  // namespace plumbline::contract
