#include "scheduler/planner/resolve_parallelism.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "proto/base/choices.h"
#include "proto/base/status.h"
#include "proto/plan/axes.h"
#include "proto/plan/fields.h"
#include "proto/plan/plan_limits.h"
#include "proto/plan/ranks_needed.h"
#include "proto/plan/strategies.h"
#include "scheduler/pipelines/pipelines.h"
#include "scheduler/planner/resolve_strategies.h"

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

absl::Status ResolvePipeline(ParallelismSpec& parallelism) {
  if (!parallelism.has_pipeline()) parallelism.set_pipeline(1);
  if (!parallelism.has_pipeline_schedule()) {
    parallelism.set_pipeline_schedule("1f1b");
  }
  ASSIGN_OR_RETURN(const Pipeline schedule, ScheduleOf(parallelism));
  if (!parallelism.has_virtual_stages()) {
    parallelism.set_virtual_stages(schedule.default_virtual_stages);
  }
  if (!parallelism.has_vertical_sync()) parallelism.set_vertical_sync(false);
  RETURN_IF_ERROR(CheckInteger("parallelism.virtual_stages",
                               parallelism.virtual_stages(),
                               {.min = 1, .max = kVirtualStagesMax}));
  if (!parallelism.vertical_sync() || schedule.name == "pipedream") {
    return absl::OkStatus();
  }
  return FieldError(
      "parallelism.vertical_sync",
      absl::StrCat("is for pipedream, not ", schedule.name, "; leave it out"));
}

// Which numbers of ranks a method of tensor parallelism has.
struct MethodRanks {
  absl::string_view name;
  int sides = 1;           // axes of one size
  const char* shape = "";  // what the ranks are then, where they are one
  const char* examples = "2 or more";
};
constexpr MethodRanks kMethods[] = {
    {.name = "1d"},
    {.name = "2d", .sides = 2, .shape = "square", .examples = "4, 9 or 16"},
    {.name = "2.5d", .sides = 2, .examples = "8, 18 or 32"},
    {.name = "3d", .sides = 3, .shape = "cube", .examples = "8, 27 or 64"},
};

// The layers of 2.5d: each a square of four ranks or more.
absl::Status ResolveTensorDepth(ParallelismSpec& parallelism) {
  const char kField[] = "parallelism.tensor_depth";
  if (parallelism.tensor_method() != "2.5d") {
    if (!parallelism.has_tensor_depth()) return absl::OkStatus();
    return FieldError(kField,
                      "is for parallelism.tensor_method: 2.5d; leave it out");
  }
  const int ranks = parallelism.tensor();
  const std::vector<int> fitting = DepthsOf(ranks);
  if (fitting.empty()) {
    constexpr int kLeast = 8;
    int below = std::max(ranks, kLeast);
    int above = below;
    while (DepthsOf(below).empty()) --below;
    while (DepthsOf(above).empty() || above == below) ++above;
    return FieldError(
        "parallelism.tensor",
        absl::StrCat(ranks,
                     " ranks are no layers of as many rows as columns, two or "
                     "more, which tensor_method: 2.5d needs; use ",
                     below,
                     above <= kTensorMax ? absl::StrCat(" or ", above) : ""));
  }
  if (!parallelism.has_tensor_depth()) {
    parallelism.set_tensor_depth(fitting.front());
  }
  const int depth = parallelism.tensor_depth();
  if (std::count(fitting.begin(), fitting.end(), depth) > 0) {
    return absl::OkStatus();
  }
  if (depth == 1 && IsPower(ranks, 2)) {
    return FieldError(kField,
                      "one layer is parallelism.tensor_method: 2d; use that, "
                      "and leave this out");
  }
  return FieldError(
      kField, absl::StrCat(depth, " layers of the ", ranks,
                           " ranks of parallelism.tensor are no squares of 4 "
                           "or more; use ",
                           absl::StrJoin(fitting, " or ")));
}

// So many ranks along each of the axes that the method has.
absl::Status CheckTensorMethod(const ParallelismSpec& parallelism) {
  const char kField[] = "parallelism.tensor_method";
  if (!parallelism.has_tensor_method()) return absl::OkStatus();
  std::vector<std::string> names;
  for (const MethodRanks& method : kMethods) names.emplace_back(method.name);
  RETURN_IF_ERROR(CheckName(kField, parallelism.tensor_method(), names));
  const MethodRanks& method = *std::find_if(
      std::begin(kMethods), std::end(kMethods), [&](const MethodRanks& of) {
        return of.name == parallelism.tensor_method();
      });
  if (parallelism.tensor() == 1) {
    return FieldError(
        kField, absl::StrCat("says how the ranks of parallelism.tensor share a "
                             "unit, which is 1; use ",
                             method.examples, ", or leave it out"));
  }
  if (method.sides == 1) return absl::OkStatus();
  const bool is_one = *method.shape != '\0';
  if (is_one && !IsPower(parallelism.tensor(), method.sides)) {
    const int side = std::max(Root(parallelism.tensor(), method.sides), 2);
    const int more = Power(side + 1, method.sides);
    return FieldError(
        "parallelism.tensor",
        absl::StrCat(parallelism.tensor(), " ranks are no ", method.shape,
                     ", which tensor_method: ", method.name,
                     " needs: as many along each of ",
                     method.sides == 2 ? "two" : "three", " axes; use ",
                     Power(side, method.sides),
                     more <= kTensorMax ? absl::StrCat(" or ", more) : ""));
  }
  if (!parallelism.sequence_parallel()) return absl::OkStatus();
  return FieldError(
      "parallelism.sequence_parallel",
      absl::StrCat("cuts what tensor_method: 1d leaves whole; ", method.name,
                   " leaves nothing whole; leave it out"));
}

// Some of the ranks of parallelism.data, whose number is known.
absl::Status ResolveExpert(ParallelismSpec& parallelism) {
  const char kField[] = "parallelism.expert";
  const char kSlackField[] = "parallelism.expert_slack";
  if (!parallelism.has_expert()) parallelism.set_expert(1);
  RETURN_IF_ERROR(
      CheckInteger(kField, parallelism.expert(), {.min = 1, .max = kDataMax}));
  const int ranks = parallelism.expert();
  if (parallelism.data() % ranks != 0) {
    return FieldError(
        kField, absl::StrCat(ranks, " does not divide the ", parallelism.data(),
                             " ranks of parallelism.data, which share the "
                             "experts; use ",
                             DivisorsText(parallelism.data(), ranks)));
  }
  if (ranks == 1) {
    if (!parallelism.has_expert_slack()) return absl::OkStatus();
    return FieldError(kSlackField,
                      "says how many rows ranks that share experts take at "
                      "once, and parallelism.expert is 1; leave it out");
  }
  if (!parallelism.has_expert_slack()) parallelism.set_expert_slack(ranks);
  return CheckNumber(kSlackField, parallelism.expert_slack(),
                     {.min = 1, .max = static_cast<double>(ranks)});
}

absl::Status ResolveTensor(ParallelismSpec& parallelism) {
  if (!parallelism.has_tensor()) parallelism.set_tensor(1);
  if (!parallelism.has_sequence_parallel()) {
    parallelism.set_sequence_parallel(false);
  }
  RETURN_IF_ERROR(CheckTensorMethod(parallelism));
  RETURN_IF_ERROR(ResolveTensorDepth(parallelism));
  if (!parallelism.sequence_parallel() || parallelism.tensor() > 1) {
    return absl::OkStatus();
  }
  return FieldError("parallelism.sequence_parallel",
                    "cuts the sequence over the ranks of parallelism.tensor, "
                    "which is 1; use 2 or more, or leave it out");
}

// Two axes or more: groups as with ulysses, and rings of them.
absl::Status CheckUlyssesSize(const ParallelismSpec& parallelism) {
  const char kField[] = "parallelism.ulysses_size";
  if (parallelism.context_method() != "usp") {
    if (!parallelism.has_ulysses_size()) return absl::OkStatus();
    return FieldError(kField,
                      "is for parallelism.context_method: usp; leave it out");
  }
  std::vector<int> sizes;
  for (int size = 2; size < parallelism.context(); ++size) {
    if (parallelism.context() % size == 0) sizes.push_back(size);
  }
  if (std::count(sizes.begin(), sizes.end(), parallelism.ulysses_size()) > 0) {
    return absl::OkStatus();
  }
  const std::string of =
      absl::StrCat("the ", parallelism.context(), " of parallelism.context");
  if (sizes.empty()) {
    return FieldError("parallelism.context_method",
                      absl::StrCat("usp makes groups of groups of ", of,
                                   ", which has no divisor; use ring or "
                                   "ulysses, or other ranks"));
  }
  return FieldError(
      kField, absl::StrCat("usp needs it, how many neighbours among ", of,
                           " do as with ulysses, the groups being the members "
                           "of rings: one of ",
                           absl::StrJoin(sizes, ", ")));
}

absl::Status ResolveContext(ParallelismSpec& parallelism) {
  if (!parallelism.has_context()) parallelism.set_context(1);
  if (parallelism.context() == 1) {
    if (parallelism.has_ulysses_size()) {
      return FieldError("parallelism.ulysses_size",
                        "says how the ranks of parallelism.context work "
                        "together, which is 1; use 2 or more, or leave it out");
    }
    if (!parallelism.has_context_method()) return absl::OkStatus();
    return FieldError("parallelism.context_method",
                      "says how the ranks of parallelism.context work "
                      "together, which is 1; use 2 or more, or leave it out");
  }
  if (!parallelism.has_context_method()) {
    parallelism.set_context_method("ulysses");
  }
  RETURN_IF_ERROR(CheckName("parallelism.context_method",
                            parallelism.context_method(),
                            {"ring", "ring_self_attention", "ulysses", "usp"}));
  return CheckUlyssesSize(parallelism);
}

// Those of a sequence first, then those of a micro-batch, then those that share
// experts, then replicas.
std::string MisfitInBatch(int size, const ParallelismSpec& parallelism) {
  int left = size;
  for (const auto& [field, ranks] :
       {std::pair("context", parallelism.context()),
        {"batch", parallelism.batch()},
        {"expert", parallelism.expert()},
        {"data", ReplicasOf(parallelism)}}) {
    if (left % ranks != 0 && ranks % left != 0) {
      return absl::StrCat(left, left == size ? "" : absl::StrCat(" of ", size),
                          " neither divides the ", ranks,
                          " ranks of parallelism.", field,
                          " nor is a multiple of them");
    }
    left = std::max(1, left / ranks);
  }
  return "";
}

// Over some ranks of each sequence, or over all of some sequences' ranks; else
// what is wrong.
std::string MisfitOfZeroSize(int size, const ParallelismSpec& parallelism) {
  if (parallelism.batch() > 1 || parallelism.expert() > 1) {
    return MisfitInBatch(size, parallelism);
  }
  const int data = parallelism.data();
  const int context = parallelism.context();
  if (context > 1 && size < context) {
    const int neighbours = SizeOfAxis(parallelism, "ulysses");
    if (size % neighbours != 0 && neighbours % size != 0) {
      return absl::StrCat(size, " neither divides the ", neighbours,
                          " ranks of parallelism.ulysses_size nor is a "
                          "multiple of them");
    }
    if (context % size == 0) return "";
    return absl::StrCat(size, " does not divide the ", context,
                        " ranks of parallelism.context");
  }
  if (size % context != 0) {
    return absl::StrCat(size, " is no multiple of the ", context,
                        " ranks of parallelism.context");
  }
  if (data % (size / context) == 0) return "";
  if (context == 1) {
    return absl::StrCat(size, " does not divide the ", data,
                        " replicas of parallelism.data");
  }
  return absl::StrCat(size, " are ", size / context,
                      " times the ranks of parallelism.context, which does "
                      "not divide the ",
                      data, " replicas of parallelism.data");
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
                   "its backward; use a synchronous schedule such as 1f1b, or ",
                   instead));
}

bool SaysNothingOfZero(const ParallelismSpec& parallelism) {
  return !parallelism.has_zero() && !parallelism.has_zero_size() &&
         !parallelism.has_reshard_after_forward();
}

absl::Status ResolveZero(ParallelismSpec& parallelism) {
  if (!parallelism.has_zero()) parallelism.set_zero(0);
  const bool is_3d = Is3D(parallelism);
  const int dealt_most = DealtMost(parallelism);
  RETURN_IF_ERROR(CheckInteger("parallelism.zero", parallelism.zero(),
                               {.min = 0, .max = 3}));
  if (!parallelism.has_zero_size()) {
    parallelism.set_zero_size(parallelism.zero() > 0 ? dealt_most : 1);
  }
  if (!parallelism.has_reshard_after_forward()) {
    parallelism.set_reshard_after_forward(parallelism.zero() == 3 || is_3d);
  }
  if (is_3d && parallelism.zero() != 0 && parallelism.zero() != 3) {
    return FieldError(
        "parallelism.zero",
        absl::StrCat(parallelism.zero(),
                     " does not go with tensor_method: 3d, where parameters "
                     "rest in slices over the ranks of parallelism.tensor "
                     "already; use 0, or 3 for slices over parallelism.data, "
                     "too"));
  }
  if (parallelism.zero() < 3 && !is_3d && parallelism.reshard_after_forward()) {
    return FieldError("parallelism.reshard_after_forward",
                      "is for zero: 3, where parameters rest in slices; leave "
                      "it out");
  }
  if (parallelism.zero() == 0) {
    if (parallelism.zero_size() == 1) return absl::OkStatus();
    return FieldError("parallelism.zero_size",
                      absl::StrCat("nothing is dealt over ranks with zero: 0; "
                                   "leave it out, or set parallelism.zero to ",
                                   is_3d ? "3" : "1, 2 or 3"));
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
  if (parallelism.zero() != 3 && !Is3D(parallelism)) {
    return FieldError("memory.unsharded_bytes",
                      "is for parallelism.zero: 3, where parameters rest in "
                      "slices and are gathered; leave it out");
  }
  return CheckInteger("memory.unsharded_bytes", memory.unsharded_bytes(),
                      {.min = 0, .max = kUnshardedBytesMax});
}

}  // namespace

absl::Status CheckZeroSize(const ParallelismSpec& parallelism) {
  const auto misfit = [&](int size) {
    return MisfitOfZeroSize(size, parallelism);
  };
  const int size = parallelism.zero_size();
  const std::string wrong = misfit(size);
  if (wrong.empty()) return absl::OkStatus();
  int below = size;  // 1 fits, and so do all that there are
  while (!misfit(below).empty()) --below;
  int above = size;
  while (!misfit(above).empty()) ++above;
  return FieldError("parallelism.zero_size",
                    absl::StrCat(wrong, "; use ", below, " or ", above));
}

absl::Status ResolveSharing(ParallelismSpec& parallelism) {
  if (!parallelism.has_batch()) parallelism.set_batch(1);
  RETURN_IF_ERROR(CheckSizes(parallelism));
  RETURN_IF_ERROR(ResolveTensor(parallelism));
  return ResolveContext(parallelism);
}

absl::Status ResolveParallelism(const MemorySpec& memory,
                                ParallelismSpec& parallelism) {
  RETURN_IF_ERROR(ResolveStrategies(parallelism));
  if (!parallelism.has_data()) parallelism.set_data(1);
  if (!parallelism.has_bucket_megabytes()) parallelism.set_bucket_megabytes(25);
  RETURN_IF_ERROR(CheckNumber(
      "parallelism.bucket_megabytes", parallelism.bucket_megabytes(),
      {.min = 0, .max = kBucketMegabytesMax, .min_open = true}));
  RETURN_IF_ERROR(ResolveSharing(parallelism));
  RETURN_IF_ERROR(ResolveExpert(parallelism));
  RETURN_IF_ERROR(ResolvePipeline(parallelism));
  if (Is3D(parallelism)) {
    RETURN_IF_ERROR(CheckIsSynchronous(parallelism, "parallelism.tensor_method",
                                       "3d", "tensor_method: 1d"));
  }
  RETURN_IF_ERROR(CheckGathers(memory, parallelism));
  const bool zero_is_open = memory.has_mode() && SaysNothingOfZero(parallelism);
  if (!zero_is_open) RETURN_IF_ERROR(ResolveZero(parallelism));
  return CheckStrategies(parallelism);
}

}  // namespace troupe
