// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/layouts.h"

#include <algorithm>
#include <functional>
#include <iterator>

#include "conformance/cases/covering.h"
#include "conformance/contract/error.h"

namespace plumbline::conformance {
namespace {

using contract::DType;
using contract::RunConfig;

constexpr int kMostCounted = 4;  // values of a tuple whose coverage is stated

// One value of an axis: how it is called in ids and records, and what it makes of a config.
struct Setting {
  std::string value;
  std::string in_id;
  std::function<void(RunConfig&, const LayoutScale&)> apply;
};

struct LayoutAxis {
  std::string name;
  std::vector<Setting> settings;
};

LayoutAxis DataAxis() {
  LayoutAxis axis{"data", {}};
  for (int64_t degree : {1, 2, 3, 4, 8}) {
    const std::string value = std::to_string(degree);
    axis.settings.push_back(
        {value, "data" + value, [degree](RunConfig& config, const LayoutScale&) { config.data_degree = degree; }});
  }
  return axis;
}

// Small parameters are persistent, and few others may be gathered at once.
void SetTightStage3(RunConfig& config, const LayoutScale& scale) {
  config.zero_stage = 3;
  config.persistence_threshold_elems = scale.projection_elems;
  config.prefetch_bucket_elems = 2 * scale.projection_elems;
  config.max_live_elems = 8 * scale.projection_elems;
}

// Nothing is persistent; two layers and the embedding may be gathered at once, one layer ahead: plans of gathers that
// differ in either limit give other books.
void SetStage3Ahead(RunConfig& config, const LayoutScale& scale) {
  config.zero_stage = 3;
  config.persistence_threshold_elems = 0;
  config.prefetch_bucket_elems = scale.layer_elems;
  config.max_live_elems = 2 * scale.layer_elems + scale.embedding_elems;
}

// Nothing is persistent or comes early, and two layers may be gathered at once: a gather that is posted before its use
// is all that can bring a peak to two layers, where the embedding is smaller than that.
void SetStrictStage3(RunConfig& config, const LayoutScale& scale) {
  config.zero_stage = 3;
  config.persistence_threshold_elems = 0;
  config.prefetch_bucket_elems = 0;
  config.max_live_elems = 2 * scale.layer_elems;
}

// Stage 3 four times: everything stays gathered within a step, or the limits of gathers bind.
LayoutAxis ZeroAxis() {
  LayoutAxis axis{"zero", {}};
  for (int64_t stage : {0, 1, 2, 3}) {
    const std::string value = std::to_string(stage);
    axis.settings.push_back({value, "zero" + value, [stage](RunConfig& config, const LayoutScale&) {
                               config.zero_stage = stage;
                               if (stage == 3) config.persistence_threshold_elems = 0;
                             }});
  }
  axis.settings.push_back({"3tight", "zero3tight", SetTightStage3});
  axis.settings.push_back({"3ahead", "zero3ahead", SetStage3Ahead});
  axis.settings.push_back({"3strict", "zero3strict", SetStrictStage3});
  return axis;
}

LayoutAxis AccumulationAxis() {
  LayoutAxis axis{"accumulation", {}};
  for (int64_t steps : {1, 3, 4}) {
    const std::string value = std::to_string(steps);
    axis.settings.push_back(
        {value, "acc" + value, [steps](RunConfig& config, const LayoutScale&) { config.accumulation_steps = steps; }});
  }
  return axis;
}

LayoutAxis BucketAxis() {
  const auto relative = [](int64_t offset) {
    return [offset](RunConfig& config, const LayoutScale& scale) {
      config.reduce_bucket_elems = scale.bucket_elems + offset;
    };
  };
  return {"bucket",
          {{"below", "bucket_below", relative(-1)},
           {"at", "bucket_at", relative(0)},
           {"above", "bucket_above", relative(1)},
           {"all", "bucket_all",
            [](RunConfig& config, const LayoutScale& scale) { config.reduce_bucket_elems = scale.trained_elems; }}}};
}

LayoutAxis OverlapAxis() {
  return {"overlap",
          {{"on", "", [](RunConfig& config, const LayoutScale&) { config.overlap_comm = true; }},
           {"off", "serial", [](RunConfig& config, const LayoutScale&) { config.overlap_comm = false; }}}};
}

// The loss scale that goes with the type is the problem's.
LayoutAxis StorageAxis() {
  LayoutAxis axis{"storage", {}};
  for (DType storage : {DType::kF32, DType::kBF16, DType::kF16}) {
    const std::string value(contract::StorageName(storage));
    axis.settings.push_back(
        {value, value, [storage](RunConfig& config, const LayoutScale&) { config.storage = storage; }});
  }
  return axis;
}

std::vector<LayoutAxis> LayoutAxes() {
  return {DataAxis(), ZeroAxis(), AccumulationAxis(), BucketAxis(), OverlapAxis(), StorageAxis()};
}

// What cannot be combined.
struct Constraint {
  std::string reason;
  std::function<bool(const RunConfig&, const LayoutScale&)> allows;
};

std::vector<Constraint> Constraints() {
  return {{"the problem's bounds leave the integers that bf16 holds",
           [](const RunConfig& config, const LayoutScale& scale) {
             return config.storage != DType::kBF16 || scale.fits_bf16;
           }},
          {"the problem's bounds leave the integers that fp16 holds",
           [](const RunConfig& config, const LayoutScale& scale) {
             return config.storage != DType::kF16 || scale.fits_fp16;
           }},
          {"the tier tries each 16-bit type on few problems",
           [](const RunConfig& config, const LayoutScale& scale) {
             return (config.storage != DType::kBF16 || scale.has_bf16) &&
                    (config.storage != DType::kF16 || scale.has_fp16);
           }},
          {"data times accumulation does not divide the batch", [](const RunConfig& config, const LayoutScale&) {
             return config.train_batch_size % (config.data_degree * config.accumulation_steps) == 0;
           }}};
}

// The problems come first, then the axes of layouts.
std::vector<Axis> AxesOf(const std::vector<Problem>& problems, const std::vector<LayoutAxis>& layouts) {
  std::vector<Axis> axes = {{"problem", {}}};
  for (const Problem& problem : problems) axes.front().values.push_back(problem.name);
  for (const LayoutAxis& layout : layouts) {
    axes.push_back({layout.name, {}});
    for (const Setting& setting : layout.settings) axes.back().values.push_back(setting.value);
  }
  return axes;
}

class Layouts {
 public:
  Layouts(const std::vector<Problem>& problems, const std::vector<LayoutScale>& scales)
      : problems_(problems), scales_(scales), layouts_(LayoutAxes()), axes_(AxesOf(problems, layouts_)) {}

  const std::vector<Axis>& axes() const { return axes_; }

  // The config of a row, but for the micro-batch.
  RunConfig ConfigOf(const Row& row) const {
    RunConfig config = ProblemOf(row).plain;
    for (size_t i = 0; i < layouts_.size(); ++i) SettingOf(row, i).apply(config, ScaleOf(row));
    StoreIn(config.storage, ProblemOf(row), config);
    return config;
  }

  std::vector<std::string> ObjectionsTo(const Row& row) const {
    const RunConfig config = ConfigOf(row);
    std::vector<std::string> objections;
    for (const Constraint& constraint : constraints_) {
      if (!constraint.allows(config, ScaleOf(row))) objections.push_back(constraint.reason);
    }
    return objections;
  }

  CaseSpec CaseOf(const Row& row) const {
    CaseSpec spec;
    spec.problem = row.front();
    spec.config = ConfigOf(row);
    spec.config.micro_batch_size =
        spec.config.train_batch_size / spec.config.data_degree / spec.config.accumulation_steps;
    spec.axes.emplace_back("problem", ProblemOf(row).name);
    std::string layout;
    for (size_t i = 0; i < layouts_.size(); ++i) {
      const Setting& setting = SettingOf(row, i);
      spec.axes.emplace_back(layouts_[i].name, setting.value);
      if (setting.in_id.empty()) continue;
      layout += (layout.empty() ? "" : "-") + setting.in_id;
    }
    spec.id = std::string(ProblemOf(row).model.family()) + "/" + ProblemOf(row).name + "/" + layout;
    return spec;
  }

 private:
  const Problem& ProblemOf(const Row& row) const { return problems_[static_cast<size_t>(row.front())]; }
  const LayoutScale& ScaleOf(const Row& row) const { return scales_[static_cast<size_t>(row.front())]; }
  const Setting& SettingOf(const Row& row, size_t layout) const {
    return layouts_[layout].settings[static_cast<size_t>(row[layout + 1])];
  }

  const std::vector<Problem>& problems_;
  const std::vector<LayoutScale>& scales_;
  std::vector<LayoutAxis> layouts_;
  std::vector<Constraint> constraints_ = Constraints();
  std::vector<Axis> axes_;
};

Row RowWith(const std::vector<Axis>& axes, const AxisValues& values) {
  contract::Check(values.size() == axes.size(), "a given layout has a value for each axis");
  Row row;
  for (size_t i = 0; i < axes.size(); ++i) {
    contract::Check(values[i].first == axes[i].name, "a given layout has the axes in their order");
    const auto found = std::find(axes[i].values.begin(), axes[i].values.end(), values[i].second);
    contract::Check(found != axes[i].values.end(), "the values of a given layout are declared");
    row.push_back(static_cast<int>(found - axes[i].values.begin()));
  }
  return row;
}

}  // namespace

CaseList CoverLayouts(std::vector<Problem> problems, const std::vector<LayoutScale>& scales, int strength,
                      const std::vector<AxisValues>& given, size_t at_least) {
  contract::Check(problems.size() == scales.size(), "each problem has a scale");
  const Layouts layouts(problems, scales);
  CaseList list;
  const Objections objections = [&](const Row& row) { return layouts.ObjectionsTo(row); };
  std::vector<Row> rows;
  for (const AxisValues& values : given) rows.push_back(RowWith(layouts.axes(), values));
  Covering covering = CoverTuples(layouts.axes(), strength, objections, rows);
  if (covering.rows.size() < at_least) {
    covering.rows = CoverTuples(layouts.axes(), strength + 1, objections, covering.rows).rows;
    contract::Check(covering.rows.size() >= at_least, "larger tuples need so many layouts");
    covering.rows.resize(at_least);
  }
  for (const Row& row : covering.rows) list.cases.push_back(layouts.CaseOf(row));
  FamilyCoverage coverage{std::string(problems.front().model.family()),
                          layouts.axes(),
                          static_cast<int64_t>(covering.rows.size()),
                          {},
                          covering.excluded};
  for (int size = 2; size <= kMostCounted; ++size) {
    coverage.tuples.push_back(CoverageOf(layouts.axes(), covering.rows, size, objections));
  }
  list.coverage.push_back(std::move(coverage));
  list.problems = std::move(problems);
  return list;
}

bool Fits(const Problem& problem, DType storage) {
  constexpr int64_t kLargestFp16Bound = 5;
  if (!problem.model.is_exact()) return true;
  const int64_t bound = problem.model.exact().weight_bound;
  if (storage == DType::kBF16) return bound == 1;
  return storage != DType::kF16 || bound <= kLargestFp16Bound;
}

void StoreIn(DType storage, const Problem& problem, RunConfig& config) {
  config.storage = storage;
  config.loss_scale = storage == DType::kF16 ? problem.fp16_loss_scale : 1;
  config.dynamic_loss_scale =
      contract::HasDynamicLossScale(config) ? problem.fp16_dynamic : contract::DynamicLossScale{};
}

std::optional<RunConfig> PlainIn(const Problem& problem, DType storage) {
  if (!Fits(problem, storage)) return std::nullopt;
  RunConfig config = problem.plain;
  StoreIn(storage, problem, config);
  return config;
}

LayoutScale ScaleOf(const Problem& problem, const std::string& largest, const std::string& projection) {
  LayoutScale scale;
  scale.fits_bf16 = Fits(problem, DType::kBF16);
  scale.fits_fp16 = Fits(problem, DType::kF16);
  for (const contract::ParameterSpec& parameter : contract::Parameters(problem.model)) {
    if (!parameter.frozen) scale.trained_elems += parameter.numel();
    if (parameter.name.starts_with("layers.0.")) scale.layer_elems += parameter.numel();
    if (parameter.name == "layers.0." + largest) scale.bucket_elems = parameter.numel();
    if (parameter.name == "layers.0." + projection) scale.projection_elems = parameter.numel();
    if (parameter.name == "embed.weight") scale.embedding_elems = parameter.numel();
  }
  contract::Check(scale.bucket_elems > 0 && scale.projection_elems > 0, "the parameters of the scale are the model's");
  return scale;
}

void Append(CaseList& list, CaseList other) {
  const int offset = static_cast<int>(list.problems.size());
  for (CaseSpec& spec : other.cases) spec.problem += offset;
  std::move(other.problems.begin(), other.problems.end(), std::back_inserter(list.problems));
  std::move(other.cases.begin(), other.cases.end(), std::back_inserter(list.cases));
  std::move(other.coverage.begin(), other.coverage.end(), std::back_inserter(list.coverage));
}

}  // namespace plumbline::conformance
