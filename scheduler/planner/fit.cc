#include "scheduler/planner/fit.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/status.h"
#include "proto/plan/axes.h"
#include "proto/plan/mesh.h"
#include "proto/plan/model.h"
#include "proto/plan/ranks_needed.h"
#include "scheduler/planner/remedies.h"
#include "scheduler/planner/resolve.h"

namespace troupe {
namespace {

// The same ranks with another micro-batch, and in a step as many of them as
// there are, or at most so many.
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
    micro_batches += count * std::max(job.parallelism().expert(), 1);
  }
  if (given.empty()) {
    const int replicas = job.parallelism().data();
    const int replica_batch = training.global_batch_size() / replicas;
    micro_batches =
        replicas * std::min(micro_batches_max, replica_batch / micro_batch);
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
    replica_batches = {training.global_batch_size() / job.parallelism().data()};
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

// Of sequences cut over ranks: which has whole rows of scores in memory, and
// which computes the same without.
constexpr char kWithScores[] = "ring_self_attention";
constexpr char kWithoutScores[] = "ring";

// By how much more to cut along an axis.
constexpr int kTimesMore[] = {2, 3, 4, 8};

std::string OnSoManyWorkers(const JobSpec& job) {
  return absl::StrCat(", with which it fits, on ", RanksNeeded(job),
                      " workers like these, ");
}

// Numbers of ranks that could share units by the job's method: so many times as
// many on each side of the square or cube that they are.
std::vector<int> LargerTensors(const ParallelismSpec& now) {
  SizeField field = {.name = "parallelism.tensor", .value = 1};
  int size = 1;
  for (const Axis& axis : AxesOf(now)) {
    const SizeField of = SizeFieldOf(now, axis.name());
    if (of.name != field.name || of.power < field.power) continue;
    field = of;
    size = axis.size();
  }
  std::vector<int> tensors;
  for (const int more : kTimesMore)
    tensors.push_back(field.ValueFor(size * more));
  return tensors;
}

// What to cut units by so that the job fits, as advice; empty: nothing found.
absl::StatusOr<std::string> TensorCutThatFits(
    const JobSpec& job, const std::vector<WorkerDescription>& workers,
    const BuildPlan& build) {
  const ParallelismSpec& now = job.parallelism();
  // Those are for as many ranks as there are.
  if (!now.strategies().empty()) return "";
  JobSpec other = job;
  ParallelismSpec& cut = *other.mutable_parallelism();
  if (now.tensor() > 1 && !now.sequence_parallel()) {
    cut.set_sequence_parallel(true);
    ASSIGN_OR_RETURN(const bool fits, Fits(other, workers, build));
    if (fits)
      return "parallelism.sequence_parallel: true, with which it fits, ";
  }
  for (const bool sequence : {false, true}) {
    if (!sequence && now.sequence_parallel()) continue;
    for (const int tensor : LargerTensors(now)) {
      cut = now;
      cut.set_tensor(tensor);
      cut.set_sequence_parallel(sequence);
      ASSIGN_OR_RETURN(const bool fits, Fits(other, workers, build));
      if (!fits) continue;
      return absl::StrCat("parallelism.tensor: ", cut.tensor(),
                          sequence && !now.sequence_parallel()
                              ? " and parallelism.sequence_parallel: true"
                              : "",
                          OnSoManyWorkers(other));
    }
  }
  return "";
}

// The same of sequences.
absl::StatusOr<std::string> ContextCutThatFits(
    const JobSpec& job, const std::vector<WorkerDescription>& workers,
    const BuildPlan& build) {
  const ParallelismSpec& now = job.parallelism();
  if (!now.strategies().empty()) return "";
  std::vector<std::string> methods = {"ulysses", "ring"};
  if (now.has_context_method()) methods = {now.context_method()};
  if (now.context_method() == kWithScores) methods.emplace_back(kWithoutScores);
  for (const int more : kTimesMore) {
    for (const std::string& method : methods) {
      JobSpec other = job;
      ParallelismSpec& cut = *other.mutable_parallelism();
      cut.set_context(now.context() * more);
      cut.set_context_method(method);
      if (now.zero() > 0) cut.set_zero_size(now.zero_size() * more);
      ASSIGN_OR_RETURN(const bool fits, Fits(other, workers, build));
      if (!fits) continue;
      return absl::StrCat("parallelism.context: ", cut.context(),
                          method == methods.front()
                              ? ""
                              : absl::StrCat(" with context_method: ", method),
                          OnSoManyWorkers(other));
    }
  }
  return "";
}

// The same ranks without rows of scores in memory, as advice; empty: they have
// none, or that does not fit either.
absl::StatusOr<std::string> MethodThatFits(
    const JobSpec& job, const std::vector<WorkerDescription>& workers,
    const BuildPlan& build) {
  if (job.parallelism().context_method() != kWithScores) return "";
  JobSpec other = job;
  other.mutable_parallelism()->set_context_method(kWithoutScores);
  ASSIGN_OR_RETURN(const bool fits, Fits(other, workers, build));
  if (!fits) return "";
  return absl::StrCat("parallelism.context_method: ", kWithoutScores,
                      ", with which it fits, as no scores are in memory");
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
  ASSIGN_OR_RETURN(const std::string method,
                   MethodThatFits(job, workers, build));
  if (fits > 0) {
    return Annotate(
        budgets,
        absl::StrCat(
            "training.micro_batch_size: ", job.training().micro_batch_size(),
            " needs more memory than there is; use ", fits,
            ", the largest that fits", method.empty() ? "" : ", or ", method,
            remedies.empty() ? "" : ", or ", remedies));
  }
  // A stage is a unit at least.
  const bool may_cut = job.parallelism().pipeline() < plan.units_size();
  ASSIGN_OR_RETURN(const std::string tensor,
                   TensorCutThatFits(job, workers, build));
  ASSIGN_OR_RETURN(const std::string context,
                   ContextCutThatFits(job, workers, build));
  return Annotate(
      budgets,
      absl::StrCat(ModelInWords(job.model()),
                   " does not fit with any training.micro_batch_size; use ",
                   method, method.empty() ? "" : ", ", remedies,
                   remedies.empty() ? "" : ", ", tensor, context,
                   may_cut ? "more ranks of a pipeline "
                             "(parallelism.pipeline), "
                           : "",
                   "a smaller model or workers with more memory"));
}

}  // namespace troupe
