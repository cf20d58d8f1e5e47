// SPDX-License-Identifier: Apache-2.0
// Order of work: the traces of all ranks agree on the step's numbers; each rank's dump is the slices that its trace
// lists, bit for bit; equal slices are equal on all ranks; together they are the whole tensors.
#include "conformance/oracle/step_sight.h"

#include <algorithm>
#include <charconv>
#include <exception>
#include <map>
#include <string>
#include <string_view>

#include "conformance/contract/digest.h"
#include "conformance/contract/model_spec.h"
#include "conformance/contract/tensor_file.h"
#include "conformance/oracle/same_number.h"
#include "conformance/oracle/stored_value.h"

namespace plumbline::conformance {
namespace {

using contract::DType;
using contract::HostTensor;
using contract::ParameterSpec;
using contract::StepRecord;
using contract::TensorKind;
using reports::CheckOutcome;

// What ends the reading. It never leaves this file.
class Finding : public std::exception {
 public:
  explicit Finding(std::string text) : text_(std::move(text)) {}
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

void Demand(bool ok, const std::string& finding) {
  if (!ok) throw Finding(finding);
}

struct SliceName {
  TensorKind kind = TensorKind::kGradient;
  std::string tensor;
  int64_t begin = 0;
};

// "KIND/NAME@BEGIN"
std::optional<SliceName> ParseSliceName(std::string_view text) {
  const size_t slash = text.find('/');
  const size_t at = text.rfind('@');
  if (slash == std::string_view::npos || at == std::string_view::npos || at < slash) return std::nullopt;
  SliceName name;
  name.tensor = text.substr(slash + 1, at - slash - 1);
  const std::string_view digits = text.substr(at + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), name.begin);
  if (error != std::errc() || end != digits.data() + digits.size() || name.begin < 0) return std::nullopt;
  for (TensorKind kind : contract::kTensorKinds) {
    if (text.substr(0, slash) != contract::Name(kind)) continue;
    name.kind = kind;
    return name;
  }
  return std::nullopt;
}

struct HeldSlice {
  HostTensor tensor;
  int64_t rank = 0;
};

class Reader {
 public:
  Reader(const contract::Case& spec, const std::filesystem::path& out_dir, int64_t step)
      : spec_(spec), out_dir_(out_dir), step_(step), parameters_(contract::Parameters(spec.model)) {
    for (size_t i = 0; i < parameters_.size(); ++i) index_of_[parameters_[i].name] = i;
    for (auto& kind : slices_) kind.resize(parameters_.size());
  }

  StepSight Read() {
    sight_.step = step_;
    for (int64_t rank = 0; rank < spec_.config.world_size(); ++rank) {
      const StepRecord record = ReadRecord(rank);
      TakeScalars(rank, record);
      TakeDump(rank, record);
    }
    for (TensorKind kind : contract::kTensorKinds) Assemble(kind);
    sight_.storage = type_of_[static_cast<int>(TensorKind::kWeight)].value_or(spec_.config.storage);
    return std::move(sight_);
  }

  int64_t compared() const { return compared_; }

 private:
  std::string At(int64_t rank) const { return "step " + std::to_string(step_) + ", rank " + std::to_string(rank); }

  StepRecord ReadRecord(int64_t rank) const {
    const contract::Trace trace = contract::ReadTrace(out_dir_, rank);
    Demand(trace.world == spec_.config.world_size(), At(rank) + ": world is " + std::to_string(trace.world) +
                                                         "; the case has " + std::to_string(spec_.config.world_size()) +
                                                         " ranks");
    for (const StepRecord& record : trace.steps) {
      if (record.step != step_) continue;
      Demand(record.real.has_value(), At(rank) + ": the trace has no lr, gradient_norm, skipped");
      return record;
    }
    throw Finding(At(rank) + ": the trace does not have this step");
  }

  void TakeScalars(int64_t rank, const StepRecord& record) {
    if (rank == 0) {
      sight_.loss = record.loss;
      sight_.tokens = record.tokens;
      sight_.real = *record.real;
      Demand(sight_.real.lr.size() == spec_.config.groups.size() + 1,
             At(rank) + ": lr has " + std::to_string(sight_.real.lr.size()) + " entries; allowed: " +
                 std::to_string(spec_.config.groups.size() + 1) + ", the default group and param_groups");
      return;
    }
    const auto demand_same = [&](bool same, const char* what) {
      Demand(same, At(rank) + ": " + what + " differs from rank 0's");
    };
    demand_same(SameNumber(record.loss, sight_.loss), "loss");
    demand_same(record.tokens == sight_.tokens, "tokens");
    demand_same(std::ranges::equal(record.real->lr, sight_.real.lr, SameNumber), "lr");
    demand_same(SameNumber(record.real->gradient_norm, sight_.real.gradient_norm), "gradient_norm");
    demand_same(record.real->skipped == sight_.real.skipped, "skipped");
    demand_same(SameHistory(record.real->norm_history, sight_.real.norm_history), "norm_history");
    demand_same(SameScaler(record.real->loss_scaler, sight_.real.loss_scaler), "loss_scaler");
    compared_ += 6 + static_cast<int64_t>(sight_.real.lr.size());
  }

  void TakeDump(int64_t rank, const StepRecord& record) {
    contract::TensorFile file = contract::ReadTensorFile(out_dir_, contract::DumpName(rank, step_));
    std::map<std::string, contract::SliceDigest> listed;
    for (TensorKind kind : contract::kTensorKinds) {
      for (const contract::SliceDigest& slice : record.of(kind)) {
        const std::string name =
            std::string(contract::Name(kind)) + "/" + slice.tensor + "@" + std::to_string(slice.begin);
        Demand(listed.emplace(name, slice).second, At(rank) + ": the trace lists " + name + " twice");
      }
    }
    Demand(listed.size() == file.tensors.size(), At(rank) + ": the dump has " + std::to_string(file.tensors.size()) +
                                                     " slices, the trace " + std::to_string(listed.size()));
    for (HostTensor& tensor : file.tensors) {
      const auto found = listed.find(tensor.name);
      Demand(found != listed.end(), At(rank) + ": " + tensor.name + " is in the dump and not in the trace");
      CheckDigest(rank, tensor, found->second);
      TakeSlice(rank, std::move(tensor));
    }
  }

  void CheckDigest(int64_t rank, const HostTensor& tensor, const contract::SliceDigest& listed) const {
    const std::string where = At(rank) + ": " + tensor.name;
    Demand(tensor.shape.size() == 1 && tensor.shape[0] == listed.end - listed.begin,
           where + " is not the slice of " + std::to_string(listed.end - listed.begin) +
               " elements, in one dimension, that the trace lists");
    contract::Digest digest;
    for (int64_t i = 0; i < tensor.shape[0]; ++i) digest.AddBits(listed.begin + i, StoredBits(tensor, i));
    Demand(digest.hash == listed.digest.hash, where + " has another digest than the trace lists");
  }

  void CheckType(int64_t rank, TensorKind kind, const HostTensor& tensor) {
    const DType stored = kind == TensorKind::kWeight ? spec_.config.storage : DType::kF32;
    Demand(tensor.dtype == stored || tensor.dtype == DType::kF64,
           At(rank) + ": " + tensor.name + " is " + std::string(contract::Name(tensor.dtype)) +
               "; allowed: " + std::string(contract::Name(stored)) + ", or F64 of an engine that computes in it");
    std::optional<DType>& seen = type_of_[static_cast<int>(kind)];
    if (!seen) seen = tensor.dtype;
    Demand(*seen == tensor.dtype, At(rank) + ": " + tensor.name + " is " + std::string(contract::Name(tensor.dtype)) +
                                      ", others of its kind are " + std::string(contract::Name(*seen)));
  }

  void TakeSlice(int64_t rank, HostTensor tensor) {
    const std::optional<SliceName> name = ParseSliceName(tensor.name);
    Demand(name.has_value(), At(rank) + ": " + tensor.name + " is not KIND/NAME@BEGIN");
    const auto index = index_of_.find(name->tensor);
    Demand(index != index_of_.end() && !IsAbsent(name->kind, parameters_[index->second]),
           At(rank) + ": " + tensor.name + " is not one of this case");
    CheckType(rank, name->kind, tensor);
    auto& slices = slices_[static_cast<int>(name->kind)][index->second];
    const auto held = slices.find(name->begin);
    if (held == slices.end()) {
      slices.emplace(name->begin, HeldSlice{std::move(tensor), rank});
      return;
    }
    const HostTensor& first = held->second.tensor;
    const std::string where = At(rank) + ": " + tensor.name;
    Demand(first.shape == tensor.shape,
           where + " ends elsewhere than rank " + std::to_string(held->second.rank) + "'s");
    compared_ += tensor.shape[0];
    if (first.data == tensor.data) return;
    int64_t index_in_slice = 0;
    while (StoredBits(first, index_in_slice) == StoredBits(tensor, index_in_slice)) ++index_in_slice;
    throw Finding(where + " differs from rank " + std::to_string(held->second.rank) + "'s, first in element " +
                  std::to_string(name->begin + index_in_slice));
  }

  bool IsAbsent(TensorKind kind, const ParameterSpec& parameter) const {
    if (kind == TensorKind::kMaster || kind == TensorKind::kWeight) return false;
    if (parameter.frozen) return true;
    if (kind == TensorKind::kMoment) return !contract::HasMoment(spec_.config);
    return kind == TensorKind::kSecondMoment && !contract::HasSecondMoment(spec_.config);
  }

  void Assemble(TensorKind kind) {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const ParameterSpec& parameter = parameters_[i];
      std::vector<double>& whole = sight_.of(kind).emplace_back();
      if (IsAbsent(kind, parameter)) continue;
      for (const auto& [begin, slice] : slices_[static_cast<int>(kind)][i]) Append(begin, slice, whole);
      Demand(static_cast<int64_t>(whole.size()) == parameter.numel(),
             "step " + std::to_string(step_) + ": the slices of " + std::string(contract::Name(kind)) + "/" +
                 parameter.name + " end at element " + std::to_string(whole.size()) + "; the tensor has " +
                 std::to_string(parameter.numel()));
      compared_ += parameter.numel();
    }
  }

  void Append(int64_t begin, const HeldSlice& slice, std::vector<double>& whole) const {
    const auto covered = static_cast<int64_t>(whole.size());
    Demand(begin == covered, At(slice.rank) + ": " + slice.tensor.name + " begins where " + std::to_string(covered) +
                                 " elements are covered" + (begin < covered ? ", it overlaps another" : ""));
    for (int64_t i = 0; i < slice.tensor.shape[0]; ++i) whole.push_back(StoredValue(slice.tensor, i));
  }

  const contract::Case& spec_;
  const std::filesystem::path& out_dir_;
  const int64_t step_;
  std::vector<ParameterSpec> parameters_;
  std::map<std::string, size_t, std::less<>> index_of_;
  std::vector<std::map<int64_t, HeldSlice>> slices_[contract::kNumTensorKinds];  // [kind][tensor], by begin
  std::optional<DType> type_of_[contract::kNumTensorKinds];
  StepSight sight_;
  int64_t compared_ = 0;
};

}  // namespace

SightResult SeeStep(const contract::Case& spec, const std::filesystem::path& out_dir, int64_t step) {
  SightResult result{{"dump", CheckOutcome::kPass, 0, ""}, std::nullopt};
  try {
    Reader reader(spec, out_dir, step);
    result.sight = reader.Read();
    result.check.compared = reader.compared();
  } catch (const std::exception& finding) {  // what strangers wrote can be wrong in any way
    result.check.outcome = CheckOutcome::kFail;
    result.check.detail = finding.what();
  }
  return result;
}

}  // namespace plumbline::conformance
