#include "scheduler/planner/fit.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/status.h"
#include "proto/plan/islands.h"
#include "proto/plan/mesh.h"
#include "proto/plan/model.h"
#include "proto/plan/ranks_needed.h"
#include "proto/plan/sharing.h"
#include "scheduler/layouts/axes.h"
#include "scheduler/layouts/layouts.h"
#include "scheduler/layouts/replicas.h"
#include "scheduler/layouts/zero.h"
#include "scheduler/planner/remedies.h"
#include "scheduler/planner/resolve.h"

namespace troupe {
namespace {

// The same ranks with another micro-batch, and in a step as many of them as
// there are, or at most micro_batches_max.
JobSpec WithMicroBatch(
    const JobSpec& job, int micro_batch,
    int micro_batches_max = std::numeric_limits<int>::max()) {
  JobSpec smaller = job;
  TrainingSpec& training = *smaller.mutable_training();
  int micro_batches = 0;  // of all ranks of parallelism.data
  auto& given = *smaller.mutable_parallelism()->mutable_micro_batches();
  for (int& count : given) {
    count = std::min(micro_batches_max,
                     count * training.micro_batch_size() / micro_batch);
    micro_batches += count * RanksOfReplica(job.parallelism());
  }
  if (given.empty()) {
    const int ranks = IslandsOf(job.parallelism()) * DataOfStep(job);
    const int rank_batch = training.global_batch_size() / ranks;
    micro_batches =
        ranks * std::min(micro_batches_max, rank_batch / micro_batch);
  }
  training.set_micro_batch_size(micro_batch);
  training.set_global_batch_size(micro_batch * micro_batches);
  training.set_validation_sequences(
      std::min(training.validation_sequences(), training.global_batch_size()));
  return smaller;
}

// Smaller micro-batches that the job could have, ascending.
std::vector<int> SmallerOnes(const JobSpec& job) {
  const TrainingSpec& training = job.training();
  std::vector<int> replica_batches;
  for (const int count : job.parallelism().micro_batches()) {
    replica_batches.push_back(count * training.micro_batch_size());
  }
  if (replica_batches.empty()) {
    replica_batches = {
        static_cast<int>(SamplesOfIsland(job) / DataOfStep(job))};
  }
  std::vector<int> sizes;
  for (int b = 1; b < training.micro_batch_size(); ++b) {
    if (std::any_of(replica_batches.begin(), replica_batches.end(),
                    [b](int batch) { return batch % b != 0; })) {
      continue;
    }
    const JobSpec smaller = WithMicroBatch(job, b);
    if (ResolveJob(smaller).ok()) sizes.push_back(b);
  }
  return sizes;
}

// The largest smaller micro-batch that fits; 0: none. A larger one needs more
// memory, so that few plans tell; one that the schedule refuses tells nothing.
absl::StatusOr<int> LargestOfSteps(
    const JobSpec& job, int micro_batches_max,
    const std::vector<WorkerDescription>& workers, const BuildPlan& build) {
  std::vector<int> sizes = SmallerOnes(job);
  int fits = 0;
  for (size_t first = 0, end = sizes.size(); first < end;) {
    const size_t middle = first + (end - first) / 2;
    const absl::StatusOr<Plan> plan =
        build(WithMicroBatch(job, sizes[middle], micro_batches_max));
    if (absl::IsInvalidArgument(plan.status())) {
      sizes.erase(sizes.begin() + middle);
      --end;
      continue;
    }
    if (!plan.ok()) return plan.status();
    if (CheckMemory(*plan, workers).ok()) {
      fits = sizes[middle];
      first = middle + 1;
    } else {
      end = middle;
    }
  }
  return fits;
}

// The same of the job's own steps.
absl::StatusOr<int> LargestThatFits(
    const JobSpec& job, const std::vector<WorkerDescription>& workers,
    const BuildPlan& build) {
  constexpr int kAll = std::numeric_limits<int>::max();
  if (job.parallelism().pipeline() > 1) {
    return LargestOfSteps(job, kAll, workers, build);
  }
  // Without a pipeline, memory seldom depends on how many micro-batches a step
  // has once there are two, and two make a short plan.
  ASSIGN_OR_RETURN(const int fits, LargestOfSteps(job, 2, workers, build));
  if (fits == 0) return 0;
  const absl::StatusOr<Plan> plan = build(WithMicroBatch(job, fits));
  // Of a whole step it may be too long.
  if (!plan.ok() && !absl::IsInvalidArgument(plan.status())) {
    return plan.status();
  }
  if (plan.ok() && CheckMemory(*plan, workers).ok()) return fits;
  return LargestOfSteps(job, kAll, workers, build);
}

// Whether the job fits, on as many workers as it needs: those that there are,
// and more like them.
absl::StatusOr<bool> Fits(const JobSpec& job,
                          const std::vector<WorkerDescription>& workers,
                          const BuildPlan& build) {
  if (!ResolveJob(job).ok()) return false;
  const absl::StatusOr<Plan> plan = build(job);
  if (absl::IsInvalidArgument(plan.status())) return false;
  if (!plan.ok()) return plan.status();
  std::vector<WorkerDescription> enough;
  for (int r = 0; r < MeshSize(plan->mesh()); ++r) {
    enough.push_back(workers[r % workers.size()]);
  }
  return CheckMemory(*plan, enough).ok();
}

// By how much more to cut along an axis.
constexpr int kTimesMore[] = {2, 3, 4, 8};

std::string OnSoManyWorkers(const JobSpec& job) {
  return absl::StrCat(", with which it fits, on ", RanksNeeded(job),
                      " workers like these, ");
}

// `times` times as many ranks on each side of the square or cube that they are.
int MoreRanks(const LayoutRow& row, const ParallelismSpec& now, int times) {
  const std::string field(row.field);
  const int ranks = RanksOf(now, field);
  const SharedAxis* side = nullptr;
  const std::vector<SharedAxis> axes = AxesOfRow(row, now);
  for (const SharedAxis& axis : axes) {
    if (axis.field.name != absl::StrCat("parallelism.", field)) continue;
    if (side == nullptr || axis.field.power >= side->field.power) side = &axis;
  }
  return side == nullptr ? ranks * times
                         : side->field.ValueFor(side->size * times);
}

bool HasLeaner(const LayoutRow& row, const ParallelismSpec& now) {
  return !row.leaner.field.empty() &&
         FieldText(now, row.leaner.field) != row.leaner.value;
}

void MakeLeaner(const LayoutRow& row, ParallelismSpec& parallelism) {
  SetField(row.leaner.field, row.leaner.value, parallelism);
}

std::string LeanerText(const LayoutRow& row) {
  return absl::StrCat("parallelism.", row.leaner.field, ": ", row.leaner.value);
}

// The job's own row; where units are not shared by the field, what is advised.
std::vector<const LayoutRow*> RowsToAdvise(const std::string& field,
                                           const ParallelismSpec& now) {
  if (RanksOf(now, field) > 1) return {&RowOf(now, field)};
  std::vector<const LayoutRow*> rows;
  for (const LayoutRow* const row : RowsOf(field)) {
    if (row->is_advised) rows.push_back(row);
  }
  return rows;
}

// As `now`, by this row over `times` times as many ranks.
ParallelismSpec Shared(const LayoutRow& row, const ParallelismSpec& now,
                       int times) {
  ParallelismSpec more = now;
  const std::string field(row.field);
  const int ranks = MoreRanks(row, now, times);
  SetRanks(field, ranks, more);
  if (!row.implied && !row.method.empty()) {
    SetField(MethodNameOf(row), std::string(row.method), more);
  }
  if (now.zero() > 0 && now.zero_size() == DealtMost(now)) {
    more.set_zero_size(DealtMost(more));
  }
  return more;
}

// What to cut units by, over more ranks of a field, so that the job fits, as
// advice; empty: nothing found.
absl::StatusOr<std::string> CutThatFits(
    const std::string& field, const JobSpec& job,
    const std::vector<WorkerDescription>& workers, const BuildPlan& build) {
  const ParallelismSpec& now = job.parallelism();
  // Those are for as many ranks as there are.
  if (!now.strategies().empty()) return "";
  const std::vector<const LayoutRow*> rows = RowsToAdvise(field, now);
  for (const bool leaner : {false, true}) {
    for (const int times : kTimesMore) {
      for (const LayoutRow* const row : rows) {
        if (leaner && !HasLeaner(*row, now)) continue;
        JobSpec other = job;
        ParallelismSpec& cut = *other.mutable_parallelism();
        cut = Shared(*row, now, times);
        if (leaner) MakeLeaner(*row, cut);
        ASSIGN_OR_RETURN(const bool fits, Fits(other, workers, build));
        if (!fits) continue;
        return absl::StrCat(
            "parallelism.", field, ": ", RanksOf(cut, field),
            row == rows.front() ? "" : absl::StrCat(" and ", MethodText(*row)),
            leaner ? absl::StrCat(" and ", LeanerText(*row)) : "",
            OnSoManyWorkers(other));
      }
    }
  }
  return "";
}

// The same ranks, shared with less memory, as advice; empty: that is not there,
// or does not fit either.
absl::StatusOr<std::string> LeanerThatFits(
    const JobSpec& job, const std::vector<WorkerDescription>& workers,
    const BuildPlan& build) {
  if (!job.parallelism().strategies().empty()) return "";
  for (const LayoutRow* const row : RowsInUse(job.parallelism())) {
    if (!HasLeaner(*row, job.parallelism())) continue;
    JobSpec other = job;
    MakeLeaner(*row, *other.mutable_parallelism());
    ASSIGN_OR_RETURN(const bool fits, Fits(other, workers, build));
    if (!fits) continue;
    return absl::StrCat(LeanerText(*row), ", with which it fits",
                        row->leaner.why.empty() ? "" : ", ", row->leaner.why);
  }
  return "";
}

// What makes the job fit on the same ranks, and what a step then takes longer,
// the cheapest first, as advice; empty: nothing does. All that is enough with
// one change or two, or the cheapest that is found of more.
absl::StatusOr<std::string> RemediesThatFit(
    const Plan& plan, const std::vector<WorkerDescription>& workers,
    const BuildPlan& build) {
  RemedyOptions options = {
      .may_change = [](const std::string&) { return true; }, .changes_max = 2};
  ASSIGN_OR_RETURN(Remedies remedies,
                   FindRemedies(plan, workers, build, options));
  if (remedies.fitting.empty()) {
    options.changes_max = kMemoryFields;
    ASSIGN_OR_RETURN(remedies, FindRemedies(plan, workers, build, options));
    if (remedies.fitting.size() > 1) remedies.fitting.resize(1);
  }
  if (remedies.fitting.empty()) return "";
  std::vector<std::string> texts;
  for (const Remedy& remedy : remedies.fitting) {
    texts.push_back(remedy.Text());
  }
  return absl::StrCat(absl::StrJoin(texts, " or "),
                      ", with which it fits and a step is predicted to take so "
                      "much longer");
}

std::string ModelInWords(const ModelSpec& model) {
  if (model.architecture() == "synthetic") {
    return absl::StrCat("model.units: a model of ", model.units(), " units");
  }
  if (IsGraph(model)) {
    return absl::StrCat("model.graph: a model of ", UnitCount(model), " units");
  }
  return absl::StrCat("model.hidden_size: ", model.hidden_size(), " with ",
                      model.num_hidden_layers(), " blocks");
}

}  // namespace

absl::Status CheckFit(const Plan& plan,
                      const std::vector<WorkerDescription>& workers,
                      const BuildPlan& build) {
  const absl::Status budgets = CheckMemory(plan, workers);
  if (budgets.ok()) return budgets;
  const JobSpec& job = plan.job();
  ASSIGN_OR_RETURN(const int fits, LargestThatFits(job, workers, build));
  ASSIGN_OR_RETURN(const std::string remedies,
                   RemediesThatFit(plan, workers, build));
  ASSIGN_OR_RETURN(const std::string leaner,
                   LeanerThatFits(job, workers, build));
  if (fits > 0) {
    return Annotate(
        budgets,
        absl::StrCat(
            "training.micro_batch_size: ", job.training().micro_batch_size(),
            " needs more memory than there is; use ", fits,
            ", the largest that fits", leaner.empty() ? "" : ", or ", leaner,
            remedies.empty() ? "" : ", or ", remedies));
  }
  // A stage is a unit at least.
  const bool may_cut = job.parallelism().pipeline() < plan.units_size();
  std::string cuts;
  const std::vector<RankField>& fields = FactorFields();
  for (auto field = fields.rbegin(); field != fields.rend(); ++field) {
    ASSIGN_OR_RETURN(const std::string cut,
                     CutThatFits(field->name, job, workers, build));
    cuts += cut;
  }
  return Annotate(
      budgets,
      absl::StrCat(ModelInWords(job.model()),
                   " does not fit with any training.micro_batch_size; use ",
                   leaner, leaner.empty() ? "" : ", ", remedies,
                   remedies.empty() ? "" : ", ", cuts,
                   may_cut ? "more ranks of a pipeline "
                             "(parallelism.pipeline), "
                           : "",
                   "a smaller model or workers with more memory"));
}

}  // namespace troupe
