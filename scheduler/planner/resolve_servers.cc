#include "scheduler/planner/resolve_servers.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/optimizer_rows.h"
#include "proto/plan/plan_limits.h"
#include "proto/plan/sharing.h"
#include "scheduler/pipelines/pipelines.h"

namespace troupe {
namespace {

constexpr char kServersField[] = "parallelism.servers";
constexpr char kSync[] = "sync";
constexpr char kOwn[] = "own";
constexpr char kWorkers[] = "workers";
constexpr int kEveryMax = 1 << 30;

absl::Status CheckEvery(const char* path, int steps) {
  RETURN_IF_ERROR(CheckInteger(path, steps, {.min = 1, .max = kEveryMax}));
  if (steps == 1) return absl::OkStatus();
  return FieldError(path,
                    "with servers.mode: sync all replicas compute each step "
                    "with the weights of the step before; use 1, or leave it "
                    "out");
}

// REQUIRES all fields set but staleness.
absl::Status CheckMode(const ServersSpec& servers) {
  RETURN_IF_ERROR(
      CheckName("servers.mode", servers.mode(), {kSync, "async", "bounded"}));
  if (servers.mode() != kSync) {
    return FieldError("servers.mode",
                      absl::StrCat(servers.mode(),
                                   " is not available: replicas that push and "
                                   "pull at times of their own are not built "
                                   "yet; use sync"));
  }
  if (servers.has_staleness()) {
    return FieldError("servers.staleness",
                      "is for servers.mode: bounded; leave it out");
  }
  RETURN_IF_ERROR(CheckEvery("servers.push_every", servers.push_every()));
  return CheckEvery("servers.pull_every", servers.pull_every());
}

// Each replica is the server of a slice.
absl::Status ServeEachOther(ParallelismSpec& parallelism) {
  if (parallelism.servers() > 0) {
    return FieldError(kServersField,
                      absl::StrCat(parallelism.servers(),
                                   " servers of their own do not go with "
                                   "servers.on: workers, where replicas serve "
                                   "each other; leave one of them out"));
  }
  if (!parallelism.has_zero()) parallelism.set_zero(1);
  if (parallelism.zero() == 1) return absl::OkStatus();
  return FieldError("parallelism.zero",
                    absl::StrCat(parallelism.zero(),
                                 " is not what servers.on: workers says, which "
                                 "is zero: 1; leave one of them out"));
}

absl::Status RefuseWith(const std::string& field, absl::string_view why) {
  return FieldError(kServersField,
                    absl::StrCat("does not go with ", field, ": ", why));
}

// What cuts units: a server's slices would be of pieces of them.
absl::Status CheckUncut(const ParallelismSpec& parallelism) {
  for (const RankField& field : RankFields()) {
    if (RanksOf(parallelism, field.name) < 2) continue;
    return RefuseWith(
        field.Path(),
        "servers keep units that each replica has whole, and these ranks share "
        "units; use parallelism.data and pipeline");
  }
  if (parallelism.strategies().empty()) return absl::OkStatus();
  return RefuseWith("parallelism.strategies",
                    "servers keep units that each replica has whole; leave "
                    "strategies out");
}

absl::Status CheckSchedule(const ParallelismSpec& parallelism) {
  ASSIGN_OR_RETURN(const Pipeline schedule,
                   FindPipeline(parallelism.pipeline_schedule()));
  if (!schedule.asynchronous) return absl::OkStatus();
  return RefuseWith(
      absl::StrCat("parallelism.pipeline_schedule: ", schedule.name),
      "its stages keep several versions of their weights, and servers keep "
      "one; use a synchronous schedule such as 1f1b");
}

}  // namespace

absl::Status ResolveServers(JobSpec& job) {
  ParallelismSpec& parallelism = *job.mutable_parallelism();
  RETURN_IF_ERROR(CheckInteger(kServersField, parallelism.servers(),
                               {.min = 0, .max = kDataMax}));
  if (parallelism.servers() == 0 && !job.has_servers()) {
    return absl::OkStatus();
  }
  ServersSpec& servers = *job.mutable_servers();
  if (!servers.has_mode()) servers.set_mode(kSync);
  if (!servers.has_push_every()) servers.set_push_every(1);
  if (!servers.has_pull_every()) servers.set_pull_every(1);
  if (!servers.has_on()) {
    servers.set_on(parallelism.servers() > 0 ? kOwn : kWorkers);
  }
  RETURN_IF_ERROR(CheckMode(servers));
  RETURN_IF_ERROR(CheckName("servers.on", servers.on(), {kOwn, kWorkers}));
  if (servers.on() == kWorkers) return ServeEachOther(parallelism);
  if (parallelism.servers() == 0) {
    return FieldError("servers.on",
                      "own needs parallelism.servers, how many ranks they are; "
                      "give it, or use workers");
  }
  if (parallelism.zero() > 0) {
    return RefuseWith(absl::StrCat("parallelism.zero: ", parallelism.zero()),
                      "replicas keep no state that could be dealt over them; "
                      "leave zero out");
  }
  parallelism.set_zero(0);
  return absl::OkStatus();
}

absl::Status CheckServersFit(const JobSpec& job) {
  const ParallelismSpec& parallelism = job.parallelism();
  if (parallelism.servers() == 0) return absl::OkStatus();
  RETURN_IF_ERROR(CheckUncut(parallelism));
  RETURN_IF_ERROR(CheckSchedule(parallelism));
  const TrainingSpec& training = job.training();
  if (!training.freeze().empty() || training.has_lora()) {
    return RefuseWith(
        training.has_lora() ? "training.lora" : "training.freeze",
        "servers keep what is trained, and parameters that never change would "
        "lie on replicas, which save nothing");
  }
  if (training.precision() != "f32" &&
      training.gradient_precision() == "parameters") {
    return RefuseWith("training.gradient_precision: parameters",
                      "servers add gradients one after the other, in f32; use "
                      "f32");
  }
  if (!ChangesParameters(job.optimizer())) {
    return RefuseWith("optimizer.name: none", "there is nothing to keep");
  }
  if (job.recovery().copies() > 0) {
    return FieldError("recovery.copies",
                      absl::StrCat("1 does not go with ", kServersField,
                                   ": servers hand no copies of their state to "
                                   "other workers yet; use 0, with which the "
                                   "job goes on from its newest checkpoint"));
  }
  return absl::OkStatus();
}

}  // namespace troupe
