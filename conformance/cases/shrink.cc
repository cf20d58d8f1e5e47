// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/shrink.h"

#include <set>
#include <span>
#include <string>

namespace plumbline::conformance {
namespace {

using contract::Case;
using Axes = std::span<const ShrinkAxis>;

class Search {
 public:
  Search(const Case& start, const std::function<bool(const Case&)>& still_fails, const std::function<bool()>& give_up)
      : still_fails_(still_fails), give_up_(give_up) {
    result_.smallest = start;
  }

  ShrinkResult Run() {
    const Axes axes = ShrinkAxes();
    bool changed = true;
    while (changed && !given_up_) {
      const Case before = result_.smallest;
      Reduce(axes);
      changed = !(result_.smallest == before);
    }
    result_.finished = !given_up_;
    return result_;
  }

 private:
  // All of these axes at their least; else each half of them.
  void Reduce(Axes axes) {
    if (given_up_ || Accept(AllAtLeast(axes))) return;
    if (axes.size() == 1) return Bisect(axes.front());
    Reduce(axes.first(axes.size() / 2));
    Reduce(axes.last(axes.size() - axes.size() / 2));
  }

  Case AllAtLeast(Axes axes) const {
    Case least = result_.smallest;
    for (const ShrinkAxis& axis : axes) least = AtLeast(least, axis).value_or(least);
    return least;
  }

  // The least value is known not to fail.
  void Bisect(const ShrinkAxis& axis) {
    const Case start = result_.smallest;
    const std::vector<int64_t> values = SmallerValues(start, axis);
    size_t passes = 0;
    size_t fails = values.size();  // the current one
    while (fails > passes + 1 && !given_up_) {
      const size_t middle = passes + (fails - passes) / 2;
      (Accept(WithValue(start, axis, values[middle]).value()) ? fails : passes) = middle;
    }
  }

  // Whether the case is smaller and still fails. No case is asked about twice: the answer was no.
  bool Accept(const Case& candidate) {
    if (!IsSmaller(candidate, result_.smallest) || !asked_.insert(contract::ToJson(candidate)).second) return false;
    given_up_ = given_up_ || give_up_();
    if (given_up_) return false;
    ++result_.tried;
    if (!still_fails_(candidate)) return false;
    result_.smallest = candidate;
    return true;
  }

  const std::function<bool(const Case&)>& still_fails_;
  const std::function<bool()>& give_up_;
  ShrinkResult result_;
  std::set<std::string> asked_;
  bool given_up_ = false;
};

}  // namespace

ShrinkResult Shrink(const Case& start, const std::function<bool(const Case&)>& still_fails,
                    const std::function<bool()>& give_up) {
  return Search(start, still_fails, give_up).Run();
}

}  // namespace plumbline::conformance
