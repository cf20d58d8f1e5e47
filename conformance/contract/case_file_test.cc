// SPDX-License-Identifier: Apache-2.0
// A case folder written and read back, and each way in which one can be wrong, with the message that names it.
#include "conformance/contract/case_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "conformance/contract/file_io.h"
#include "conformance/contract/tensor_file.h"
#include "conformance/contract/testing/error_message.h"
#include "conformance/contract/testing/temporary_folder.h"

namespace plumbline::contract {
namespace {

using testing::ErrorMessage;
using testing::TemporaryFolder;

ExactSpec Model() {
  ExactSpec model;
  model.layers = 1;
  model.width = 6;
  model.heads = 3;
  model.kv_heads = 1;
  model.positions = 5;
  model.hidden = 7;
  model.vocab = 11;
  return model;
}

// A case of 2 steps with a batch of 3; values differ from element to element but are of no meaning.
CaseData Data(OptimizerKind optimizer = OptimizerKind::kModularMomentum) {
  CaseData data;
  data.spec.id = "exact-\"small\"/data1";
  data.spec.model = Model();
  data.spec.config.train_batch_size = 3;
  data.spec.config.micro_batch_size = 3;
  data.spec.config.optimizer = optimizer;
  data.spec.seed = ~uint64_t{0} - 5;
  data.spec.steps = 2;
  data.spec.timeout_s = 2.5;
  data.parameters = Parameters(data.spec.model);
  for (const ParameterSpec& parameter : data.parameters) {
    ParameterState& state = data.state.emplace_back();
    for (int64_t i = 0; i < parameter.numel(); ++i) {
      state.weight.push_back((i + parameter.tensor_id) % 3 - 1);
      state.master.push_back(i % 24);
      if (optimizer == OptimizerKind::kModularMomentum) state.moment.push_back(i % 29 - 14);
    }
  }
  data.batches = {2, 3, 5, {}, {}, {}};
  for (int32_t i = 0; i < 2 * 3 * 5; ++i) {
    data.batches.tokens.push_back(i % 11);
    data.batches.labels.push_back((i + 1) % 11);
    data.batches.loss_weights.push_back(i % 3 == 0 ? 0 : 8);
  }
  return data;
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

std::string ReadMessage(const std::filesystem::path& folder) {
  return ErrorMessage(ErrorCode::kInvalidArgument, [&] { ReadCase(folder); });
}

// The message for a folder in which one tensor file was changed.
std::string MessageAfter(const std::string& file_name, const std::function<void(TensorFile&)>& change,
                         OptimizerKind optimizer = OptimizerKind::kModularMomentum) {
  const TemporaryFolder folder;
  WriteCase(folder.path(), Data(optimizer));
  TensorFile file = ReadTensorFile(folder / file_name);
  change(file);
  WriteTensorFile(folder / file_name, file);
  return ReadMessage(folder.path());
}

HostTensor& Find(TensorFile& file, const std::string& name) {
  for (HostTensor& tensor : file.tensors) {
    if (tensor.name == name) return tensor;
  }
  ADD_FAILURE() << "no tensor " << name;
  return file.tensors.at(0);
}

// The message for the case file in which one text was replaced by another.
std::string JsonMessage(const std::string& from, const std::string& to, ErrorCode code = ErrorCode::kInvalidArgument) {
  CaseData data = Data();
  data.spec.dump_steps = {0, 1};
  data.spec.perturbation = Perturbation{Perturbation::Kind::kMoment, "pos.weight", 29, 1, -1};
  const std::string json = Replaced(ToJson(data.spec), from, to);
  return ErrorMessage(code, [&] { ParseCase(json, "case.json"); });
}

TEST(Case, RoundTripsAWholeFolder) {
  for (OptimizerKind optimizer : {OptimizerKind::kModularMomentum, OptimizerKind::kModularSgd}) {
    const TemporaryFolder folder;
    const CaseData data = Data(optimizer);
    WriteCase(folder.path(), data);
    const CaseData read = ReadCase(folder.path());
    EXPECT_EQ(read.spec, data.spec);
    ASSERT_EQ(read.parameters.size(), data.parameters.size());
    ASSERT_EQ(read.state.size(), data.state.size());
    for (size_t i = 0; i < data.state.size(); ++i) {
      EXPECT_EQ(read.parameters[i].name, data.parameters[i].name);
      EXPECT_EQ(read.state[i].weight, data.state[i].weight);
      EXPECT_EQ(read.state[i].master, data.state[i].master);
      EXPECT_EQ(read.state[i].moment, data.state[i].moment);
    }
    EXPECT_EQ(read.batches.tokens, data.batches.tokens);
    EXPECT_EQ(read.batches.labels, data.batches.labels);
    EXPECT_EQ(read.batches.loss_weights, data.batches.loss_weights);
    EXPECT_EQ(read.batches.steps, 2);
    EXPECT_EQ(read.batches.batch, 3);
    EXPECT_EQ(read.batches.positions, 5);
  }
}

// What an engine does about a value that is not finite is asked by giving it one.
TEST(Case, RoundTripsARealFamilyWithAnInfinity) {
  Gpt2Spec model;
  model.layers = 1;
  model.width = 4;
  model.heads = 2;
  model.positions = 5;
  model.hidden = 3;
  model.vocab = 11;
  model.frozen = {"pos.weight"};
  CaseData data = Data();
  data.state.clear();
  data.spec.model = model;
  data.spec.config.optimizer = OptimizerKind::kAdamW;
  data.spec.first_step = 7;
  data.num_updates = 6;
  data.parameters = Parameters(data.spec.model);
  for (const ParameterSpec& parameter : data.parameters) {
    RealParameterState& state = data.real_state.emplace_back();
    state.master.assign(static_cast<size_t>(parameter.numel()), 0.25f * static_cast<float>(parameter.tensor_id));
    if (parameter.frozen) continue;
    state.moment.assign(state.master.size(), 0.5f);
    state.second_moment.assign(state.master.size(), 2.0f);
  }
  data.real_state[0].master[5] = HUGE_VALF;
  data.spec.config.adaptive_clipping.kind = AdaptiveClipping::Kind::kHistory;
  data.norm_history = {5, 1.0 / 3, 1e-17 / 3};
  data.spec.config.storage = DType::kF16;
  data.spec.config.loss_scale = 0;
  data.loss_scaler = {0x1p40, 9, 7, 2};
  const TemporaryFolder folder;
  WriteCase(folder.path(), data);
  const CaseData read = ReadCase(folder.path());
  EXPECT_EQ(read.spec, data.spec);
  EXPECT_EQ(read.num_updates, 6);
  EXPECT_EQ(read.norm_history, data.norm_history);
  EXPECT_EQ(read.loss_scaler, data.loss_scaler);
  ASSERT_EQ(read.real_state.size(), data.real_state.size());
  for (size_t i = 0; i < read.real_state.size(); ++i) {
    EXPECT_EQ(read.real_state[i].master, data.real_state[i].master);
    EXPECT_EQ(read.real_state[i].moment, data.real_state[i].moment);
    EXPECT_EQ(read.real_state[i].second_moment, data.real_state[i].second_moment);
  }
}

// One layer, lengths 5, 1, 3 and 2, 5, 4.
CaseData LlamaData() {
  LlamaSpec model;
  model.layers = 1;
  model.width = 4;
  model.heads = 2;
  model.kv_heads = 1;
  model.positions = 5;
  model.hidden = 3;
  model.vocab = 11;
  model.rope_theta = 500000;
  model.unequal_lengths = true;
  model.dropout = 0.25;
  model.norm_epsilon = 1e-6;
  model.initializer_range = 0.1;
  model.unused = true;
  model.frozen = {"norm.weight"};
  CaseData data = Data();
  data.state.clear();
  data.spec.model = model;
  data.spec.config.optimizer = OptimizerKind::kSgd;
  data.parameters = Parameters(data.spec.model);
  for (const ParameterSpec& parameter : data.parameters) {
    data.real_state.emplace_back().master.assign(static_cast<size_t>(parameter.numel()), 0.25f);
  }
  data.batches.lengths = {5, 1, 3, 2, 5, 4};
  for (int64_t i = 0; i < 2 * 3 * 5; ++i) {
    if (i % 5 >= data.batches.lengths[static_cast<size_t>(i / 5)]) {
      data.batches.loss_weights[static_cast<size_t>(i)] = 0;
    }
  }
  return data;
}

TEST(Case, RoundTripsSamplesOfUnequalLengths) {
  const TemporaryFolder folder;
  const CaseData data = LlamaData();
  WriteCase(folder.path(), data);
  const CaseData read = ReadCase(folder.path());
  EXPECT_EQ(read.spec, data.spec);
  EXPECT_EQ(read.batches.lengths, data.batches.lengths);
  EXPECT_EQ(read.batches.loss_weights, data.batches.loss_weights);
  EXPECT_EQ(read.batches.Length(1, 2), 4);
  EXPECT_EQ(Data().batches.Length(1, 2), 5) << "without lengths all samples are whole";
}

TEST(ReadCase, RefusesLengthsThatAreWrongMissingOrNotAskedFor) {
  const auto message = [](const std::function<void(CaseData&)>& change) {
    const TemporaryFolder folder;
    CaseData data = LlamaData();
    change(data);
    WriteCase(folder.path(), data);
    return ReadMessage(folder.path());
  };
  EXPECT_EQ(message([](CaseData& data) { data.batches.lengths[4] = 0; }),
            "batches.safetensors: lengths element 4 is 0; allowed: 1 to 5");
  EXPECT_EQ(message([](CaseData& data) { data.batches.lengths[4] = 6; }),
            "batches.safetensors: lengths element 4 is 6; allowed: 1 to 5");
  EXPECT_EQ(message([](CaseData& data) { data.batches.loss_weights[6] = 8; }),
            "batches.safetensors: loss_weights element 6 is 8; allowed: 0, as it is padding");
  EXPECT_NE(message([](CaseData& data) { data.batches.lengths.clear(); }).find("\"lengths\" is missing"),
            std::string::npos);
  EXPECT_NE(message([](CaseData& data) { data.spec.model.llama().unequal_lengths = false; }).find("\"lengths\""),
            std::string::npos);
}

TEST(CopySample, TakesTokensLabelsWeightsAndLength) {
  const Batches source = LlamaData().batches;
  Batches target = source;
  CopySample(source, {0, 2}, target, {1, 0});
  EXPECT_EQ(target.Length(1, 0), 3);
  EXPECT_EQ(target.Length(0, 2), 3);
  EXPECT_EQ(target.Length(1, 1), 5);
  for (int64_t t = 0; t < 5; ++t) {
    const auto to = static_cast<size_t>(target.Index(1, 0, t)), from = static_cast<size_t>(source.Index(0, 2, t));
    EXPECT_EQ(target.tokens[to], source.tokens[from]);
    EXPECT_EQ(target.labels[to], source.labels[from]);
    EXPECT_EQ(target.loss_weights[to], source.loss_weights[from]);
  }
}

TEST(Case, WritesTheTypesShapesAndOrderOfTheDocument) {
  const TemporaryFolder folder;
  WriteCase(folder.path(), Data());
  const TensorFile weights = ReadTensorFile(folder / "weights.safetensors");
  ASSERT_EQ(weights.tensors.size(), 8u);
  EXPECT_EQ(weights.tensors[0].name, "embed.weight");
  EXPECT_EQ(weights.tensors[3].name, "layers.0.attn.k");
  EXPECT_EQ(weights.tensors[3].shape, (std::vector<int64_t>{6, 2}));
  EXPECT_EQ(weights.tensors[3].dtype, DType::kF32);
  const TensorFile state = ReadTensorFile(folder / "state.safetensors");
  EXPECT_EQ(state.tensors.size(), 16u);
  EXPECT_EQ(state.metadata, (std::map<std::string, std::string>{{"step", "0"}}));
  EXPECT_EQ(state.Find("master/layers.0.mlp.up").shape, (std::vector<int64_t>{6, 7}));
  EXPECT_EQ(state.Find("moment/layers.0.mlp.up").dtype, DType::kI64);
  const TensorFile batches = ReadTensorFile(folder / "batches.safetensors");
  ASSERT_EQ(batches.tensors.size(), 3u);
  for (const HostTensor& tensor : batches.tensors) {
    EXPECT_EQ(tensor.dtype, DType::kI32);
    EXPECT_EQ(tensor.shape, (std::vector<int64_t>{2, 3, 5}));
  }
}

TEST(Case, RoundTripsEveryFieldOfItsJson) {
  Case spec = Data().spec;
  spec.model.exact().weight_bound = 2;
  spec.model.exact().fold_bound = 3;
  spec.model.exact().gradient_fold_bound = 5;
  spec.model.exact().dropout = true;
  spec.config.storage = DType::kBF16;
  spec.dump_steps = {1, 0};
  spec.phase_marks = true;
  spec.timeout_s = 86400;
  EXPECT_EQ(ParseCase(ToJson(spec), "case.json"), spec);
  spec.id = "";
  spec.seed = 0;
  spec.timeout_s = 1e-3;
  using Kind = Perturbation::Kind;
  for (Kind kind : {Kind::kGradient, Kind::kMoment, Kind::kMaster, Kind::kWeight}) {
    spec.perturbation = Perturbation{kind, "layers.0.mlp.down", 41, 1, -1};
    EXPECT_EQ(ParseCase(ToJson(spec), "case.json"), spec) << Name(kind);
  }
  spec.perturbation = Perturbation{Kind::kCounter, "", 0, 0, 1'000'000};
  EXPECT_EQ(ParseCase(ToJson(spec), "case.json"), spec);
  EXPECT_EQ(ToJson(ParseCase(ToJson(spec), "case.json")), ToJson(spec));
}

TEST(Case, LeavesOutWhatMayBeAbsent) {
  const Case spec = ParseCase(R"({"protocol": 1, "id": "x", "family": "exact",  // as small as it gets
      "model": {"layers": 1, "width": 1, "heads": 1, "kv_heads": 1, "positions": 1, "hidden": 1, "vocab": 2,
                "weight_bound": 1, "fold_bound": 2, "gradient_fold_bound": 4, "dropout": false},
      "config": {"train_batch_size": 1, "optimizer": {"type": "ModularSGD"}},
      "seed": 18446744073709551615, "steps": 1, "timeout_s": 60})",
                              "case.json");
  EXPECT_EQ(spec.seed, ~uint64_t{0});
  EXPECT_TRUE(spec.dump_steps.empty());
  EXPECT_FALSE(spec.perturbation.has_value());
  EXPECT_FALSE(spec.phase_marks);
}

TEST(Case, NamesEachFieldThatIsWrong) {
  const struct {
    std::string from, to, message;
  } kTable[] = {
      {"\"protocol\": 1", "\"protocol\": 2", "case.json: protocol is 2; allowed: an integer from 1 to 1"},
      {"\"family\": \"exact\"", "\"family\": \"gpt3\"", "case.json: family is \"gpt3\"; allowed: exact, gpt2, llama"},
      {"\"steps\": 2", "\"steps\": 0", "case.json: steps is 0; allowed: an integer from 1 to 1000000"},
      {"\"steps\": 2", "\"stps\": 2", "case.json: unknown key \"stps\"; did you mean \"steps\"?"},
      {"\"steps\": 2, ", "", "case.json: steps is missing; allowed: an integer from 1 to 1000000"},
      {"\"seed\": 18446744073709551610", "\"seed\": -1",
       "case.json: seed is -1; allowed: an integer from 0 to 18446744073709551615"},
      {"\"timeout_s\": 2.5", "\"timeout_s\": 0", "case.json: timeout_s is 0; allowed: seconds above 0, at most 86400"},
      {"\"timeout_s\": 2.5", "\"timeout_s\": -1",
       "case.json: timeout_s is -1; allowed: seconds above 0, at most 86400"},
      {"\"timeout_s\": 2.5", "\"timeout_s\": 86400.5",
       "case.json: timeout_s is 86400.5; allowed: seconds above 0, at most 86400"},
      {"\"timeout_s\": 2.5", "\"timeout_s\": \"2\"",
       "case.json: timeout_s is \"2\"; allowed: seconds above 0, at most 86400"},
      {", \"timeout_s\": 2.5", "", "case.json: timeout_s is missing; allowed: seconds above 0, at most 86400"},
      {"\"family\": \"exact\",", "", "case.json: family is missing; allowed: exact, gpt2, llama"},
      {"\"seed\": 18446744073709551610, ", "",
       "case.json: seed is missing; allowed: an integer from 0 to 18446744073709551615"},
      {"[0, 1]", "[0, 2]", "case.json: dump_steps[1] is 2; allowed: an integer from 0 to 1"},
      {"[0, 1]", "[-1, 1]", "case.json: dump_steps[0] is -1; allowed: an integer from 0 to 1"},
      {"[0, 1]", "3", "case.json: dump_steps is 3; allowed: an array"},
      {"\"phase_marks\": false", "\"phase_marks\": 0", "case.json: phase_marks is 0; allowed: true or false"},
      {"\"heads\": 3", "\"heads\": 4", "model.width is 6; allowed: a multiple of model.heads = 4"},
      {"\"hidden\": 7", "\"hidden\": 0", "model.hidden is 0; allowed: an integer from 1 to 1048576"},
      {"\"hidden\": 7", "\"hidden\": 7.5", "case.json: model.hidden is 7.5; allowed: an integer"},
      {"\"hidden\": 7", "\"hiden\": 7", "case.json: model: unknown key \"hiden\"; did you mean \"hidden\"?"},
      {"\"hidden\": 7, ", "", "case.json: model.hidden is missing; allowed: an integer"},
      {"\"dropout\": false", "\"dropout\": 0.1", "case.json: model.dropout is 0.1; allowed: true or false"},
      {"\"train_batch_size\": 3", "\"train_batch_size\": 4",
       "case.json: config: train_batch_size must be train_micro_batch_size_per_gpu x gradient_accumulation_steps x "
       "mesh.data; 4 is not 3 x 1 x 1"},
      {"\"mesh\": {", "\"mash\": {", "case.json: config: unknown key \"mash\"; did you mean \"mesh\"?"},
      {"\"kind\": \"moment\"", "\"kind\": \"weights\"",
       "case.json: perturbation.kind is \"weights\"; allowed: gradient, moment, master, weight, counter"},
      {"\"tensor\": \"pos.weight\"", "\"tensor\": \"pos.weigth\"",
       "case.json: perturbation.tensor is \"pos.weigth\"; allowed: a parameter's name"},
      {"\"tensor\": \"pos.weight\"", "\"tensor\": \"layers.1.attn.q\"",
       "case.json: perturbation.tensor is \"layers.1.attn.q\"; allowed: a parameter's name"},
      {"\"tensor\": \"pos.weight\", ", "", "case.json: perturbation.tensor is missing; allowed: a string"},
      {"\"index\": 29", "\"index\": 30", "case.json: perturbation.index is 30; allowed: an integer from 0 to 29"},
      {"\"index\": 29", "\"index\": -1", "case.json: perturbation.index is -1; allowed: an integer, at least 0"},
      {"\"step\": 1", "\"step\": 2", "case.json: perturbation.step is 2; allowed: an integer from 0 to 1"},
      {"\"delta\": -1", "\"delta\": 1000001",
       "case.json: perturbation.delta is 1000001; allowed: an integer from -1000000 to 1000000"},
      {"\"delta\": -1", "\"delta\": -1, \"rank\": 0",
       "case.json: perturbation: unknown key \"rank\"; allowed: kind, tensor, index, step, delta"},
      {"{\"kind\": \"moment\", \"tensor\": \"pos.weight\", \"index\": 29",
       "{\"kind\": \"counter\", \"tensor\": \"pos.weight\"",
       "case.json: perturbation is {\"delta\":-1,\"kind\":\"counter\",\"step\":1,\"tensor\":\"pos.weight\"}; "
       "allowed: no tensor and no index with kind counter"},
      {"{\"kind\": \"moment\", \"tensor\": \"pos.weight\", ", "{\"kind\": \"counter\", ",
       "case.json: perturbation is {\"delta\":-1,\"index\":29,\"kind\":\"counter\",\"step\":1}; "
       "allowed: no tensor and no index with kind counter"},
      {"\"type\": \"ModularMomentum\"", "\"type\": \"ModularSGD\"",
       "case.json: perturbation.kind is \"moment\"; allowed: another kind, as ModularSGD has no moment"},
  };
  for (const auto& [from, to, message] : kTable) EXPECT_EQ(JsonMessage(from, to), message) << to;
}

TEST(Case, NamesTheOptimizersOfItsFamilyOnly) {
  const auto message = [](const std::string& family, const std::string& type) {
    return ErrorMessage(ErrorCode::kInvalidArgument, [&] {
      ParseCase(R"({"protocol": 1, "id": "x", "seed": 1, "steps": 1, "timeout_s": 1, "family": ")" + family +
                    R"(", "model": {"layers": 1, "width": 2, "heads": 1, )" +
                    (family == "exact" ? R"("kv_heads": 1, "weight_bound": 1, "fold_bound": 2,
                                            "gradient_fold_bound": 10, "dropout": false, )"
                                       : R"("tied_head": true, )") +
                    R"("positions": 2, "hidden": 2, "vocab": 3},
                      "config": {"train_batch_size": 1, "optimizer": {"type": )" +
                    type + "}}}",
                "case.json");
    });
  };
  for (const char* type : {"\"AdamW\"", "\"Adam\"", "\"modularsgd\"", "1"}) {
    EXPECT_EQ(message("exact", type), "case.json: config.optimizer.type is " + std::string(type) +
                                          "; allowed: ModularMomentum, ModularSGD in family exact");
  }
  for (const char* type : {"\"ModularSGD\"", "\"Adagrad\"", "\"adamw\"", "null"}) {
    EXPECT_EQ(message("gpt2", type), "case.json: config.optimizer.type is " + std::string(type) +
                                         "; allowed: AdamW, SGD, Adam, Lion, Lamb in family gpt2");
  }
}

TEST(Case, PassesUnsupportedKeysOfTheConfigOn) {
  EXPECT_EQ(JsonMessage("\"bf16\": {", "\"prescale_gradients\": true, \"bf16\": {", ErrorCode::kUnsupported),
            "case.json: config.prescale_gradients is true, which is known but not built yet; supported: false");
}

TEST(Case, ResolvesSizesOfItsConfigFromItsModel) {
  const CaseData data = Data();
  std::string json = ToJson(data.spec);
  json = Replaced(json, "\"reduce_bucket_size\": " + std::to_string(data.spec.config.reduce_bucket_elems),
                  "\"reduce_bucket_size\": \"auto\"");
  const Case parsed = ParseCase(json, "case.json");
  EXPECT_EQ(parsed.config.reduce_bucket_elems, data.spec.model.width() * data.spec.model.width());
  EXPECT_EQ(ParseCase(ToJson(parsed), "case.json"), parsed);
}

// What such an entry sets would be lost without a word.
TEST(Case, RefusesAGroupThatNoParameterBelongsTo) {
  const auto message = [](const std::vector<std::string>& patterns) {
    Case spec = LlamaData().spec;
    for (const std::string& pattern : patterns) spec.config.groups.push_back({pattern, 0.5, std::nullopt});
    try {
      ParseCase(ToJson(spec), "case.json");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  const std::string allowed = "; allowed: a pattern that fits a parameter of the model which no entry before it fits";
  EXPECT_EQ(message({"layers.0.*", "norm.weight", "[!l]*"}), "nothing") << "one that is frozen belongs to a group too";
  EXPECT_EQ(message({"layers.1.*"}), "case.json: config.param_groups[0].match is \"layers.1.*\"" + allowed);
  EXPECT_EQ(message({"embed.*", "bias"}), "case.json: config.param_groups[1].match is \"bias\"" + allowed);
  EXPECT_EQ(message({"*", "embed.*"}), "case.json: config.param_groups[1].match is \"embed.*\"" + allowed);
}

TEST(Case, DemandsAStageForEachLayerOrForNone) {
  Case spec = LlamaData().spec;
  ASSERT_EQ(spec.model.layers(), 1);
  spec.config.layer_stages = {3};
  EXPECT_EQ(ParseCase(ToJson(spec), "case.json"), spec);
  spec.config.layer_stages = {3, 0};
  EXPECT_EQ(ErrorMessage(ErrorCode::kInvalidArgument, [&] { ParseCase(ToJson(spec), "case.json"); }),
            "case.json: config.zero_optimization.layer_stages has 2 entries; allowed: one for each of the 1 layers of "
            "the model");
}

TEST(Case, KeepsTheHintsOfItsConfig) {
  Case spec = Data().spec;
  spec.config.hints = {{"wall_clock_breakdown", "true"}, {"zero_optimization.sub_group_size", "7"}};
  EXPECT_EQ(ParseCase(ToJson(spec), "case.json"), spec);
}

TEST(ReadCase, NamesAMissingFile) {
  for (const char* name : {"case.json", "weights.safetensors", "state.safetensors", "batches.safetensors"}) {
    const TemporaryFolder folder;
    WriteCase(folder.path(), Data());
    std::filesystem::remove(folder / name);
    EXPECT_EQ(ReadMessage(folder.path()), (folder / name).string() + ": cannot be read: No such file or directory");
  }
}

TEST(ReadCase, NamesTheFileAndTheTensorThatIsMissing) {
  EXPECT_EQ(MessageAfter("weights.safetensors", [](auto& file) { file.tensors.erase(file.tensors.begin() + 1); }),
            "weights.safetensors: tensor \"pos.weight\" is missing; allowed: F32 [5, 6]");
  EXPECT_EQ(MessageAfter("state.safetensors",
                         [](auto& file) {
                           file.tensors.erase(std::find_if(file.tensors.begin(), file.tensors.end(), [](auto& tensor) {
                             return tensor.name == "moment/pos.weight";
                           }));
                         }),
            "state.safetensors: tensor \"moment/pos.weight\" is missing; allowed: I64 [5, 6]");
  EXPECT_EQ(MessageAfter("batches.safetensors", [](auto& file) { file.tensors.pop_back(); }),
            "batches.safetensors: tensor \"loss_weights\" is missing; allowed: I32 [2, 3, 5]");
  EXPECT_EQ(MessageAfter("batches.safetensors", [](auto& file) { file.tensors.erase(file.tensors.begin()); }),
            "batches.safetensors: tensor \"tokens\" is missing; allowed: I32 [steps, B, T]");
}

TEST(ReadCase, RefusesTensorsThatBelongToNoParameter) {
  const HostTensor extra = MakeI64("extra", {1}, {{0}});
  EXPECT_EQ(MessageAfter("weights.safetensors", [&](auto& file) { file.tensors.push_back(extra); }),
            "weights.safetensors: tensor \"extra\" is not one of this case");
  EXPECT_EQ(MessageAfter("state.safetensors", [&](auto& file) { file.tensors.push_back(extra); }),
            "state.safetensors: tensor \"extra\" is not one of this case");
  EXPECT_EQ(MessageAfter(
                "state.safetensors",
                [](auto& file) {
                  file.tensors.push_back(MakeI64("moment/pos.weight", {5, 6}, std::vector<int64_t>(30)));
                },
                OptimizerKind::kModularSgd),
            "state.safetensors: tensor \"moment/pos.weight\" is not one of this case");
  EXPECT_EQ(MessageAfter("batches.safetensors", [&](auto& file) { file.tensors.push_back(extra); }),
            "batches.safetensors: tensor \"extra\" is not one of this case");
}

TEST(ReadCase, RefusesAnotherShapeOrType) {
  // The transposed shape has the same number of elements.
  EXPECT_EQ(MessageAfter("weights.safetensors",
                         [](auto& file) {
                           Find(file, "layers.0.attn.k").shape = {2, 6};
                         }),
            "weights.safetensors: tensor \"layers.0.attn.k\" is F32 [2, 6]; allowed: F32 [6, 2]");
  EXPECT_EQ(MessageAfter("weights.safetensors", [](auto& file) { Find(file, "layers.0.attn.k").shape = {12}; }),
            "weights.safetensors: tensor \"layers.0.attn.k\" is F32 [12]; allowed: F32 [6, 2]");
  EXPECT_EQ(MessageAfter("weights.safetensors",
                         [](auto& file) {
                           Find(file, "pos.weight") = MakeI64("pos.weight", {5, 6}, std::vector<int64_t>(30));
                         }),
            "weights.safetensors: tensor \"pos.weight\" is I64 [5, 6]; allowed: F32 [5, 6]");
  EXPECT_EQ(MessageAfter("state.safetensors",
                         [](auto& file) {
                           Find(file, "master/layers.0.mlp.up").shape = {7, 6};
                         }),
            "state.safetensors: tensor \"master/layers.0.mlp.up\" is I64 [7, 6]; allowed: I64 [6, 7]");
  EXPECT_EQ(
      MessageAfter("state.safetensors",
                   [](auto& file) {
                     Find(file, "moment/pos.weight") = MakeI32("moment/pos.weight", {5, 6}, std::vector<int32_t>(30));
                   }),
      "state.safetensors: tensor \"moment/pos.weight\" is I32 [5, 6]; allowed: I64 [5, 6]");
}

TEST(ReadCase, NamesTheElementThatIsOutOfRange) {
  const auto set = [](const std::string& name, size_t index, int64_t value) {
    return [=](TensorFile& file) {
      std::memcpy(Find(file, name).data.data() + index * sizeof(value), &value, sizeof(value));
    };
  };
  const auto set_f32 = [](const std::string& name, size_t index, float value) {
    return [=](TensorFile& file) {
      std::memcpy(Find(file, name).data.data() + index * sizeof(value), &value, sizeof(value));
    };
  };
  EXPECT_EQ(MessageAfter("weights.safetensors", set_f32("pos.weight", 7, 2)),
            "weights.safetensors: pos.weight element 7 is 2; allowed: -1 to 1");
  EXPECT_EQ(MessageAfter("weights.safetensors", set_f32("pos.weight", 29, -2)),
            "weights.safetensors: pos.weight element 29 is -2; allowed: -1 to 1");
  EXPECT_EQ(MessageAfter("weights.safetensors", set_f32("pos.weight", 7, 0.5f)),
            "tensor \"pos.weight\": element 7 is 0.5; allowed: an integer of at most 2^53");
  EXPECT_EQ(MessageAfter("state.safetensors", set("master/pos.weight", 3, 24)),
            "state.safetensors: master/pos.weight element 3 is 24; allowed: 0 to 23");
  EXPECT_EQ(MessageAfter("state.safetensors", set("master/pos.weight", 3, -1)),
            "state.safetensors: master/pos.weight element 3 is -1; allowed: 0 to 23");
  EXPECT_EQ(MessageAfter("state.safetensors", set("moment/pos.weight", 0, 15)),
            "state.safetensors: moment/pos.weight element 0 is 15; allowed: -14 to 14");
  EXPECT_EQ(MessageAfter("state.safetensors", set("moment/pos.weight", 0, -15)),
            "state.safetensors: moment/pos.weight element 0 is -15; allowed: -14 to 14");
}

TEST(ReadCase, DemandsStepZeroOfTheState) {
  EXPECT_EQ(MessageAfter("state.safetensors", [](auto& file) { file.metadata.clear(); }),
            "state.safetensors: metadata step is missing; allowed: a count from 0 to 1099511627776 in decimal digits");
  EXPECT_EQ(MessageAfter("state.safetensors", [](auto& file) { file.metadata["step"] = "1"; }),
            "state.safetensors: metadata step is \"1\"; allowed: \"0\", as first_step says");
}

// One more can be counted without leaving int64, however many steps follow.
TEST(ReadCase, DemandsCountsAndNormsOfTheStateThatARunCanGoOnFrom) {
  const auto message = [](const std::string& key, const std::string& value) {
    const TemporaryFolder folder;
    CaseData data = LlamaData();
    data.spec.config.adaptive_clipping.kind = AdaptiveClipping::Kind::kHistory;
    data.spec.config.storage = DType::kF16;
    data.spec.config.loss_scale = 0;
    data.loss_scaler = {1024, 9, 8, 2};
    WriteCase(folder.path(), data);
    TensorFile state = ReadTensorFile(folder / "state.safetensors");
    state.metadata[key] = value;
    WriteTensorFile(folder / "state.safetensors", state);
    try {
      ReadCase(folder.path());
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  for (const std::string key : {"updates", "norm_count"}) {
    EXPECT_EQ(message(key, "1099511627776"), "nothing");
    for (const std::string value : {"1099511627777", "9223372036854775807", "9223372036854775808", "-1", "1.5", ""}) {
      EXPECT_EQ(message(key, value), "state.safetensors: metadata " + key + " is \"" + value +
                                         "\"; allowed: a count from 0 to 1099511627776 in decimal digits");
    }
  }
  EXPECT_EQ(message("norm_mean", "1e50"), "nothing");
  EXPECT_EQ(message("norm_mean", "1e51"),
            "state.safetensors: metadata norm_mean is \"1e51\"; allowed: a number from 0 to 1e50");
  EXPECT_EQ(message("norm_variance", "1e100"), "nothing");
  for (const std::string value : {"1e101", "-1", "nan", "inf"}) {
    EXPECT_EQ(message("norm_variance", value),
              "state.safetensors: metadata norm_variance is \"" + value + "\"; allowed: a number from 0 to 1e100");
  }
  EXPECT_EQ(message("loss_scale", JsonNumber(0x1p126)), "nothing");
  for (const std::string& value : {std::string("0.5"), std::string("3"), JsonNumber(0x1p127), std::string("inf")}) {
    EXPECT_EQ(message("loss_scale", value),
              "state.safetensors: metadata loss_scale is \"" + value + "\"; allowed: a power of two from 1 to 2^126");
  }
  for (const std::string value : {"9", "-2"}) {
    EXPECT_EQ(message("loss_scale_last_overflow", value),
              "state.safetensors: metadata loss_scale_last_overflow is \"" + value +
                  "\"; allowed: an integer from -1 to below loss_scale_steps");
  }
  EXPECT_EQ(message("loss_scale_hysteresis", "0"),
            "state.safetensors: metadata loss_scale_hysteresis is \"0\"; allowed: an integer from 1 to 1099511627776");
}

TEST(ReadCase, DemandsBatchesOfTheSizesThatTheCaseStates) {
  const auto message_with = [](const std::function<void(CaseData&)>& change) {
    const TemporaryFolder folder;
    CaseData data = Data();
    change(data);
    WriteCase(folder.path(), data);
    return ReadMessage(folder.path());
  };
  EXPECT_EQ(message_with([](auto& data) { data.spec.steps = 3; }),
            "batches.safetensors: steps is 2; allowed: 3, as steps says");
  EXPECT_EQ(message_with([](auto& data) { data.spec.config.train_batch_size = data.spec.config.micro_batch_size = 2; }),
            "batches.safetensors: B is 3; allowed: 2, as config.train_batch_size says");
  EXPECT_EQ(message_with([](auto& data) {
              data.batches.positions = 3;
              data.batches.batch = 5;
              data.spec.config.train_batch_size = data.spec.config.micro_batch_size = 5;
            }),
            "batches.safetensors: T is 3; allowed: 5, as model.positions says");
}

TEST(ReadCase, RefusesBatchesThatAreNoTokensOfTheVocabulary) {
  const auto set = [](const std::string& name, size_t index, int32_t value) {
    return [=](TensorFile& file) {
      std::memcpy(Find(file, name).data.data() + index * sizeof(value), &value, sizeof(value));
    };
  };
  EXPECT_EQ(MessageAfter("batches.safetensors", set("tokens", 4, 11)),
            "batches.safetensors: tokens element 4 is 11; allowed: 0 to 10");
  EXPECT_EQ(MessageAfter("batches.safetensors", set("labels", 29, -1)),
            "batches.safetensors: labels element 29 is -1; allowed: 0 to 10");
  EXPECT_EQ(MessageAfter("batches.safetensors", set("loss_weights", 0, -1)),
            "batches.safetensors: loss_weights element 0 is -1; allowed: 0 to 2147483646");
  EXPECT_EQ(MessageAfter("batches.safetensors",
                         [](auto& file) {
                           Find(file, "labels").shape = {3, 2, 5};
                         }),
            "batches.safetensors: tensor \"labels\" is I32 [3, 2, 5]; allowed: I32 [2, 3, 5]");
  EXPECT_EQ(MessageAfter("batches.safetensors", [](auto& file) { Find(file, "tokens").shape = {30}; }),
            "batches.safetensors: tokens has 1 dimensions; allowed: 3, [steps, B, T]");
  EXPECT_EQ(MessageAfter("batches.safetensors",
                         [](auto& file) {
                           Find(file, "labels") = MakeI64("labels", {2, 3, 5}, std::vector<int64_t>(30));
                         }),
            "batches.safetensors: tensor \"labels\" is I64 [2, 3, 5]; allowed: I32 [2, 3, 5]");
}

TEST(WriteCase, DemandsAStateThatFitsTheCase) {
  const TemporaryFolder folder;
  CaseData data = Data();
  data.state.pop_back();
  ErrorMessage(ErrorCode::kInternal, [&] { WriteCase(folder.path(), data); });
  data = Data();
  data.state[0].weight.pop_back();
  ErrorMessage(ErrorCode::kInternal, [&] { WriteCase(folder.path(), data); });
  data = Data();
  data.spec.config.optimizer = OptimizerKind::kModularSgd;  // which has no moments
  ErrorMessage(ErrorCode::kInternal, [&] { WriteCase(folder.path(), data); });
  data = Data(OptimizerKind::kModularSgd);
  data.spec.config.optimizer = OptimizerKind::kModularMomentum;  // and here they are missing
  ErrorMessage(ErrorCode::kInternal, [&] { WriteCase(folder.path(), data); });
}

TEST(WriteCase, SaysWhereItCannotWrite) {
  const TemporaryFolder folder;
  ErrorMessage(ErrorCode::kEnvironment, [&] { WriteCase(folder / "missing", Data()); });
}

TEST(Perturbation, HasTheNamesOfTheFormat) {
  using Kind = Perturbation::Kind;
  EXPECT_EQ(Name(Kind::kGradient), "gradient");
  EXPECT_EQ(Name(Kind::kMoment), "moment");
  EXPECT_EQ(Name(Kind::kMaster), "master");
  EXPECT_EQ(Name(Kind::kWeight), "weight");
  EXPECT_EQ(Name(Kind::kCounter), "counter");
}

}  // namespace
}  // namespace plumbline::contract
