#include "scheduler/cluster/choose_writers.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/memory.h"
#include "scheduler/cluster/place_ranks.h"
#include "scheduler/layouts/layouts.h"

namespace troupe {
namespace {

constexpr char kCutItSo[] = "--tensor N and --pipeline N of troupe generate";

JobSpec CutOver(JobSpec job, int tensor, int pipeline) {
  job.mutable_parallelism()->set_tensor(tensor);
  job.mutable_parallelism()->set_pipeline(pipeline);
  return job;
}

// As by default: by columns of units, and not by samples.
bool IsCutInOneDimension(const ParallelismSpec& parallelism) {
  constexpr char kField[] = "tensor";
  return parallelism.tensor() < 2 ||
         &RowOf(parallelism, kField) == RowsOf(kField).front();
}

// As it was trained. A text has one sequence, of which no axis of a square or a
// cube could have samples: what was cut in several dimensions, or in other ways
// for some units, is cut in one, over as many of its ranks as its heads and
// columns go.
JobSpec CutAsTrained(const JobSpec& trained, const JobCompiler& compiler) {
  const ParallelismSpec& parallelism = trained.parallelism();
  const int pipeline = std::max(parallelism.pipeline(), 1);
  int tensor = std::max(parallelism.tensor(), 1);
  JobSpec cut = CutOver(trained, tensor, pipeline);
  const bool is_cut_so =
      IsCutInOneDimension(parallelism) && parallelism.strategies().empty();
  if (is_cut_so) return cut;
  while (tensor > 1 &&
         absl::IsInvalidArgument(compiler.PlanText(cut).status())) {
    do {
      --tensor;
    } while (parallelism.tensor() % tensor != 0);
    cut = CutOver(trained, tensor, pipeline);
  }
  return cut;
}

int64_t LargestPart(const TextPlan& plan) {
  return *std::max_element(plan.weight_bytes().begin(),
                           plan.weight_bytes().end());
}

// Idle workers that have so much memory.
std::vector<const Worker*> WithMemory(int64_t bytes,
                                      const WorkerTable& workers) {
  std::vector<const Worker*> fitting = workers.Idle();
  fitting.erase(std::remove_if(fitting.begin(), fitting.end(),
                               [&](const Worker* worker) {
                                 return DeviceBytes(*worker) < bytes;
                               }),
                fitting.end());
  return fitting;
}

// None where too few have the memory, or are of one kind.
std::vector<const Worker*> WritersOf(const TextPlan& plan, WorkerId first,
                                     const WorkerTable& workers) {
  const int needed = plan.weight_bytes_size();
  const std::vector<const Worker*> fitting =
      WithMemory(LargestPart(plan), workers);
  if (needed == 1) {
    for (const Worker* worker : fitting) {
      if (worker->id == first) return {worker};
    }
  }
  const auto kinds = OfOneKind(fitting, needed);
  if (kinds.empty()) return {};
  return PlaceRanks(kinds.front(), needed);
}

Writers Seated(TextPlan plan, const std::vector<const Worker*>& placed,
               const JobCompiler& compiler) {
  std::vector<WorkerDescription> descriptions;
  Writers writers;
  for (const Worker* worker : placed) {
    writers.ids.push_back(worker->id);
    descriptions.push_back(worker->status.description());
  }
  compiler.ConnectText(descriptions, plan);
  writers.plan = std::move(plan);
  return writers;
}

std::string MostMemory(const WorkerTable& workers) {
  const std::vector<const Worker*> idle = workers.Idle();
  if (idle.empty()) return "no worker is idle";
  const Worker* most = *std::max_element(
      idle.begin(), idle.end(), [](const Worker* a, const Worker* b) {
        return DeviceBytes(*a) < DeviceBytes(*b);
      });
  return absl::StrCat("of the idle workers ", most->name(), " has most, ",
                      ReadableBytes(DeviceBytes(*most)));
}

std::string Takes(const ParallelismSpec& cut) {
  const int64_t needed = int64_t{cut.tensor()} * cut.pipeline();
  return needed == 1
             ? "the text takes one idle worker"
             : absl::StrCat("the text takes ", needed,
                            " idle workers of one kind, tensor ", cut.tensor(),
                            " x pipeline ", cut.pipeline());
}

// Before the model is cut: nobody has to cut it over more than there are.
absl::Status CheckThereAreAsMany(const std::string& why,
                                 const ParallelismSpec& cut,
                                 const WorkerTable& workers) {
  if (int64_t{cut.tensor()} * cut.pipeline() <= workers.in_service_count()) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat(
      why, Takes(cut), ", and the cluster has ", workers.in_service_count(),
      "; add workers, or cut the model otherwise: ", kCutItSo));
}

absl::Status TooFew(const std::string& why, const ParallelismSpec& cut,
                    const TextPlan& plan, const WorkerTable& workers) {
  const int64_t bytes = LargestPart(plan);
  return absl::UnavailableError(absl::StrCat(
      why, Takes(cut), ", with ", ReadableBytes(bytes), " of memory each, and ",
      workers.Idle().size(), " of ", workers.in_service_count(), " are idle, ",
      WithMemory(bytes, workers).size(),
      " of these with that much; try again when a job has ended, add workers, "
      "or cut the model otherwise: ",
      kCutItSo));
}

}  // namespace

absl::StatusOr<Writers> ChooseWriters(const GenerateRequest& request,
                                      const JobSpec& trained, WorkerId first,
                                      const JobCompiler& compiler,
                                      const WorkerTable& workers) {
  const bool asked = request.has_tensor() || request.has_pipeline();
  std::string why;
  if (!asked) {
    ASSIGN_OR_RETURN(TextPlan whole, compiler.PlanText(CutOver(trained, 1, 1)));
    const auto placed = WritersOf(whole, first, workers);
    if (!placed.empty()) return Seated(std::move(whole), placed, compiler);
    why = absl::StrCat("the model's weights take ",
                       ReadableBytes(LargestPart(whole)), " in f32, and ",
                       MostMemory(workers), "; ");
  }
  const JobSpec cut =
      asked ? CutOver(trained, request.has_tensor() ? request.tensor() : 1,
                      request.has_pipeline() ? request.pipeline() : 1)
            : CutAsTrained(trained, compiler);
  const ParallelismSpec& parallelism = cut.parallelism();
  if (!asked && parallelism.tensor() == 1 && parallelism.pipeline() == 1) {
    return absl::UnavailableError(absl::StrCat(
        why, "the job that trained it did not cut it; say over how many ",
        "workers to cut it, ", kCutItSo, ", or add a worker with more memory"));
  }
  if (!asked) {
    absl::StrAppend(&why, IsCutInOneDimension(trained.parallelism())
                              ? "cut as its job was, "
                              : "cut in one dimension, ");
  }
  RETURN_IF_ERROR(CheckThereAreAsMany(why, parallelism, workers));
  ASSIGN_OR_RETURN(TextPlan plan, compiler.PlanText(cut));
  const auto placed = WritersOf(plan, first, workers);
  if (placed.empty()) return TooFew(why, parallelism, plan, workers);
  return Seated(std::move(plan), placed, compiler);
}

}  // namespace troupe
