#include "scheduler/planner/resolve_islands.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/islands.h"
#include "proto/plan/model.h"
#include "proto/plan/outer_change.h"
#include "proto/plan/plan_limits.h"
#include "proto/plan/precision.h"
#include "scheduler/pipelines/pipelines.h"
#include "scheduler/tiers/offload.h"

namespace troupe {
namespace {

constexpr char kIslandsField[] = "parallelism.islands";
constexpr int64_t kRoundMax = int64_t{1} << 20;
constexpr double kMixingOfOverlap = 0.5;  // that of the paper

absl::Status RefuseIslandsWith(const std::string& field,
                               absl::string_view why) {
  return FieldError(kIslandsField,
                    absl::StrCat("does not go with ", field, ": ", why));
}

absl::Status ResolveOuter(OuterSpec& outer) {
  if (!outer.has_lr()) outer.set_lr(0.7);
  if (!outer.has_momentum()) outer.set_momentum(0.9);
  RETURN_IF_ERROR(CheckNumber("islands.outer.lr", outer.lr(),
                              {.min = 0, .max = 100, .min_open = true}));
  return CheckNumber("islands.outer.momentum", outer.momentum(),
                     {.min = 0, .max = 1, .max_open = true});
}

// Each fragment has a step of its own.
absl::Status CheckFragments(const IslandsSpec& islands) {
  RETURN_IF_ERROR(CheckInteger("islands.fragments", islands.fragments(),
                               {.min = 1, .max = kIslandsMax}));
  if (islands.fragments() <= islands.every()) return absl::OkStatus();
  return FieldError("islands.fragments",
                    absl::StrCat(islands.fragments(),
                                 " fragments need a step each, and islands "
                                 "exchange every ",
                                 islands.every(),
                                 " steps; use fewer, or a larger "
                                 "islands.every"));
}

absl::Status CheckOverlap(const IslandsSpec& islands) {
  if (islands.overlap() > 1) {
    return FieldError("islands.overlap",
                      absl::StrCat(islands.overlap(),
                                   ": an exchange is hidden behind one step; "
                                   "use 1, and more islands.fragments where a "
                                   "step is too short for one"));
  }
  RETURN_IF_ERROR(
      CheckInteger("islands.overlap", islands.overlap(), {.min = 0, .max = 1}));
  return CheckNumber("islands.mixing", islands.mixing(),
                     {.min = 0, .max = 1, .max_open = true});
}

absl::Status CheckIslandSchedule(const ParallelismSpec& parallelism) {
  ASSIGN_OR_RETURN(const Pipeline schedule,
                   FindPipeline(parallelism.pipeline_schedule()));
  if (!schedule.asynchronous) return absl::OkStatus();
  return RefuseIslandsWith(
      absl::StrCat("parallelism.pipeline_schedule: ", schedule.name),
      "its stages keep several versions of their weights, of which an exchange "
      "would change one; use a synchronous schedule such as 1f1b");
}

absl::Status CheckIslandTraining(const JobSpec& job) {
  if (job.evaluate()) {
    return RefuseIslandsWith("evaluate", "nothing is trained; leave it out");
  }
  if (ScalesLoss(job.training())) {
    return RefuseIslandsWith(
        "training.precision: fp16",
        "each island would find another loss scale, and skip other steps; use "
        "bf16 or f32");
  }
  if (job.optimizer().name() == "none") {
    return RefuseIslandsWith("optimizer.name: none", "nothing is learned");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ResolveIslands(JobSpec& job) {
  // A resolved job with islands has the same in both.
  if (job.optimizer().has_outer() &&
      (IslandsOf(job.parallelism()) == 1 ||
       job.optimizer().outer().SerializeAsString() !=
           job.islands().outer().SerializeAsString())) {
    return FieldError("optimizer.outer",
                      "is said by islands.outer; leave this one out");
  }
  const ParallelismSpec& parallelism = job.parallelism();
  if (parallelism.has_islands()) {
    RETURN_IF_ERROR(CheckInteger(kIslandsField, parallelism.islands(),
                                 {.min = 1, .max = kIslandsMax}));
  }
  const int count = IslandsOf(parallelism);
  if (count == 1) {
    job.mutable_parallelism()->clear_islands();
    if (!job.has_islands()) return absl::OkStatus();
    return FieldError("islands",
                      "is for several islands; give parallelism.islands, how "
                      "many there are, or leave this out");
  }
  IslandsSpec& islands = *job.mutable_islands();
  if (!islands.has_every()) islands.set_every(100);
  if (!islands.has_fragments()) islands.set_fragments(1);
  if (!islands.has_compress()) islands.set_compress(kUncompressed);
  if (!islands.has_overlap()) islands.set_overlap(0);
  if (!islands.has_mixing()) {
    islands.set_mixing(islands.overlap() > 0 ? kMixingOfOverlap : 0);
  }
  RETURN_IF_ERROR(CheckInteger("islands.every", islands.every(),
                               {.min = 1, .max = kRoundMax}));
  RETURN_IF_ERROR(CheckFragments(islands));
  RETURN_IF_ERROR(CheckName("islands.compress", islands.compress(),
                            {kUncompressed, kAsBf16, kAsInt4}));
  RETURN_IF_ERROR(CheckOverlap(islands));
  RETURN_IF_ERROR(ResolveOuter(*islands.mutable_outer()));
  *job.mutable_optimizer()->mutable_outer() = islands.outer();
  const int64_t batch = job.training().global_batch_size();
  if (batch % count == 0) return absl::OkStatus();
  return FieldError(
      kIslandsField,
      absl::StrCat(count, " do not divide training.global_batch_size ", batch,
                   ", of which each island has an equal part; "
                   "use another number"));
}

absl::Status CheckIslandsFit(const JobSpec& job) {
  const ParallelismSpec& parallelism = job.parallelism();
  if (IslandsOf(parallelism) == 1) return absl::OkStatus();
  RETURN_IF_ERROR(CheckIslandTraining(job));
  RETURN_IF_ERROR(CheckIslandSchedule(parallelism));
  if (parallelism.servers() > 0) {
    return RefuseIslandsWith(
        "parallelism.servers",
        "servers keep the weights of all replicas, and islands "
        "have weights of their own; leave one of them out");
  }
  if (parallelism.micro_batch_split() != "even") {
    return RefuseIslandsWith(
        "parallelism.micro_batches",
        "replicas of an island run equally many; leave it out");
  }
  if (StepsOnHost(job.memory())) {
    return RefuseIslandsWith(
        absl::StrCat("memory.optimizer: ", job.memory().optimizer()),
        "weights of the last exchange lie with the optimizer's "
        "states, and an exchange finds them on the device only; "
        "use device");
  }
  if (job.has_elastic()) {
    return FieldError("elastic",
                      "does not go with parallelism.islands: a job does not go "
                      "on with fewer islands yet; leave it out");
  }
  return absl::OkStatus();
}

}  // namespace troupe
