#include "scheduler/search/estimate_errors.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "scheduler/layouts/layouts.h"

namespace troupe {

Family FamilyOf(const Candidate& candidate) {
  const ParallelismSpec& parallelism = candidate.parallelism;
  Family family;
  for (const LayoutRow* const row : RowsInUse(parallelism)) {
    absl::StrAppend(&family.rows, row->field, " ", row->method, "/");
  }
  for (const StrategySpec& strategy : parallelism.strategies()) {
    absl::StrAppend(&family.rows, absl::StrJoin(strategy.units(), " "), "/");
  }
  family.own = absl::StrCat(
      family.rows, "/",
      parallelism.pipeline() > 1 ? parallelism.pipeline_schedule() : "", "/",
      parallelism.zero());
  return family;
}

void EstimateErrors::Told::Add(double ratio, double memory_ratio) {
  ++count;
  sum += ratio;
  least_memory = std::min(least_memory, memory_ratio);
  least = std::min(least, ratio);
}

void EstimateErrors::Add(const Family& family, double ratio,
                         double memory_ratio) {
  for (Told* const told :
       {&all_, &rows_[family.rows], &families_[family.own]}) {
    told->Add(ratio, memory_ratio);
  }
}

const EstimateErrors::Told& EstimateErrors::LikeIt(const Family& family,
                                                   int count_min) const {
  const auto own = families_.find(family.own);
  if (own != families_.end() && own->second.count >= count_min) {
    return own->second;
  }
  const auto rows = rows_.find(family.rows);
  const bool told = rows != rows_.end() && rows->second.count >= count_min;
  return told ? rows->second : all_;
}

double EstimateErrors::Expected(const Family& family) const {
  const Told& told = LikeIt(family, 1);
  return told.count == 0 ? 1 : told.sum / told.count;
}

double EstimateErrors::LeastMemory(const Family& family) const {
  const auto own = families_.find(family.own);
  return own == families_.end() ? 1 : own->second.least_memory;
}

double EstimateErrors::Least(const Family& family) const {
  const double assumed = 1 / (1 + assumed_);
  if (all_.count < kTold || std::isinf(assumed_)) return assumed;
  return std::max(assumed, LikeIt(family, kToldOfFamily).least * (1 - kMargin));
}

}  // namespace troupe
