#include "scheduler/search/ruled_out.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/memory.h"
#include "proto/plan/worker_refusal.h"
#include "scheduler/planner/fit_memory.h"
#include "scheduler/planner/resolve.h"
#include "scheduler/planner/resolve_micro_batches.h"
#include "scheduler/planner/ways.h"
#include "scheduler/tiers/recompute.h"

namespace troupe {
namespace {

// How many times as many workers may be enough.
constexpr int kTimesMoreWorkers[] = {2, 3, 4, 8, 16};
constexpr size_t kMoreWorkersMax = 4096;

// Resolved, as far as it can be.
WayFields FieldsOf(const Candidate& candidate, const JobSpec& job) {
  const JobSpec chosen = JobOf(job, candidate);
  const absl::StatusOr<JobSpec> resolved = ResolveJob(chosen);
  return FieldsOfChoice(resolved.ok() ? *resolved : chosen, job);
}

std::string TextOf(const WayFields& fields) {
  const std::string micro_batch =
      absl::StrCat(" micro_batch_size: ", fields.micro_batch_size());
  return absl::StrCat(fields.parallelism().ShortDebugString(), micro_batch,
                      fields.recompute().empty()
                          ? ""
                          : absl::StrCat(" recompute: ", fields.recompute()));
}

// `times` times as many workers, on hosts of their own.
std::vector<WorkerDescription> Times(
    const std::vector<WorkerDescription>& workers, int times) {
  std::vector<WorkerDescription> more;
  for (int copy = 0; copy < times; ++copy) {
    for (const WorkerDescription& worker : workers) {
      more.push_back(worker);
      if (copy == 0 || worker.host().empty()) continue;
      more.back().set_host(absl::StrCat(worker.host(), "/", copy));
    }
  }
  return more;
}

// The fewest of such on which something fits, by estimates; 0: not found.
int WorkersThatFit(const JobSpec& job,
                   const std::vector<WorkerDescription>& workers,
                   const MayGoOn& may_go_on) {
  // Larger micro-batches need more memory.
  JobSpec smallest = job;
  if (!job.training().has_micro_batch_size()) {
    smallest.mutable_training()->set_micro_batch_size(1);
  }
  for (const int times : kTimesMoreWorkers) {
    if (times * workers.size() > kMoreWorkersMax) break;
    const std::vector<WorkerDescription> more = Times(workers, times);
    const int count = static_cast<int>(more.size());
    KnownCosts known;
    Candidates candidates(smallest, more, kEstimateError, may_go_on, known);
    if (!candidates.EstimateRanks(count).ok()) break;
    if (!candidates.empty()) return count;
  }
  return 0;
}

absl::Status NothingPlanned(const absl::Status& first_refusal, size_t workers) {
  if (!first_refusal.ok()) {
    return Annotate(first_refusal,
                    "parallelism: auto finds nothing that can be planned");
  }
  return FieldError(
      "parallelism",
      absl::StrCat("auto finds no way to divide the job over ", workers,
                   " workers; use other workers, or leave more fields open"));
}

}  // namespace

WayFields FieldsOfChoice(const JobSpec& chosen, const JobSpec& job) {
  WayFields fields = FieldsOfWay(chosen, JobSpec());
  const ParallelismSpec& now = chosen.parallelism();
  ParallelismSpec& needed = *fields.mutable_parallelism();
  if (now.pipeline() > 1) {
    needed.set_pipeline(now.pipeline());
    needed.set_pipeline_schedule(now.pipeline_schedule());
    if (now.virtual_stages() > 1) {
      needed.set_virtual_stages(now.virtual_stages());
    }
  }
  // The planner has made numbers of it.
  if (now.micro_batch_split() == kSplitGiven &&
      job.parallelism().micro_batches().empty()) {
    needed.set_micro_batch_split(kSplitBySpeed);
  }
  const std::string& mode = chosen.memory().recompute().mode();
  if (LeavesOpen(job.memory()) && mode != kRecomputeNone) {
    fields.set_recompute(mode);
  }
  return fields;
}

void AddRuledOut(const JobSpec& job, const Candidates& candidates,
                 SearchSummary& summary) {
  if (candidates.too_large() > 0) {
    const Estimated& nearest = candidates.nearest().front();
    RuledOut& out = *summary.add_ruled_out();
    out.set_reason("too little memory");
    out.set_count(candidates.too_large());
    *out.mutable_nearest() = FieldsOf(nearest.candidate, job);
    out.set_lacks_bytes(nearest.estimate.lacks);
  }
  std::vector<std::pair<std::string, int64_t>> reasons(
      candidates.reasons().begin(), candidates.reasons().end());
  std::stable_sort(
      reasons.begin(), reasons.end(),
      [](const auto& a, const auto& b) { return a.second > b.second; });
  for (const auto& [reason, count] : reasons) {
    RuledOut& out = *summary.add_ruled_out();
    out.set_reason(reason);
    out.set_count(count);
  }
}

absl::Status RefusalOf(const JobSpec& job,
                       const std::vector<WorkerDescription>& workers,
                       const Candidates& candidates, const MayGoOn& may_go_on) {
  if (candidates.nearest().empty() && candidates.estimated() == 0) {
    return NothingPlanned(candidates.first_refusal(), workers.size());
  }
  std::string closest;
  if (!candidates.nearest().empty()) {
    const Estimated& one = candidates.nearest().front();
    closest =
        absl::StrCat("; closest is {", TextOf(FieldsOf(one.candidate, job)),
                     "}, whose fullest rank needs ",
                     ReadableBytes(one.estimate.bytes), " or more, ",
                     ReadableBytes(one.estimate.lacks), " more than there are");
  }
  const int more = WorkersThatFit(job, workers, may_go_on);
  return ForWorkers(FieldError(
      "parallelism",
      absl::StrCat("auto: none of ", candidates.divisions(),
                   " divisions fits the memory of ", workers.size(), " workers",
                   closest, "; use ",
                   LeavesOpen(job.memory()) ? "" : "memory: auto, ",
                   more > 0 ? absl::StrCat(more, " workers like these, ") : "",
                   "workers with more memory, or a smaller model")));
}

}  // namespace troupe
