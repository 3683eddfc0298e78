#include "scheduler/planner/resolve_micro_batches.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/islands.h"
#include "scheduler/layouts/replicas.h"
#include "scheduler/layouts/zero.h"
#include "scheduler/pipelines/pipelines.h"

namespace troupe {
namespace {

constexpr char kField[] = "parallelism.micro_batches";
constexpr char kSplitField[] = "parallelism.micro_batch_split";

std::string ListText(const ParallelismSpec& parallelism) {
  return absl::StrCat("[", absl::StrJoin(parallelism.micro_batches(), ", "),
                      "]");
}

// " / parallelism.expert 2" where ranks of data share experts.
std::string SharedText(const ParallelismSpec& parallelism) {
  const RankField* const field = FieldOfReplica(parallelism);
  if (field == nullptr) return "";
  const int ranks = RanksOfReplica(parallelism);
  return ranks == RanksOf(parallelism, field->name)
             ? absl::StrCat(" / ", field->Path(), " ", ranks)
             : absl::StrCat(" / the ", ranks, " that ", field->Path(),
                            " takes");
}

std::string ReplicasText(const ParallelismSpec& parallelism) {
  const int replicas = ReplicasOf(parallelism);
  if (RanksOfReplica(parallelism) == 1) {
    return absl::StrCat("parallelism.data is ", replicas);
  }
  return absl::StrCat("parallelism.data ", parallelism.data(),
                      SharedText(parallelism), " is ", replicas);
}

absl::Status CheckNumbers(const JobSpec& job) {
  const ParallelismSpec& parallelism = job.parallelism();
  const auto& given = parallelism.micro_batches();
  const int of_step = MicroBatchesOfStep(job);
  if (given.size() != ReplicasOf(parallelism)) {
    return FieldError(
        kField,
        absl::StrCat(ListText(parallelism), " has ", given.size(),
                     given.size() == 1 ? " number" : " numbers", ", and ",
                     ReplicasText(parallelism), "; give one for each replica"));
  }
  for (const int count : given) {
    RETURN_IF_ERROR(CheckInteger(kField, count, {.min = 1, .max = of_step}));
  }
  const int64_t sum = std::accumulate(given.begin(), given.end(), int64_t{0});
  if (sum == of_step) return absl::OkStatus();
  return FieldError(kField,
                    absl::StrCat(ListText(parallelism), " are ", sum,
                                 " micro-batches a step, and "
                                 "training.global_batch_size ",
                                 job.training().global_batch_size(),
                                 " / training.micro_batch_size ",
                                 job.training().micro_batch_size(),
                                 SharedText(parallelism), " are ", of_step,
                                 "; give numbers that add up to it, or use "
                                 "micro_batch_split: by_speed"));
}

// Whether replicas meet but at the end of a step.
absl::Status CheckUnevenFits(const ParallelismSpec& parallelism,
                             const char* field) {
  ASSIGN_OR_RETURN(const Pipeline schedule,
                   FindPipeline(parallelism.pipeline_schedule()));
  if (schedule.asynchronous) {
    return FieldError(
        field, absl::StrCat("does not go with ", schedule.name,
                            ": how old a micro-batch's weights are depends on "
                            "how many a replica runs; ",
                            kUseSynchronous, ", or leave it out"));
  }
  if (!parallelism.has_zero()) return absl::OkStatus();  // not chosen yet
  const ZeroRow zero = ZeroRowOf(parallelism);
  const bool meets = zero.gradients || zero.parameters;
  if (!meets || ZeroSizeAlong("data", parallelism) == 1) {
    return absl::OkStatus();
  }
  return FieldError(
      field,
      absl::StrCat("does not go with parallelism.zero: ", parallelism.zero(),
                   " over replicas, which meet in each micro-batch and so run "
                   "equally many; use zero 0 or 1, a zero_size that keeps to "
                   "the ranks of parallelism.context, or leave it out"));
}

bool AreEqual(const ParallelismSpec& parallelism) {
  const auto& given = parallelism.micro_batches();
  return std::adjacent_find(given.begin(), given.end(),
                            std::not_equal_to<>()) == given.end();
}

}  // namespace

absl::Status ResolveMicroBatches(JobSpec& job) {
  ParallelismSpec& parallelism = *job.mutable_parallelism();
  const bool given = !parallelism.micro_batches().empty();
  if (!parallelism.has_micro_batch_split()) {
    parallelism.set_micro_batch_split(given ? kSplitGiven : kSplitEven);
  }
  const std::string& split = parallelism.micro_batch_split();
  RETURN_IF_ERROR(
      CheckName(kSplitField, split, {kSplitEven, kSplitBySpeed, kSplitGiven}));
  if (given != (split == kSplitGiven)) {
    return FieldError(
        kSplitField,
        given ? absl::StrCat(split, " leaves nothing to ", kField,
                             "; leave one of them out")
              : absl::StrCat(kSplitGiven, " needs ", kField,
                             ", a number for each replica; give them, or use "
                             "even or by_speed"));
  }
  if (given) {
    RETURN_IF_ERROR(CheckNumbers(job));
    if (AreEqual(parallelism)) return absl::OkStatus();
    return CheckUnevenFits(parallelism, kField);
  }
  if (split == kSplitEven) return absl::OkStatus();
  const int of_step = MicroBatchesOfStep(job);
  const int replicas = ReplicasOf(parallelism);
  if (of_step < replicas) {
    return FieldError(
        "parallelism.data",
        absl::StrCat(replicas, " replicas, and a step has ", of_step,
                     " micro-batches; use at most ",
                     of_step * RanksOfReplica(parallelism),
                     ", a smaller training.micro_batch_size, or a larger "
                     "training.global_batch_size"));
  }
  return CheckUnevenFits(parallelism, kSplitField);
}

int MicroBatchesOfStep(const JobSpec& job) {
  return static_cast<int>(SamplesOfIsland(job) / MicroBatchSequences(job));
}

int MicroBatchesMost(const JobSpec& job) {
  const ParallelismSpec& parallelism = job.parallelism();
  const auto& given = parallelism.micro_batches();
  if (!given.empty()) return *std::max_element(given.begin(), given.end());
  const int of_step = MicroBatchesOfStep(job);
  const int replicas = ReplicasOfStep(job);
  return parallelism.micro_batch_split() == kSplitBySpeed
             ? of_step - (replicas - 1)
             : of_step / replicas;
}

}  // namespace troupe
