#include "scheduler/planner/resolve_parallelism.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/plan_limits.h"
#include "proto/plan/ranks_needed.h"
#include "proto/plan/sharing.h"
#include "scheduler/layouts/layouts.h"
#include "scheduler/layouts/resolve_rows.h"
#include "scheduler/layouts/zero.h"
#include "scheduler/pipelines/pipelines.h"
#include "scheduler/planner/resolve_strategies.h"
#include "scheduler/planner/resolve_zero_weights.h"

namespace troupe {
namespace {

constexpr double kBucketMegabytesMax = 1 << 20;
constexpr int64_t kUnshardedBytesMax = int64_t{1} << 50;

absl::StatusOr<Pipeline> ScheduleOf(const ParallelismSpec& parallelism) {
  std::vector<std::string> names;
  for (const Pipeline& pipeline : Pipelines()) {
    names.emplace_back(pipeline.name);
  }
  RETURN_IF_ERROR(CheckName("parallelism.pipeline_schedule",
                            parallelism.pipeline_schedule(), names));
  return FindPipeline(parallelism.pipeline_schedule());
}

// Of those that schedules have for themselves.
absl::Status ResolveFieldsOf(const Pipeline& schedule,
                             ParallelismSpec& parallelism) {
  const auto& own = schedule.fields;
  for (const Pipeline& of : Pipelines()) {
    for (const std::string& field : of.fields) {
      if (!HasField(parallelism, field)) SetField(field, "false", parallelism);
      const bool is_set = FieldText(parallelism, field) == "true";
      const bool is_own = std::find(own.begin(), own.end(), field) != own.end();
      if (!is_set || is_own) continue;
      return FieldError(absl::StrCat("parallelism.", field),
                        absl::StrCat("is for ", of.name, ", not ",
                                     schedule.name, "; leave it out"));
    }
  }
  return absl::OkStatus();
}

absl::Status ResolvePipeline(ParallelismSpec& parallelism) {
  if (!parallelism.has_pipeline()) parallelism.set_pipeline(1);
  if (!parallelism.has_pipeline_schedule()) {
    parallelism.set_pipeline_schedule(kDefaultPipeline);
  }
  ASSIGN_OR_RETURN(const Pipeline schedule, ScheduleOf(parallelism));
  if (!parallelism.has_virtual_stages()) {
    parallelism.set_virtual_stages(schedule.default_virtual_stages);
  }
  RETURN_IF_ERROR(CheckInteger("parallelism.virtual_stages",
                               parallelism.virtual_stages(),
                               {.min = 1, .max = kVirtualStagesMax}));
  return ResolveFieldsOf(schedule, parallelism);
}

// Of a field's value with which weights are not whole on each rank.
absl::Status CheckIsSynchronous(const ParallelismSpec& parallelism,
                                absl::string_view field,
                                absl::string_view value,
                                absl::string_view instead) {
  ASSIGN_OR_RETURN(const Pipeline schedule, ScheduleOf(parallelism));
  if (!schedule.asynchronous) return absl::OkStatus();
  return FieldError(
      field,
      absl::StrCat(value, " does not go with ", schedule.name,
                   ": each micro-batch in flight computes with weights of an "
                   "age of its own, which have to be whole on each rank until "
                   "its backward; ",
                   kUseSynchronous, ", or ", instead));
}

bool SaysNothingOfZero(const ParallelismSpec& parallelism) {
  return !parallelism.has_zero() && !parallelism.has_zero_size() &&
         !parallelism.has_reshard_after_forward() &&
         !SaysSizesOfSlices(parallelism);
}

absl::Status ResolveZero(ParallelismSpec& parallelism) {
  if (!parallelism.has_zero()) parallelism.set_zero(0);
  const LayoutRow* const sliced = SlicedRow(parallelism);
  const int dealt_most = DealtMost(parallelism);
  RETURN_IF_ERROR(CheckInteger("parallelism.zero", parallelism.zero(),
                               {.min = 0, .max = 3}));
  if (!parallelism.has_zero_size()) {
    parallelism.set_zero_size(parallelism.zero() > 0 ? dealt_most : 1);
  }
  if (!parallelism.has_reshard_after_forward()) {
    parallelism.set_reshard_after_forward(parallelism.zero() == 3 ||
                                          sliced != nullptr);
  }
  if (sliced != nullptr && parallelism.zero() != 0 && parallelism.zero() != 3) {
    return FieldError(
        "parallelism.zero",
        absl::StrCat(parallelism.zero(), " does not go with ",
                     MethodText(*sliced),
                     ", where parameters are stored in slices over its ranks "
                     "already; use 0, or 3 for slices over parallelism.data, "
                     "too"));
  }
  if (parallelism.zero() < 3 && sliced == nullptr &&
      parallelism.reshard_after_forward()) {
    return FieldError(
        "parallelism.reshard_after_forward",
        "is for zero: 3, where parameters are stored in slices; leave "
        "it out");
  }
  if (parallelism.zero() == 0) {
    if (parallelism.zero_size() == 1) return absl::OkStatus();
    return FieldError("parallelism.zero_size",
                      absl::StrCat("nothing is dealt over ranks with zero: 0; "
                                   "leave it out, or set parallelism.zero to ",
                                   sliced != nullptr ? "3" : "1, 2 or 3"));
  }
  RETURN_IF_ERROR(CheckInteger("parallelism.zero_size", parallelism.zero_size(),
                               {.min = 1, .max = dealt_most}));
  RETURN_IF_ERROR(CheckZeroSize(parallelism));
  return CheckIsSynchronous(parallelism, "parallelism.zero",
                            absl::StrCat(parallelism.zero()), "zero: 0");
}

// How far gathers may run ahead, where there are any.
absl::Status CheckGathers(const MemorySpec& memory,
                          const ParallelismSpec& parallelism) {
  if (!memory.has_unsharded_bytes()) return absl::OkStatus();
  if (parallelism.zero() != 3 && SlicedRow(parallelism) == nullptr) {
    return FieldError("memory.unsharded_bytes",
                      "is for parallelism.zero: 3, where parameters rest in "
                      "slices and are gathered; leave it out");
  }
  return CheckInteger("memory.unsharded_bytes", memory.unsharded_bytes(),
                      {.min = 0, .max = kUnshardedBytesMax});
}

}  // namespace

absl::Status ResolveSharing(ParallelismSpec& parallelism) {
  RETURN_IF_ERROR(CheckSizes(parallelism));
  return ResolveRows(parallelism);
}

absl::Status ResolveParallelism(const MemorySpec& memory,
                                ParallelismSpec& parallelism) {
  if (parallelism.has_mode()) {
    RETURN_IF_ERROR(CheckName("parallelism", parallelism.mode(), {"auto"}));
    return FieldError("parallelism",
                      "auto is for `troupe plan` and `troupe submit`, which "
                      "know the workers; here say data, pipeline and tensor");
  }
  RETURN_IF_ERROR(ResolveStrategies(parallelism));
  if (!parallelism.has_data()) parallelism.set_data(1);
  if (!parallelism.has_bucket_megabytes()) parallelism.set_bucket_megabytes(25);
  RETURN_IF_ERROR(CheckNumber(
      "parallelism.bucket_megabytes", parallelism.bucket_megabytes(),
      {.min = 0, .max = kBucketMegabytesMax, .min_open = true}));
  RETURN_IF_ERROR(ResolveSharing(parallelism));
  RETURN_IF_ERROR(ResolveRowsOfData(parallelism));
  RETURN_IF_ERROR(ResolvePipeline(parallelism));
  if (const LayoutRow* const sliced = SlicedRow(parallelism)) {
    const std::string method = MethodNameOf(*sliced);
    RETURN_IF_ERROR(CheckIsSynchronous(
        parallelism, absl::StrCat("parallelism.", method), sliced->method,
        absl::StrCat(method, ": ", RowsOf(sliced->field).front()->method)));
  }
  RETURN_IF_ERROR(CheckGathers(memory, parallelism));
  const bool zero_is_open = memory.has_mode() && SaysNothingOfZero(parallelism);
  if (!zero_is_open) RETURN_IF_ERROR(ResolveZero(parallelism));
  RETURN_IF_ERROR(CheckStrategies(parallelism));
  return zero_is_open ? absl::OkStatus() : ResolveZeroWeights(parallelism);
}

}  // namespace troupe
