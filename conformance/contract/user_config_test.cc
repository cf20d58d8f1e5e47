// SPDX-License-Identifier: Apache-2.0
// Whole configurations as users of DeepSpeed have them, with the keys that its page names: what is understood of each,
// and that nothing of it is lost on the way to an engine.
#include <gtest/gtest.h>

#include <string>

#include "conformance/contract/run_config.h"
#include "conformance/contract/strict_json.h"

namespace plumbline::contract {
namespace {

RunConfig Parse(const std::string& json) {
  const RunConfig config = ParseRunConfig(json, "ds_config.json");
  EXPECT_EQ(ParseRunConfig(ToJson(config), "case.json"), config) << ToJson(config);
  return config;
}

TEST(UserConfig, OfZero2InBf16) {
  const RunConfig config = Parse(R"({
    "train_batch_size": 24,
    "train_micro_batch_size_per_gpu": "auto",
    "gradient_accumulation_steps": 3,
    "fp16": {"enabled": false, "auto_cast": false, "loss_scale": 0, "loss_scale_window": 1000,
             "initial_scale_power": 16, "hysteresis": 2, "consecutive_hysteresis": false, "min_loss_scale": 1},
    "bf16": {"enabled": true},
    "optimizer": {"type": "AdamW",
                  "params": {"lr": 3e-5, "betas": [0.8, 0.999], "eps": 1e-8, "weight_decay": 3e-7,
                             "torch_adam": true}},
    "scheduler": {"type": "WarmupLR",
                  "params": {"warmup_min_lr": 0, "warmup_max_lr": 3e-5, "warmup_num_steps": 500}},
    "zero_optimization": {"stage": 2, "allgather_partitions": true, "allgather_bucket_size": 2e8,
                          "overlap_comm": true, "reduce_scatter": true, "reduce_bucket_size": 2e8,
                          "contiguous_gradients": true, "cpu_offload": false, "round_robin_gradients": true,
                          "offload_optimizer": {"device": "none", "pin_memory": true},
                          "ignore_unused_parameters": true},
    "gradient_clipping": 1.0,
    "prescale_gradients": false,
    "gradient_predivide_factor": 1.0,
    "communication_data_type": "fp32",
    "data_types": {"grad_accum_dtype": "fp32"},
    "zero_allow_untested_optimizer": true,
    "steps_per_print": 2000,
    "wall_clock_breakdown": false
  })");
  RunConfig expected;
  expected.train_batch_size = 24;
  expected.micro_batch_size = 8;
  expected.accumulation_steps = 3;
  expected.storage = DType::kBF16;
  expected.zero_stage = 2;
  expected.reduce_bucket_elems = 200'000'000;
  expected.optimizer = OptimizerKind::kAdamW;
  expected.params = {3e-5, 0.8, 0.999, 1e-8, 3e-7};
  expected.schedule = {Schedule::Kind::kWarmup, 0, 3e-5, 500};
  expected.gradient_clipping = 1;
  expected.hints = {{"steps_per_print", "2000"},
                    {"wall_clock_breakdown", "false"},
                    {"zero_optimization.allgather_bucket_size", "200000000"},
                    {"zero_optimization.round_robin_gradients", "true"}};
  EXPECT_EQ(config, expected) << ToJson(config);
}

// As Hugging Face's users have it: sizes follow from the model.
TEST(UserConfig, OfZero3InBf16) {
  const std::string json = R"({
    "train_micro_batch_size_per_gpu": 2,
    "gradient_accumulation_steps": "auto",
    "train_batch_size": 16,
    "mesh": {"data": 4},
    "bf16": {"enabled": true},
    "fp16": {"enabled": false},
    "optimizer": {"type": "Adam", "params": {"lr": 0.001, "betas": [0.9, 0.95], "bias_correction": true}},
    "scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 1e4, "warmup_num_steps": 1e2}},
    "zero_optimization": {"stage": 3,
                          "offload_optimizer": {"device": "none", "pin_memory": true},
                          "offload_param": {"device": "none", "nvme_path": "/local_nvme", "buffer_count": 5},
                          "overlap_comm": true, "contiguous_gradients": true, "sub_group_size": 1e9,
                          "reduce_bucket_size": "auto", "stage3_prefetch_bucket_size": "auto",
                          "stage3_param_persistence_threshold": "auto", "stage3_max_live_parameters": 1e9,
                          "stage3_max_reuse_distance": 1e9, "stage3_gather_16bit_weights_on_model_save": true,
                          "zero_hpz_partition_size": 1, "zero_quantized_weights": false,
                          "zero_quantized_gradients": false},
    "gradient_clipping": 1.0,
    "activation_checkpointing": {"partition_activations": false, "cpu_checkpointing": false,
                                 "contiguous_memory_optimization": false, "number_checkpoints": null,
                                 "synchronize_checkpoint_boundary": false, "profile": false},
    "flops_profiler": {"enabled": false, "profile_step": 1, "module_depth": -1, "top_modules": 1, "detailed": true,
                       "output_file": null},
    "comms_logger": {"enabled": false, "verbose": false, "prof_all": true, "debug": false},
    "tensorboard": {"enabled": false, "output_path": "logs", "job_name": "run"},
    "wandb": {"enabled": false},
    "csv_monitor": {"enabled": false},
    "elasticity": {"enabled": false, "max_train_batch_size": 2000, "micro_batch_sizes": [2, 4, 6]},
    "aio": {"block_size": 1048576, "queue_depth": 8, "thread_count": 1, "single_submit": false,
            "overlap_events": true},
    "autotuning": {"enabled": false, "fast": true},
    "steps_per_print": 10,
    "log_level": "warning"
  })";
  const RunConfig config = ParseRunConfig(JsonValue::Parse(json, "ds_config.json"), 768);
  RunConfig expected;
  expected.train_batch_size = 16;
  expected.micro_batch_size = 2;
  expected.accumulation_steps = 2;
  expected.data_degree = 4;
  expected.storage = DType::kBF16;
  expected.zero_stage = 3;
  expected.reduce_bucket_elems = 589'824;
  expected.prefetch_bucket_elems = 530'841;
  expected.persistence_threshold_elems = 7'680;
  expected.optimizer = OptimizerKind::kAdamW;  // as Adam is, unless its decay is coupled
  expected.params = {1e-3, 0.9, 0.95};
  expected.schedule.kind = Schedule::Kind::kWarmupDecay;
  expected.schedule.warmup_num_steps = 100;
  expected.schedule.total_num_steps = 10'000;
  expected.gradient_clipping = 1;
  expected.hints = {{"log_level", "\"warning\""},
                    {"steps_per_print", "10"},
                    {"zero_optimization.stage3_max_reuse_distance", "1000000000"},
                    {"zero_optimization.sub_group_size", "1000000000"}};
  EXPECT_EQ(config, expected) << ToJson(config);
  EXPECT_EQ(ParseRunConfig(ToJson(config), "case.json"), config);
}

TEST(UserConfig, OfZero1InFp32WithACycle) {
  const RunConfig config = Parse(R"({
    "train_batch_size": 8,
    "optimizer": {"type": "SGD", "params": {"lr": 0.01, "momentum": 0.9, "weight_decay": 0, "dampening": 0}},
    "scheduler": {"type": "OneCycle",
                  "params": {"cycle_first_step_size": 1000, "cycle_first_stair_count": 500,
                             "cycle_second_step_size": 1000, "cycle_second_stair_count": 500,
                             "decay_step_size": 1000, "cycle_min_lr": 0.0001, "cycle_max_lr": 0.001,
                             "decay_lr_rate": 0.001, "cycle_min_mom": 0.85, "cycle_max_mom": 0.99,
                             "decay_mom_rate": 0.0, "last_batch_iteration": -1}},
    "zero_optimization": {"stage": 1, "reduce_bucket_size": 5e8, "allgather_bucket_size": 5e8,
                          "elastic_checkpoint": false, "load_from_fp32_weights": true},
    "fp16": {"enabled": false},
    "bf16": {"enabled": false},
    "amp": {"enabled": false, "opt_level": "O1"},
    "sparse_gradients": false,
    "dump_state": true,
    "memory_breakdown": false,
    "checkpoint": {"load_universal": false, "use_node_local_storage": false},
    "curriculum_learning": {"enabled": false},
    "progressive_layer_drop": {"enabled": false, "theta": 0.5, "gamma": 0.001},
    "compile": {"deepcompile": false}
  })");
  RunConfig expected;
  expected.train_batch_size = 8;
  expected.micro_batch_size = 8;
  expected.zero_stage = 1;
  expected.optimizer = OptimizerKind::kSgd;
  expected.params.lr = 0.01;
  expected.params.momentum = 0.9;
  expected.schedule.kind = Schedule::Kind::kOneCycle;
  Cycle& cycle = expected.schedule.cycle;
  cycle.min_lr = 1e-4;
  cycle.max_lr = 1e-3;
  cycle.decay_lr_rate = 1e-3;
  cycle.first_steps = cycle.second_steps = cycle.decay_steps = 1000;
  cycle.first_stairs = cycle.second_stairs = 500;
  cycle.min_momentum = 0.85;
  cycle.max_momentum = 0.99;
  expected.hints = {
      {"dump_state", "true"}, {"memory_breakdown", "false"}, {"zero_optimization.allgather_bucket_size", "500000000"}};
  EXPECT_EQ(config, expected) << ToJson(config);
}

}  // namespace
}  // namespace plumbline::contract
