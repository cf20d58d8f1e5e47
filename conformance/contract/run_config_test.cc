// SPDX-License-Identifier: Apache-2.0
// Every key of the table in docs/formats.md: its values, its default, "auto", and the message where it is wrong.
#include "conformance/contract/run_config.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "conformance/contract/strict_json.h"
#include "conformance/contract/testing/error_message.h"

namespace plumbline::contract {
namespace {

using testing::ErrorMessage;

// A config of these keys and an optimizer.
std::string With(const std::string& keys) {
  return "{\"optimizer\": {\"type\": \"ModularSGD\"}" + (keys.empty() ? "" : ", " + keys) + "}";
}

RunConfig Parse(const std::string& json) { return ParseRunConfig(json, "config.json"); }

std::string Message(const std::string& json, ErrorCode code = ErrorCode::kInvalidArgument) {
  return ErrorMessage(code, [&] { Parse(json); });
}

TEST(RunConfig, HasTheDefaultsOfTheTable) {
  const RunConfig config = Parse(With("\"train_batch_size\": 1"));
  EXPECT_EQ(config.train_batch_size, 1);
  EXPECT_EQ(config.micro_batch_size, 1);
  EXPECT_EQ(config.accumulation_steps, 1);
  EXPECT_EQ(config.data_degree, 1);
  EXPECT_EQ(config.world_size(), 1);
  EXPECT_EQ(config.storage, DType::kF32);
  EXPECT_EQ(config.zero_stage, 0);
  EXPECT_EQ(config.reduce_bucket_elems, 500'000'000);
  EXPECT_EQ(config.optimizer, OptimizerKind::kModularSgd);
}

TEST(RunConfig, ReadsEveryKey) {
  RunConfig expected;
  expected.train_batch_size = 30;
  expected.micro_batch_size = 2;
  expected.accumulation_steps = 3;
  expected.data_degree = 5;
  expected.storage = DType::kBF16;
  expected.zero_stage = 2;
  expected.reduce_bucket_elems = 77;
  expected.optimizer = OptimizerKind::kModularMomentum;
  EXPECT_EQ(Parse(R"({
    // Comments are allowed.
    "train_batch_size": 30,
    "train_micro_batch_size_per_gpu": 2,
    "gradient_accumulation_steps": 3,
    "bf16": {"enabled": true},
    "zero_optimization": {"stage": 2, "reduce_bucket_size": 77},
    "optimizer": {"type": "ModularMomentum"},
    "mesh": {"data": 5}
  })"),
            expected);
  EXPECT_EQ(expected.world_size(), 5);
}

TEST(RunConfig, ResolvesTheBatchIdentityFromWhatIsGiven) {
  struct Row {
    std::string batch, micro, accumulation;
    int64_t data, expected_batch, expected_micro, expected_accumulation;
  };
  for (const Row& row : {
           Row{"24", "2", "4", 3, 24, 2, 4},
           Row{"24", "2", "auto", 3, 24, 2, 4},
           Row{"24", "2", "", 3, 24, 2, 4},
           Row{"24", "auto", "4", 3, 24, 2, 4},
           Row{"24", "", "4", 3, 24, 2, 4},
           Row{"auto", "2", "4", 3, 24, 2, 4},
           Row{"", "2", "4", 3, 24, 2, 4},
           Row{"24", "auto", "auto", 3, 24, 8, 1},
           Row{"24", "", "", 3, 24, 8, 1},
           Row{"auto", "2", "auto", 3, 6, 2, 1},
           Row{"", "2", "", 3, 6, 2, 1},
           Row{"1", "1", "1", 1, 1, 1, 1},
           Row{"7", "", "7", 1, 7, 1, 7},
           Row{"1099511627776", "", "1048576", 1048576, 1099511627776, 1, 1048576},
           Row{"", "1", "1048576", 1048576, 1099511627776, 1, 1048576},
       }) {
    std::string keys = "\"mesh\": {\"data\": " + std::to_string(row.data) + "}";
    const auto add = [&](const char* key, const std::string& value) {
      if (!value.empty()) keys += ", \"" + std::string(key) + "\": " + (value == "auto" ? "\"auto\"" : value);
    };
    add("train_batch_size", row.batch);
    add("train_micro_batch_size_per_gpu", row.micro);
    add("gradient_accumulation_steps", row.accumulation);
    const RunConfig config = Parse(With(keys));
    EXPECT_EQ(config.train_batch_size, row.expected_batch) << keys;
    EXPECT_EQ(config.micro_batch_size, row.expected_micro) << keys;
    EXPECT_EQ(config.accumulation_steps, row.expected_accumulation) << keys;
    EXPECT_EQ(config.train_batch_size, config.micro_batch_size * config.accumulation_steps * config.data_degree);
  }
}

TEST(RunConfig, RefusesABatchThatIsNotMicroTimesAccumulationTimesData) {
  const std::string identity =
      "config.json: train_batch_size must be train_micro_batch_size_per_gpu x gradient_accumulation_steps x mesh.data";
  const struct {
    std::string keys, message;
  } kTable[] = {
      {R"("train_batch_size": 24, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 3, "mesh": {"data": 3})",
       identity + "; 24 does not divide by gradient_accumulation_steps x mesh.data = 9"},
      {R"("train_batch_size": 24, "train_micro_batch_size_per_gpu": 3, "gradient_accumulation_steps": 4, "mesh": {"data": 3})",
       identity + "; 24 is not 3 x 4 x 3"},
      {R"("train_batch_size": 24, "mesh": {"data": 5})",
       identity + "; 24 does not divide by gradient_accumulation_steps x mesh.data = 5"},
      {R"("train_batch_size": 24, "gradient_accumulation_steps": 7)",
       identity + "; 24 does not divide by gradient_accumulation_steps x mesh.data = 7"},
      {R"("train_batch_size": 24, "train_micro_batch_size_per_gpu": 5)",
       identity + "; 24 does not divide by train_micro_batch_size_per_gpu x mesh.data = 5"},
      {R"("train_batch_size": 24, "train_micro_batch_size_per_gpu": 2, "mesh": {"data": 5})",
       identity + "; 24 does not divide by train_micro_batch_size_per_gpu x mesh.data = 10"},
      {R"("train_batch_size": 2, "gradient_accumulation_steps": 4)",
       identity + "; 2 does not divide by gradient_accumulation_steps x mesh.data = 4"},
      {R"("train_micro_batch_size_per_gpu": 1099511627776, "gradient_accumulation_steps": 2)",
       identity + ", at most 1099511627776"},
      {R"("train_micro_batch_size_per_gpu": 1099511627776, "gradient_accumulation_steps": 1099511627776, "mesh": {"data": 1048576})",
       identity + ", at most 1099511627776"},
      {R"("train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 1048576, "mesh": {"data": 1048576})",
       identity + ", at most 1099511627776"},
      {"", "config.json: train_batch_size or train_micro_batch_size_per_gpu must be given as a number"},
      {R"("train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": 4)",
       "config.json: train_batch_size or train_micro_batch_size_per_gpu must be given as a number"},
  };
  for (const auto& [keys, message] : kTable) EXPECT_EQ(Message(With(keys)), message);
}

TEST(RunConfig, NamesEachValueThatIsNotAllowed) {
  const struct {
    std::string keys, message;
  } kTable[] = {
      {R"("train_batch_size": 0)", "config.json: train_batch_size is 0; allowed: an integer from 1 to 1099511627776"},
      {R"("train_batch_size": -8)", "config.json: train_batch_size is -8; allowed: an integer from 1 to 1099511627776"},
      {R"("train_batch_size": "Auto")",
       R"(config.json: train_batch_size is "Auto"; allowed: a positive integer or "auto")"},
      {R"("train_batch_size": null)",
       "config.json: train_batch_size is null; allowed: an integer from 1 to 1099511627776"},
      {R"("train_batch_size": 1099511627777)",
       "config.json: train_batch_size is 1099511627777; allowed: an integer from 1 to 1099511627776"},
      {R"("train_batch_size": 8, "gradient_accumulation_steps": 0)",
       "config.json: gradient_accumulation_steps is 0; allowed: an integer from 1 to 1099511627776"},
      {R"("train_micro_batch_size_per_gpu": 0)",
       "config.json: train_micro_batch_size_per_gpu is 0; allowed: an integer from 1 to 1099511627776"},
      {R"("train_batch_size": 8, "bf16": {"enabled": true}, "fp64": {"enabled": true})",
       "config.json: fp64.enabled is true; allowed: false where another storage type is enabled"},
      {R"("train_batch_size": 8, "bf16": {"enabled": true}, "fp16": {"enabled": true, "loss_scale": 1})",
       "config.json: fp16.enabled is true; allowed: false where another storage type is enabled"},
      {R"("train_batch_size": 8, "fp64": {"enabled": true}, "fp16": {"enabled": true, "loss_scale": 1})",
       "config.json: fp16.enabled is true; allowed: false where another storage type is enabled"},
      {R"("train_batch_size": 8, "fp16": {"loss_scale": 3})",
       "config.json: fp16.loss_scale is 3; allowed: 0, or a power of two from 1 to 16777216"},
      {R"("train_batch_size": 8, "fp16": {"loss_scale": 0.5})",
       "config.json: fp16.loss_scale is 0.5; allowed: 0, or a power of two from 1 to 16777216"},
      {R"("train_batch_size": 8, "fp16": {"enabled": true, "loss_scale": 33554432})",
       "config.json: fp16.loss_scale is 33554432; allowed: 0, or a power of two from 1 to 16777216"},
      {R"("train_batch_size": 8, "fp16": {"enabled": true, "loss_scale": 1e300})",
       "config.json: fp16.loss_scale is 1e+300; allowed: 0, or a power of two from 1 to 16777216"},
      {R"("train_batch_size": 8, "bf16": true)", "config.json: bf16 is true; allowed: an object"},
      {R"("train_batch_size": 8, "bf16": {"enabled": 1})", "config.json: bf16.enabled is 1; allowed: true or false"},
      {R"("train_batch_size": 8, "zero_optimization": {"stage": 4})",
       "config.json: zero_optimization.stage is 4; allowed: an integer from 0 to 3"},
      {R"("train_batch_size": 8, "zero_optimization": {"stage": -1})",
       "config.json: zero_optimization.stage is -1; allowed: an integer from 0 to 3"},
      {R"("train_batch_size": 8, "zero_optimization": {"layer_stages": [0, 4]})",
       "config.json: zero_optimization.layer_stages[1] is 4; allowed: an integer from 0 to 3"},
      {R"("train_batch_size": 8, "zero_optimization": {"layer_stages": 3})",
       "config.json: zero_optimization.layer_stages is 3; allowed: an array"},
      {R"("train_batch_size": 8, "zero_optimization": 1)", "config.json: zero_optimization is 1; allowed: an object"},
      {R"("train_batch_size": 8, "zero_optimization": {"reduce_bucket_size": 0})",
       "config.json: zero_optimization.reduce_bucket_size is 0; allowed: an integer from 1 to 1099511627776"},
      {R"("train_batch_size": 8, "zero_optimization": {"reduce_bucket_size": 5e13})",
       "config.json: zero_optimization.reduce_bucket_size is 50000000000000.0; allowed: an integer from 1 to "
       "1099511627776"},
      {R"("train_batch_size": 8, "zero_optimization": {"reduce_bucket_size": 1e30})",
       "config.json: zero_optimization.reduce_bucket_size is 1e+30; allowed: an integer from 1 to 1099511627776"},
      {R"("train_batch_size": 1000000000000000000000000000000)",
       "config.json: train_batch_size is 1e+30; allowed: an integer from 1 to 1099511627776"},
      {R"("train_batch_size": 8.5)",
       "config.json: train_batch_size is 8.5; allowed: an integer from 1 to 1099511627776"},
      {R"("train_batch_size": 8, "mesh": {"data": 0})",
       "config.json: mesh.data is 0; allowed: an integer from 1 to 1048576"},
      {R"("train_batch_size": 8, "mesh": [2])", "config.json: mesh is [2]; allowed: an object"},
  };
  for (const auto& [keys, message] : kTable) EXPECT_EQ(Message(With(keys)), message);
}

TEST(RunConfig, TakesIntegersAsUsersOfDeepSpeedWriteThem) {
  const RunConfig config = Parse(
      R"({"train_batch_size": 8.0, "mesh": {"data": 2e0}, "optimizer": {"type": "AdamW"},
          "zero_optimization": {"stage": 3.0, "reduce_bucket_size": 5e8, "stage3_prefetch_bucket_size": 2e8,
                                "stage3_param_persistence_threshold": 1e5, "stage3_max_live_parameters": 1.5e9},
          "scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 1e4, "warmup_num_steps": 1e3}},
          "adaptive_clipping": {"type": "history", "warmup_steps": 1e1}})");
  EXPECT_EQ(config.train_batch_size, 8);
  EXPECT_EQ(config.data_degree, 2);
  EXPECT_EQ(config.zero_stage, 3);
  EXPECT_EQ(config.reduce_bucket_elems, 500'000'000);
  EXPECT_EQ(config.prefetch_bucket_elems, 200'000'000);
  EXPECT_EQ(config.persistence_threshold_elems, 100'000);
  EXPECT_EQ(config.max_live_elems, 1'500'000'000);
  EXPECT_EQ(config.schedule.total_num_steps, 10'000);
  EXPECT_EQ(config.schedule.warmup_num_steps, 1'000);
  EXPECT_EQ(config.adaptive_clipping.warmup_steps, 10);
  EXPECT_EQ(Parse(ToJson(config)), config);
}

TEST(RunConfig, TakesAPowerOfTwoAsTheLossScaleOfFp16) {
  const RunConfig plain = Parse(With(R"("train_batch_size": 8)"));
  EXPECT_EQ(plain.loss_scale, 1);
  for (const int64_t scale : {int64_t{1}, int64_t{64}, int64_t{1} << 24}) {
    const std::string text = std::to_string(scale);
    const RunConfig config =
        Parse(With(R"("train_batch_size": 8, "fp16": {"enabled": true, "loss_scale": )" + text + "}"));
    EXPECT_EQ(config.storage, DType::kF16);
    EXPECT_EQ(config.loss_scale, scale);
    EXPECT_EQ(Parse(ToJson(config)), config);
  }
  EXPECT_EQ(Parse(With(R"("train_batch_size": 8, "fp16": {"enabled": true, "loss_scale": 64.0})")).loss_scale, 64);
  EXPECT_EQ(Parse(With(R"("train_batch_size": 8, "fp16": {"enabled": false, "loss_scale": 64})")), plain);
}

TEST(RunConfig, ScalesTheLossDynamicallyWithDeepSpeedsDefaults) {
  const RunConfig config =
      Parse(R"({"train_batch_size": 8, "optimizer": {"type": "AdamW"}, "fp16": {"enabled": true}})");
  EXPECT_TRUE(HasDynamicLossScale(config));
  EXPECT_EQ(config.dynamic_loss_scale, (DynamicLossScale{16, 1000, 2, false, 1}));
  EXPECT_EQ(Parse(ToJson(config)), config);
  const RunConfig other = Parse(R"({"train_batch_size": 8, "optimizer": {"type": "SGD"},
      "fp16": {"enabled": true, "loss_scale": 0.0, "initial_scale_power": 32, "loss_scale_window": 1e2,
               "hysteresis": 3, "consecutive_hysteresis": true, "min_loss_scale": 64}})");
  EXPECT_EQ(other.dynamic_loss_scale, (DynamicLossScale{32, 100, 3, true, 64}));
  EXPECT_EQ(InitialLossScaler(other.dynamic_loss_scale), (LossScaler{0x1p32, 0, -1, 3}));
  EXPECT_EQ(Parse(ToJson(other)), other);
}

TEST(RunConfig, RefusesSettingsOfTheLossScaleByNameAndRange) {
  const auto message = [](const std::string& key_and_value) {
    return Message(With(R"("train_batch_size": 8, "fp16": {)" + key_and_value + "}"));
  };
  EXPECT_EQ(message(R"("enabled": true)"),
            "config.json: fp16.loss_scale is 0, a dynamic scale, with optimizer ModularSGD, which skips no step; "
            "allowed: a power of two from 1 to 16777216");
  EXPECT_EQ(message(R"("initial_scale_power": 61)"),
            "config.json: fp16.initial_scale_power is 61; allowed: an integer from 0 to 60");
  EXPECT_EQ(message(R"("loss_scale_window": 0)"),
            "config.json: fp16.loss_scale_window is 0; allowed: an integer from 1 to 1099511627776");
  EXPECT_EQ(message(R"("hysteresis": 0)"),
            "config.json: fp16.hysteresis is 0; allowed: an integer from 1 to 1099511627776");
  for (const std::string value : {"0", "3", "0.5"}) {
    EXPECT_EQ(message(R"("min_loss_scale": )" + value),
              "config.json: fp16.min_loss_scale is " + value + "; allowed: a power of two from 1 to 16777216");
  }
  EXPECT_EQ(message(R"("initial_scale_power": 3, "min_loss_scale": 16)"),
            "config.json: fp16.min_loss_scale is 16; allowed: at most 2^initial_scale_power, 8");
}

TEST(RunConfig, NamesStorageTypesAsDescriptionsDo) {
  EXPECT_EQ(StorageName(DType::kF64), "fp64");
  EXPECT_EQ(StorageName(DType::kF32), "fp32");
  EXPECT_EQ(StorageName(DType::kBF16), "bf16");
  EXPECT_EQ(StorageName(DType::kF16), "fp16");
}

TEST(RunConfig, DemandsAnOptimizerThatItKnows) {
  EXPECT_EQ(Message(R"({"train_batch_size": 8})"), "config.json: optimizer is missing; allowed: an object");
  EXPECT_EQ(
      Message(R"({"train_batch_size": 8, "optimizer": {}})"),
      "config.json: optimizer.type is missing; allowed: ModularMomentum, ModularSGD, AdamW, SGD, Adam, Lion, Lamb");
  EXPECT_EQ(Message(R"({"train_batch_size": 8, "optimizer": "ModularSGD"})"),
            R"(config.json: optimizer is "ModularSGD"; allowed: an object)");
  EXPECT_EQ(Message(R"({"train_batch_size": 8, "optimizer": {"type": "modularsgd"}})"),
            R"(config.json: optimizer.type is "modularsgd"; allowed: ModularMomentum, ModularSGD, AdamW, SGD, )"
            "Adam, Lion, Lamb");
  EXPECT_EQ(Parse(R"({"train_batch_size": 8, "optimizer": {"type": "ModularMomentum"}})").optimizer,
            OptimizerKind::kModularMomentum);
}

TEST(RunConfig, RefusesWhatIsNoObject) {
  EXPECT_EQ(Message("[]"), "config.json is []; allowed: an object");
  EXPECT_EQ(Message(""), "config.json: is empty; a JSON value is expected");
}

TEST(RunConfig, SuggestsTheNearestKeyForAnUnknownOneAtEachLevel) {
  const struct {
    std::string keys, message;
  } kTable[] = {
      {R"("train_batch_sise": 8)", R"(config.json: unknown key "train_batch_sise"; did you mean "train_batch_size"?)"},
      {R"("micro_batch_size_per_gpu": 8)",
       R"(config.json: unknown key "micro_batch_size_per_gpu"; did you mean "train_micro_batch_size_per_gpu"?)"},
      {R"("Mesh": {})", R"(config.json: unknown key "Mesh"; did you mean "mesh"?)"},
      // The nearest known key may be one that is not built.
      {R"("gradient_cliping": 1.0)",
       R"(config.json: unknown key "gradient_cliping"; did you mean "gradient_clipping"?)"},
      {R"("fp64": {"enable": true})", R"(config.json: fp64: unknown key "enable"; did you mean "enabled"?)"},
      {R"("bf16": {"enable": true})", R"(config.json: bf16: unknown key "enable"; did you mean "enabled"?)"},
      {R"("zero_optimization": {"stages": 1})",
       R"(config.json: zero_optimization: unknown key "stages"; did you mean "stage"?)"},
      {R"("zero_optimization": {"stage": 1, "reduce_bucketsize": 1})",
       R"(config.json: zero_optimization: unknown key "reduce_bucketsize"; did you mean "reduce_bucket_size"?)"},
      {R"("mesh": {"date": 1})", R"(config.json: mesh: unknown key "date"; did you mean "data"?)"},
  };
  for (const auto& [keys, message] : kTable) EXPECT_EQ(Message(With(keys)), message);
  EXPECT_EQ(
      Message(With(R"("train_batch_size": 8, "zero_optimization": {"model_persistence_threshold": 1})")),
      R"(config.json: zero_optimization: unknown key "model_persistence_threshold"; did you mean "stage3_model_persistence_threshold"?)");
  EXPECT_EQ(Message(R"({"optimizer": {"typ": "ModularSGD"}})"),
            R"(config.json: optimizer: unknown key "typ"; did you mean "type"?)");
}

TEST(RunConfig, ListsOnlyKeysThatAreBuiltWhereNoneIsNear) {
  EXPECT_EQ(Message(With("\"timers\": {}, \"something_else_entirely\": 1")),
            "config.json: unknown key \"something_else_entirely\"; allowed: train_batch_size, "
            "train_micro_batch_size_per_gpu, gradient_accumulation_steps, bf16, fp16, fp64, zero_optimization, "
            "optimizer, param_groups, scheduler, gradient_clipping, adaptive_clipping, mesh");
  EXPECT_EQ(Message(With("\"train_batch_size\": 8, \"mesh\": {\"something_else\": 1}")),
            "config.json: mesh: unknown key \"something_else\"; allowed: data");
}

TEST(RunConfig, CallsKnownKeysThatAreNotBuiltUnsupported) {
  const struct {
    std::string keys, message;
  } kTable[] = {
      {R"("timers": {"enabled": false})", R"(config.json: key "timers" is known but not built yet; leave it out)"},
      {R"("zero_optimization": {"stage": 9, "leaf_module": {}})",
       R"(config.json: zero_optimization: key "leaf_module" is known but not built yet; leave it out)"},
      {R"("checkpoint": {"tag_validation": "Warn"})",
       R"(config.json: checkpoint: key "tag_validation" is known but not built yet; leave it out)"},
      {R"("amp": {"enabled": true, "opt_level": "O1"})",
       "config.json: amp.enabled is true, which is known but not built yet; supported: false"},
      {R"("mesh": {"tensor": 2})", "config.json: mesh.tensor is 2, which is known but not built yet; supported: 1"},
      {R"("communication_data_type": "fp16")",
       R"(config.json: communication_data_type is "fp16", which is known but not built yet; supported: "fp32")"},
      {R"("zero_optimization": {"stage": 9, "offload_optimizer": {"device": "cpu"}})",
       R"(config.json: zero_optimization.offload_optimizer.device is "cpu", which is known but not built yet; supported: "none")"},
      {R"("bf16": {"check_grad_overflow": false})",
       "config.json: bf16.check_grad_overflow is false, which is known but not built yet; supported: true"},
  };
  for (const auto& [keys, message] : kTable) {
    EXPECT_EQ(Message(With("\"train_batch_size\": 8, " + keys), ErrorCode::kUnsupported), message);
  }
}

TEST(RunConfig, RefusesAutoWhereNothingResolvesIt) {
  const std::string what =
      "; allowed: a value; \"auto\" is resolved for the batch and for sizes that follow from the model's width alone";
  const struct {
    std::string keys, path;
  } kTable[] = {
      {R"("bf16": {"enabled": "auto"})", "bf16.enabled"},
      {R"("fp16": {"enabled": "auto"})", "fp16.enabled"},
      {R"("zero_optimization": {"stage": "auto"})", "zero_optimization.stage"},
      {R"("mesh": {"data": "auto"})", "mesh.data"},
      {R"("gradient_clipping": "auto")", "gradient_clipping"},
      {R"("optimizer": {"type": "AdamW", "params": {"lr": "auto"}})", "optimizer.params.lr"},
      {R"("optimizer": {"type": "AdamW", "params": {"betas": "auto"}})", "optimizer.params.betas"},
      {R"("scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": "auto"}})",
       "scheduler.params.warmup_num_steps"},
  };
  for (const auto& [keys, path] : kTable) {
    const std::string optimizer = keys.starts_with("\"optimizer") ? "" : R"(, "optimizer": {"type": "AdamW"})";
    EXPECT_EQ(Message("{\"train_batch_size\": 8, " + keys + optimizer + "}"),
              "config.json: " + path + " is \"auto\"" + what);
  }
  for (const char* key : {"reduce_bucket_size", "stage3_prefetch_bucket_size", "stage3_param_persistence_threshold"}) {
    EXPECT_EQ(Message(With(R"("train_batch_size": 8, "zero_optimization": {")" + std::string(key) + R"(": "auto"})")),
              "config.json: zero_optimization." + std::string(key) +
                  " is \"auto\"; allowed: an integer where no model's width up to 1048576 resolves it");
  }
}

TEST(RunConfig, ResolvesSizesFromTheWidthOfTheModelAsTheTrainerDoes) {
  const JsonValue root = JsonValue::Parse(With(R"("train_batch_size": 8, "zero_optimization": {"stage": 3,
    "reduce_bucket_size": "auto", "stage3_prefetch_bucket_size": "auto",
    "stage3_param_persistence_threshold": "auto"})"),
                                          "config.json");
  const RunConfig config = ParseRunConfig(root, 13);
  EXPECT_EQ(config.reduce_bucket_elems, 169);
  EXPECT_EQ(config.prefetch_bucket_elems, 152);  // of 152.1
  EXPECT_EQ(config.persistence_threshold_elems, 130);
  EXPECT_EQ(Parse(ToJson(config)), config) << "no \"auto\" is left";
  EXPECT_EQ(ParseRunConfig(root, 1).reduce_bucket_elems, 1);
  EXPECT_EQ(ParseRunConfig(root, 1).prefetch_bucket_elems, 0);
  EXPECT_EQ(ParseRunConfig(root, 1 << 20).reduce_bucket_elems, int64_t{1} << 40);
  ErrorMessage(ErrorCode::kInvalidArgument, [&] { ParseRunConfig(root, (1 << 20) + 1); });
  ErrorMessage(ErrorCode::kInvalidArgument, [&] { ParseRunConfig(root, int64_t{1} << 62); });
}

TEST(RunConfig, KeepsHintsWhereTheyStood) {
  const RunConfig config = Parse(With(R"("train_batch_size": 8, "steps_per_print": 2e3, "log_level": "info",
    "bf16": {"immediate_grad_update": true}, "zero_optimization": {"sub_group_size": 1e9, "round_robin_gradients": true})"));
  EXPECT_EQ(config.hints, (Hints{{"bf16.immediate_grad_update", "true"},
                                 {"log_level", "\"info\""},
                                 {"steps_per_print", "2000"},
                                 {"zero_optimization.round_robin_gradients", "true"},
                                 {"zero_optimization.sub_group_size", "1000000000"}}));
  const std::string json = ToJson(config);
  EXPECT_NE(json.find(R"("bf16": {"enabled": false, "immediate_grad_update": true})"), std::string::npos) << json;
  EXPECT_NE(json.find(R"(, "round_robin_gradients": true, "sub_group_size": 1000000000}, "optimizer")"),
            std::string::npos)
      << json;
  EXPECT_TRUE(json.ends_with(R"("mesh": {"data": 1}, "log_level": "info", "steps_per_print": 2000})")) << json;
  EXPECT_EQ(Parse(json), config);
}

TEST(RunConfig, SuggestsFixedKeysAndHintsToo) {
  EXPECT_EQ(Message(With(R"("train_batch_size": 8, "step_per_print": 9)")),
            R"(config.json: unknown key "step_per_print"; did you mean "steps_per_print"?)");
  EXPECT_EQ(
      Message(With(R"("train_batch_size": 8, "zero_optimization": {"contigous_gradients": true})")),
      R"(config.json: zero_optimization: unknown key "contigous_gradients"; did you mean "contiguous_gradients"?)");
  EXPECT_EQ(Message(With(R"("train_batch_size": 8, "data_types": {"grad_acum_dtype": "fp32"})")),
            R"(config.json: data_types: unknown key "grad_acum_dtype"; did you mean "grad_accum_dtype"?)");
  EXPECT_EQ(Message(With(R"("train_batch_size": 8, "data_types": {"something": 1})")),
            R"(config.json: data_types: unknown key "something"; allowed: grad_accum_dtype)");
}

TEST(RunConfig, TakesTheKeysOfADynamicScaleWhereItIsNotUsed) {
  const std::string dynamic =
      R"("initial_scale_power": 16, "loss_scale_window": 1e3, "hysteresis": 2, "min_loss_scale": 1})";
  const RunConfig off = Parse(With(R"("train_batch_size": 8, "fp16": {"enabled": false, "loss_scale": 0, )" + dynamic));
  EXPECT_EQ(off, Parse(With(R"("train_batch_size": 8)")));
  EXPECT_EQ(Parse(With(R"("train_batch_size": 8, "fp16": {"enabled": true, "loss_scale": 64, )" + dynamic)).loss_scale,
            64);
}

TEST(RunConfig, RefusesParametersThatAModularOptimizerHasNot) {
  EXPECT_EQ(Message(R"({"train_batch_size": 8, "optimizer": {"type": "ModularSGD", "params": {"lr": 0.1}}})"),
            R"(config.json: optimizer.params: unknown key "lr"; allowed: no key)");
  EXPECT_EQ(Message(With(R"("train_batch_size": 8, "gradient_clipping": 1.0)")),
            R"(config.json: key "gradient_clipping" is given with optimizer ModularSGD, which has none; leave it out)");
  EXPECT_NE(Message(With(R"("train_batch_size": 8, "adaptive_clipping": {"type": "unit"})")).find("adaptive_clipping"),
            std::string::npos);
}

TEST(RunConfig, PrefersTheUnknownKeyToTheUnbuiltOne) {
  EXPECT_EQ(Message(With(R"("timers": {}, "mesch": {})")), R"(config.json: unknown key "mesch"; did you mean "mesh"?)");
}

TEST(RunConfig, BeginsMessagesWithThePathWhereItLies) {
  const JsonValue root = JsonValue::Parse(R"({"config": {"train_batch_size": 8}})", "case.json");
  EXPECT_EQ(ErrorMessage(ErrorCode::kInvalidArgument, [&] { ParseRunConfig(root.At("config")); }),
            "case.json: config.optimizer is missing; allowed: an object");
}

TEST(ToJson, ParsesBackToTheSameConfigAndIsAFixedPoint) {
  int num_configs = 0;
  for (int64_t micro : {1, 3}) {
    for (int64_t accumulation : {1, 4}) {
      for (int64_t data : {1, 5}) {
        for (DType storage : {DType::kF32, DType::kBF16, DType::kF64}) {
          for (int64_t stage : {0, 1, 2, 3}) {
            for (OptimizerKind optimizer : {OptimizerKind::kModularMomentum, OptimizerKind::kModularSgd}) {
              RunConfig config;
              config.train_batch_size = micro * accumulation * data;
              config.micro_batch_size = micro;
              config.accumulation_steps = accumulation;
              config.data_degree = data;
              config.storage = storage;
              config.zero_stage = stage;
              config.reduce_bucket_elems = 1 + stage * 1000;
              config.optimizer = optimizer;
              const std::string json = ToJson(config);
              EXPECT_EQ(Parse(json), config) << json;
              EXPECT_EQ(ToJson(Parse(json)), json);
              ++num_configs;
            }
          }
        }
      }
    }
  }
  EXPECT_EQ(num_configs, 192);
}

TEST(ToJson, HasStagesOfLayersWhereThereAreAny) {
  RunConfig config =
      Parse(With(R"("train_batch_size": 12, "zero_optimization": {"stage": 1, "layer_stages": [3, 0, 2]})"));
  EXPECT_EQ(config.layer_stages, (std::vector<int64_t>{3, 0, 2}));
  EXPECT_NE(ToJson(config).find(R"({"stage": 1, "layer_stages": [3, 0, 2], "reduce)"), std::string::npos);
  EXPECT_EQ(Parse(ToJson(config)), config);
  config.layer_stages.clear();
  EXPECT_EQ(ToJson(config).find("layer_stages"), std::string::npos);
}

TEST(ToJson, ShowsEveryKeyResolvedInTheOrderOfTheTable) {
  EXPECT_EQ(
      ToJson(Parse(With(R"("train_batch_size": 12, "gradient_accumulation_steps": "auto", "mesh": {"data": 2})"))),
      R"({"train_batch_size": 12, "train_micro_batch_size_per_gpu": 6, "gradient_accumulation_steps": 1, )"
      R"("bf16": {"enabled": false}, "zero_optimization": {"stage": 0, "reduce_bucket_size": 500000000, )"
      R"("overlap_comm": true, "stage3_prefetch_bucket_size": 50000000, "stage3_param_persistence_threshold": 100000, )"
      R"("stage3_max_live_parameters": 1000000000}, "optimizer": {"type": "ModularSGD"}, "mesh": {"data": 2}})");
}

constexpr const char* kReal = R"({"train_batch_size": 4,
    "optimizer": {"type": "AdamW", "params": {"lr": 0.002, "betas": [0.8, 0.95], "eps": 1e-7, "weight_decay": 0.1}},
    "param_groups": [{"match": "*.bias", "weight_decay": 0}, {"match": "embed.*", "lr": 0.5}],
    "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 7, "warmup_type": "linear"}},
    "gradient_clipping": 0.25,
    "zero_optimization": {"stage": 3, "overlap_comm": false, "stage3_prefetch_bucket_size": 10,
                          "stage3_param_persistence_threshold": 20, "stage3_max_live_parameters": 30}})";

TEST(ParseRunConfig, ReadsWhatARealOptimizerHas) {
  const RunConfig config = Parse(kReal);
  EXPECT_EQ(config.optimizer, OptimizerKind::kAdamW);
  EXPECT_EQ(config.params, (OptimizerParams{0.002, 0.8, 0.95, 1e-7, 0.1, 0}));
  ASSERT_EQ(config.groups.size(), 2u);
  EXPECT_EQ(config.groups[0], (ParameterGroup{"*.bias", std::nullopt, 0.0}));
  EXPECT_EQ(config.groups[1], (ParameterGroup{"embed.*", 0.5, std::nullopt}));
  EXPECT_EQ(config.schedule, (Schedule{Schedule::Kind::kWarmup, 0, 0.002, 7, true}));
  EXPECT_EQ(config.gradient_clipping, 0.25);
  EXPECT_FALSE(config.overlap_comm);
  EXPECT_EQ(config.prefetch_bucket_elems, 10);
  EXPECT_EQ(config.persistence_threshold_elems, 20);
  EXPECT_EQ(config.max_live_elems, 30);
  EXPECT_EQ(Parse(ToJson(config)), config);
}

TEST(ParseRunConfig, HasTheDefaultsOfPyTorch) {
  EXPECT_EQ(Parse(R"({"train_batch_size": 1, "optimizer": {"type": "AdamW"}})").params,
            (OptimizerParams{1e-3, 0.9, 0.999, 1e-8, 0.01, 0}));
  const RunConfig sgd = Parse(R"({"train_batch_size": 1, "optimizer": {"type": "SGD", "params": {"momentum": 0.9}}})");
  EXPECT_EQ(sgd.params, (OptimizerParams{1e-3, 0.9, 0.999, 1e-8, 0, 0.9}));
  EXPECT_EQ(sgd.schedule.kind, Schedule::Kind::kConstant);
  EXPECT_EQ(Parse(ToJson(sgd)), sgd);
}

RunConfig ParseOptimizer(const std::string& optimizer, const std::string& more = "") {
  const RunConfig config = Parse(R"({"train_batch_size": 1, "optimizer": )" + optimizer + more + "}");
  EXPECT_EQ(Parse(ToJson(config)), config) << ToJson(config);
  return config;
}

TEST(ParseRunConfig, ResolvesAdamToAdamWUnlessTheDecayIsCoupled) {
  const RunConfig decoupled = ParseOptimizer(R"({"type": "Adam", "params": {"lr": 0.5}})");
  EXPECT_EQ(decoupled.optimizer, OptimizerKind::kAdamW);
  EXPECT_EQ(decoupled.params, (OptimizerParams{0.5, 0.9, 0.999, 1e-8, 0, 0}));
  EXPECT_EQ(ParseOptimizer(R"({"type": "Adam"})").optimizer, OptimizerKind::kAdamW);
  const RunConfig coupled =
      ParseOptimizer(R"({"type": "Adam", "params": {"adam_w_mode": false, "weight_decay": 0.1}})");
  EXPECT_EQ(coupled.optimizer, OptimizerKind::kAdam);
  EXPECT_EQ(coupled.params, (OptimizerParams{1e-3, 0.9, 0.999, 1e-8, 0.1, 0}));
}

TEST(ParseRunConfig, ReadsLionLambAndNesterov) {
  EXPECT_EQ(ParseOptimizer(R"({"type": "Lion"})").params, (OptimizerParams{1e-3, 0.9, 0.99, 1e-8, 0, 0}));
  EXPECT_EQ(ParseOptimizer(R"({"type": "Lion", "params": {"betas": [0.5, 0.75]}})").params.beta2, 0.75);
  const RunConfig lamb = ParseOptimizer(R"({"type": "Lamb", "params": {"max_coeff": 3, "min_coeff": 0.5}})");
  EXPECT_EQ(lamb.optimizer, OptimizerKind::kLamb);
  EXPECT_EQ(lamb.params, (OptimizerParams{1e-3, 0.9, 0.999, 1e-8, 0, 0, false, 3, 0.5}));
  EXPECT_EQ(ParseOptimizer(R"({"type": "Lamb"})").params.max_coeff, 10);
  EXPECT_TRUE(ParseOptimizer(R"({"type": "SGD", "params": {"momentum": 0.5, "nesterov": true}})").params.nesterov);
  EXPECT_EQ(Message(R"({"train_batch_size": 1, "optimizer": {"type": "SGD", "params": {"nesterov": true}}})"),
            "config.json: optimizer.params.nesterov is true; allowed: false where momentum is 0");
  EXPECT_EQ(Message(R"({"train_batch_size": 1, "optimizer": {"type": "Lamb", "params": {"max_coeff": 0.001}}})"),
            "config.json: optimizer.params.max_coeff is 0.001; allowed: at least min_coeff, by default 0.01");
}

// The default is said where the other key is left out, and the key that is blamed is there.
TEST(ParseRunConfig, BlamesACoefficientOfLambThatIsGiven) {
  const auto message = [](const std::string& params) {
    return Message(R"({"train_batch_size": 1, "optimizer": {"type": "Lamb", "params": {)" + params + "}}}");
  };
  EXPECT_EQ(message(R"("min_coeff": 20)"),
            "config.json: optimizer.params.min_coeff is 20; allowed: at most max_coeff, by default 10");
  EXPECT_EQ(message(R"("min_coeff": 3, "max_coeff": 2)"),
            "config.json: optimizer.params.min_coeff is 3; allowed: at most max_coeff, 2");
  EXPECT_EQ(message(R"("max_coeff": 0)"),
            "config.json: optimizer.params.max_coeff is 0; allowed: at least min_coeff, by default 0.01");
}

TEST(ParseRunConfig, RefusesAGroupsRateWhereAScheduleHasNoRateThatItIsAShareOf) {
  const auto json = [](const std::string& lr, const std::string& group, const std::string& scheduler) {
    return R"({"train_batch_size": 1, "optimizer": {"type": "SGD", "params": {"lr": )" + lr +
           R"(}}, "param_groups": [{"match": "a"}, {"match": "b")" + group + "}]" + scheduler + "}";
  };
  const auto type = [](const std::string& name, const std::string& params) {
    return R"(, "scheduler": {"type": ")" + name + R"(", "params": {)" + params + "}}";
  };
  const std::string cosine = type("WarmupCosineLR", R"("total_num_steps": 9)");
  for (const auto& [name, params] : {std::pair("WarmupLR", R"("warmup_max_lr": 1)"),
                                     {"WarmupDecayLR", R"("total_num_steps": 9)"},
                                     {"OneCycle", R"("cycle_min_lr": 1, "cycle_max_lr": 2)"}}) {
    for (const char* lr : {"0", "1"}) {
      EXPECT_EQ(Message(json("0", R"(, "lr": )" + std::string(lr), type(name, params))),
                "config.json: param_groups[1].lr is " + std::string(lr) +
                    "; allowed: no lr of a group's own where optimizer.params.lr is 0 and scheduler.type is " + name);
    }
    EXPECT_EQ(Parse(json("0", "", type(name, params))).params.lr, 0);
    EXPECT_EQ(Parse(json("1", R"(, "lr": 0)", type(name, params))).groups[1].lr, 0);
  }
  EXPECT_EQ(Parse(json("0", R"(, "lr": 1)", "")).groups[1].lr, 1);
  EXPECT_EQ(Parse(json("0", R"(, "lr": 1)", cosine)).groups[1].lr, 1);
}

TEST(ParseRunConfig, RefusesAPatternOfAGroupThatIsBrokenOrMissing) {
  const auto message = [](const std::string& group) {
    return Message(R"({"train_batch_size": 1, "optimizer": {"type": "SGD"}, "param_groups": [{)" + group + "}]}");
  };
  const std::string allowed =
      "; allowed: a pattern of letters, digits, '.', '_', '*', '?' and sets of them, [0-3x] or [!0-3x]";
  EXPECT_EQ(message(R"("match": "[")"), R"(config.json: param_groups[0].match is "[")" + allowed);
  EXPECT_EQ(message(R"("match": "layers.[0.*")"), R"(config.json: param_groups[0].match is "layers.[0.*")" + allowed);
  EXPECT_EQ(message(R"("match": 1)"), "config.json: param_groups[0].match is 1" + allowed);
  EXPECT_EQ(message(R"("lr": 1)"), "config.json: param_groups[0].match is missing" + allowed);
}

// Real numbers that fp32 would take for 0, 1 or Inf, wherever they stand.
TEST(ParseRunConfig, RefusesNumbersThatFp32DoesNotHold) {
  const std::string numbers = "; allowed: 0, or a number from 1e-30 to below 1e30";
  const std::string positive = "; allowed: a number from 1e-30 to below 1e30";
  const std::string shares = "; allowed: a number from 0 to 0.9999999";
  const auto with = [](const std::string& params, const std::string& more) {
    return Message(R"({"train_batch_size": 1, "optimizer": {"type": "AdamW", "params": {)" + params + "}}" + more +
                   "}");
  };
  EXPECT_EQ(with(R"("eps": 1e-300)", ""), "config.json: optimizer.params.eps is 1e-300" + numbers);
  EXPECT_EQ(with(R"("weight_decay": 1e-40)", ""), "config.json: optimizer.params.weight_decay is 1e-40" + numbers);
  EXPECT_EQ(with(R"("betas": [0.9, 0.99999999])", ""), "config.json: optimizer.params.betas[1] is 0.99999999" + shares);
  EXPECT_EQ(with("", R"(, "gradient_clipping": 1e-300)"), "config.json: gradient_clipping is 1e-300" + numbers);
  EXPECT_EQ(with("", R"(, "adaptive_clipping": {"type": "unit", "eps": 1e-300})"),
            "config.json: adaptive_clipping.eps is 1e-300" + positive);
  EXPECT_EQ(with("", R"(, "adaptive_clipping": {"type": "unit", "ratio": 0})"),
            "config.json: adaptive_clipping.ratio is 0" + positive);
  EXPECT_EQ(with("", R"(, "scheduler": {"type": "OneCycle", "params": {"cycle_max_lr": 1}})"),
            "config.json: scheduler.params.cycle_min_lr is missing" + numbers);
  EXPECT_EQ(ParseOptimizer(R"({"type": "AdamW", "params": {"eps": 0, "betas": [0, 0.9999999], "lr": 1e-30}})").params,
            (OptimizerParams{1e-30, 0, 0.9999999, 0, 0.01, 0}));
}

TEST(ParseRunConfig, ReadsBetasAndExemptionsOfGroups) {
  const RunConfig config =
      ParseOptimizer(R"({"type": "Lion"})",
                     R"(, "param_groups": [{"match": "a", "betas": [0.25, 0.5]}, {"match": "b", "clip": false}])");
  EXPECT_EQ(config.groups[0], (ParameterGroup{"a", std::nullopt, std::nullopt, BetaPair{0.25, 0.5}, true}));
  EXPECT_EQ(config.groups[1], (ParameterGroup{"b", std::nullopt, std::nullopt, std::nullopt, false}));
  EXPECT_EQ(Message(R"({"train_batch_size": 1, "optimizer": {"type": "SGD"},
                        "param_groups": [{"match": "a", "betas": [0.25, 0.5]}]})"),
            "config.json: param_groups[0].betas is [0.25,0.5]; allowed: no betas with SGD");
}

TEST(ParseRunConfig, ReadsAdaptiveClipping) {
  using Kind = AdaptiveClipping::Kind;
  const auto parse = [](const char* clipping) {
    return ParseOptimizer(R"({"type": "SGD"})", R"(, "adaptive_clipping": )" + std::string(clipping)).adaptive_clipping;
  };
  EXPECT_EQ(parse(R"({"type": "unit"})"), (AdaptiveClipping{Kind::kUnit, 0.01, 1e-3, 2.5, 0.97, 25}));
  EXPECT_EQ(parse(R"({"type": "unit", "ratio": 0.5, "eps": 0.25})"), (AdaptiveClipping{Kind::kUnit, 0.5, 0.25}));
  EXPECT_EQ(parse(R"({"type": "history", "deviations": 1, "decay": 0.5, "warmup_steps": 4})"),
            (AdaptiveClipping{Kind::kHistory, 0.01, 1e-3, 1, 0.5, 4}));
  for (const char* clipping : {R"({"type": "unit", "decay": 0.5})", R"({"type": "history", "ratio": 0.5})",
                               R"({"type": "unit", "ratio": 0})", R"({"type": "history", "warmup_steps": 0})", "{}"}) {
    const std::string json = R"({"train_batch_size": 1, "optimizer": {"type": "SGD"}, "adaptive_clipping": )";
    EXPECT_NE(Message(json + clipping + "}").find("adaptive_clipping"), std::string::npos) << clipping;
  }
  EXPECT_EQ(
      Message(R"({"train_batch_size": 1, "optimizer": {"type": "SGD"}, "gradient_clipping": 1,
                        "adaptive_clipping": {"type": "unit"}})"),
      R"(config.json: adaptive_clipping is {"type":"unit"}; allowed: absent where gradient_clipping is more than 0)");
}

TEST(ParseRunConfig, SaysBothEndsOfTheRangeOfARate) {
  for (const char* lr : {"-0.5", "1e+30", "1e-300", "9.9e-31"}) {
    EXPECT_EQ(
        Message(R"({"train_batch_size": 4, "optimizer": {"type": "SGD", "params": {"lr": )" + std::string(lr) + "}}}"),
        "config.json: optimizer.params.lr is " + std::string(lr) +
            "; allowed: 0, or a number from 1e-30 to below 1e30");
  }
  EXPECT_EQ(Parse(R"({"train_batch_size": 4, "optimizer": {"type": "SGD", "params": {"lr": 9.9e29}}})").params.lr,
            9.9e29);
}

TEST(ParseRunConfig, CallsParametersThatAskForMoreUnsupported) {
  for (const char* optimizer : {"AdamW", "SGD", "Lion", "Lamb", "Adam"}) {
    const auto json = [&](const std::string& member) {
      return R"({"train_batch_size": 4, "optimizer": {"type": ")" + std::string(optimizer) + R"(", "params": {)" +
             member + "}}}";
    };
    EXPECT_EQ(Message(json("\"amsgrad\": true"), ErrorCode::kUnsupported),
              "config.json: optimizer.params.amsgrad is true, which is known but not built yet; supported: false");
    EXPECT_EQ(Message(json("\"dampening\": 0.5"), ErrorCode::kUnsupported),
              "config.json: optimizer.params.dampening is 0.5, which is known but not built yet; supported: 0");
    EXPECT_EQ(Parse(json("\"torch_adam\": true, \"amsgrad\": false, \"bias_correction\": true")), Parse(json("")));
  }
}

TEST(ParseRunConfig, RefusesRatesAndDecaysOutOfRange) {
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{{"0.002", "-1"},
                                                                                 {"0.8", "1"},
                                                                                 {"0.95", "-0.1"},
                                                                                 {"1e-7", "-1"},
                                                                                 {"0.25", "-1"},
                                                                                 {"\"linear\"", "\"cubic\""},
                                                                                 {"WarmupLR", "WarmupRL"},
                                                                                 {"\"match\"", "\"mtach\""},
                                                                                 {"[0.8, 0.95]", "[0.8]"}}) {
    std::string json = kReal;
    json.replace(json.find(from), from.size(), to);
    EXPECT_THROW(Parse(json), Error) << to;
  }
}

}  // namespace
}  // namespace plumbline::contract
