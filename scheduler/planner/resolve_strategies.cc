#include "scheduler/planner/resolve_strategies.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/sharing.h"
#include "proto/plan/strategies.h"
#include "scheduler/layouts/axes.h"
#include "scheduler/layouts/zero.h"
#include "scheduler/planner/resolve_parallelism.h"

namespace troupe {
namespace {

std::string PathOf(int strategy) {
  return absl::StrCat("parallelism.strategies[", strategy, "]");
}

// "parallelism.tensor: ..." of a strategy is of its own field.
absl::Status AtStrategy(int strategy, const absl::Status& status) {
  constexpr absl::string_view kPath = "parallelism.";
  if (status.ok() || !absl::StartsWith(status.message(), kPath)) return status;
  return absl::Status(status.code(),
                      absl::StrCat(PathOf(strategy), ".",
                                   status.message().substr(kPath.size())));
}

// Names of units are words, or numbers.
absl::Status CheckUnitNames(int index, const StrategySpec& strategy) {
  const std::string path = absl::StrCat(PathOf(index), ".units");
  if (strategy.has_stage() != strategy.units().empty()) {
    return FieldError(
        PathOf(index),
        strategy.has_stage()
            ? "has a stage and units; leave one of them out"
            : "does not say of what: give stage, a number, or units, a list "
              "of embedding, blocks, head, and numbers of units");
  }
  for (const std::string& name : strategy.units()) {
    int number = 0;
    if (absl::SimpleAtoi(name, &number) && number >= 0) continue;
    RETURN_IF_ERROR(CheckName(path, name, UnitWords()));
  }
  return absl::OkStatus();
}

int64_t RanksOf(const std::vector<Axis>& factors) {
  int64_t ranks = 1;
  for (const Axis& factor : factors) ranks *= factor.size();
  return ranks;
}

std::string SizesText(const std::vector<Axis>& factors) {
  return absl::StrJoin(factors, " x ", [](std::string* out, const Axis& axis) {
    absl::StrAppend(out, axis.size());
  });
}

std::vector<std::string> FieldsThatSpan() {
  std::vector<std::string> fields;
  for (const LayoutRow& row : Layouts()) {
    const bool spans =
        std::any_of(row.axes.begin(), row.axes.end(),
                    [](const RowAxis& axis) { return axis.may_span; });
    if (spans) fields.emplace_back(row.field);
  }
  return fields;
}

// Each factor of a stage's ranks is one of the job's, or several in a row.
absl::Status CheckFactors(int index, const ParallelismSpec& spec,
                          const ParallelismSpec& job) {
  const std::vector<Axis> own = FactorsOf(spec);
  const std::vector<Axis> wanted = FactorsOf(job);
  const int64_t ranks = RanksOf(own);
  if (ranks != RanksOf(wanted)) {
    return FieldError(
        PathOf(index),
        absl::StrCat(SharingText(spec), " is for ", ranks, " rank",
                     ranks == 1 ? "" : "s",
                     ", and the other units of the job are for ",
                     RanksOf(wanted), " (", SharingText(job),
                     "); within a replica each stage has as many ranks for "
                     "all units: use sizes whose product is the same"));
  }
  if (SpansOf(spec, wanted).has_value()) return absl::OkStatus();
  return FieldError(
      PathOf(index),
      absl::StrCat(SharingText(spec), " divides ", ranks, " ranks into ",
                   SizesText(own), ", and ", SharingText(job), " into ",
                   SizesText(wanted),
                   "; they must be divided alike, in the order ",
                   absl::StrJoin(FactorFields(), ", ",
                                 [](std::string* out, const RankField& field) {
                                   out->append(field.name);
                                 }),
                   "; only ", absl::StrJoin(FieldsThatSpan(), " or "),
                   " of a strategy may be several sizes of parallelism itself "
                   "in a row, so give the smallest sizes there"));
}

// Neighbours over which ZeRO deals are so on each axis.
absl::Status CheckDealing(int index, const ParallelismSpec& spec,
                          const ParallelismSpec& job) {
  const auto spans = SpansOf(spec, FactorsOf(job));
  CHECK(spans.has_value()) << "factors were checked";
  for (const FactorSpan& span : *spans) {
    const int wanted = ZeroSizeAlong(span.name, spec);
    int dealt = 1;
    for (const int size : SizesAlong(span, wanted)) dealt *= size;
    if (dealt == wanted) continue;
    return FieldError(
        absl::StrCat(PathOf(index), ".zero_size"),
        absl::StrCat(wanted, " are no neighbours among the ", span.size,
                     " ranks of ", span.name, ", which are ",
                     SizesText(span.axes), "; use ", dealt));
  }
  return absl::OkStatus();
}

absl::Status CheckStage(int index, const StrategySpec& strategy,
                        const ParallelismSpec& job) {
  const int stages = job.pipeline() * job.virtual_stages();
  if (!strategy.has_stage()) return absl::OkStatus();
  if (strategy.stage() >= 0 && strategy.stage() < stages) {
    return absl::OkStatus();
  }
  return FieldError(
      absl::StrCat(PathOf(index), ".stage"),
      absl::StrCat(strategy.stage(), " is no stage of ", stages,
                   " (parallelism.pipeline x virtual_stages); use 0",
                   stages > 1 ? absl::StrCat(" to ", stages - 1) : ""));
}

}  // namespace

absl::Status ResolveStrategies(ParallelismSpec& parallelism) {
  for (int s = 0; s < parallelism.strategies_size(); ++s) {
    StrategySpec& strategy = *parallelism.mutable_strategies(s);
    RETURN_IF_ERROR(CheckUnitNames(s, strategy));
    ParallelismSpec spec = DealtWithStrategy(parallelism, strategy);
    RETURN_IF_ERROR(AtStrategy(s, ResolveSharing(spec)));
    CopySharing(spec, strategy);
  }
  AdoptFirstStrategy(parallelism);
  return absl::OkStatus();
}

absl::Status CheckStrategies(const ParallelismSpec& parallelism) {
  for (int s = 0; s < parallelism.strategies_size(); ++s) {
    const StrategySpec& strategy = parallelism.strategies(s);
    const ParallelismSpec spec = DealtWithStrategy(parallelism, strategy);
    RETURN_IF_ERROR(CheckStage(s, strategy, parallelism));
    RETURN_IF_ERROR(CheckFactors(s, spec, parallelism));
    const LayoutRow* const sliced = SlicedRow(spec);
    const LayoutRow* const of_job = SlicedRow(parallelism);
    if (sliced != of_job) {
      const LayoutRow& row = sliced != nullptr ? *sliced : *of_job;
      return FieldError(
          absl::StrCat(PathOf(s), ".", MethodNameOf(row)),
          absl::StrCat(
              row.method,
              ", with which parameters are stored in slices, is for all "
              "units or for none"));
    }
    if (parallelism.zero() > 0) {
      RETURN_IF_ERROR(AtStrategy(s, CheckZeroSize(spec)));
      RETURN_IF_ERROR(CheckDealing(s, spec, parallelism));
    }
  }
  return absl::OkStatus();
}

}  // namespace troupe
