#include "tests/scheduler/search/drawn_space.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/plan/ranks_needed.h"
#include "scheduler/planner/check_memory.h"
#include "scheduler/planner/planner.h"
#include "scheduler/search/estimate.h"
#include "scheduler/search/plan_job.h"
#include "scheduler/search/search.h"
#include "scheduler/search/space.h"
#include "tests/scheduler/example_job.h"

namespace troupe {
namespace {

// SplitMix64 (Steele et al., 2014).
class Draw {
 public:
  explicit Draw(uint64_t seed) : state_(seed) {}
  int Below(int count) {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return static_cast<int>((z ^ (z >> 31)) % static_cast<uint64_t>(count));
  }
  template <typename T>
  T Of(std::initializer_list<T> values) {
    return *(values.begin() + Below(static_cast<int>(values.size())));
  }

 private:
  uint64_t state_;
};

JobSpec DrawJob(Draw& draw) {
  JobSpec job = ExampleJob({.blocks = draw.Of({2, 3, 4})});
  ModelSpec& model = *job.mutable_model();
  model.set_hidden_size(draw.Of({16, 32, 64}));
  model.set_num_attention_heads(draw.Of({2, 4}));
  model.set_max_position_embeddings(draw.Of({8, 16, 32}));
  model.set_vocab_size(draw.Of({64, 256}));
  job.mutable_training()->set_global_batch_size(draw.Of({4, 8, 12, 16}));
  job.mutable_training()->clear_micro_batch_size();
  if (draw.Below(2) == 0) {
    job.mutable_training()->set_micro_batch_size(draw.Of({1, 2}));
  }
  job.clear_parallelism();
  job.mutable_parallelism()->set_mode("auto");
  job.mutable_parallelism()->set_bucket_megabytes(draw.Of({0.01, 0.05, 25.0}));
  if (draw.Below(3) == 0) job.mutable_memory()->set_mode("auto");
  return job;
}

std::vector<WorkerDescription> DrawWorkers(int count, Draw& draw) {
  std::vector<WorkerDescription> workers = ExampleWorkers(count);
  const int hosts = draw.Of({1, 1, 2, 4});
  const double rate = draw.Of({1e9, 1e10});
  const double local = draw.Of({1e8, 1e9, 1e10});
  const double network = draw.Of({1e7, 1e8, 1e9});
  const bool unlike = draw.Below(4) == 0;
  for (int i = 0; i < count; ++i) {
    WorkerDescription& worker = workers[i];
    worker.set_host(absl::StrCat("host-", i * hosts / count));
    Calibration& calibration = *worker.mutable_calibration();
    const double own = unlike && i >= count / 2 ? rate / 2 : rate;
    calibration.mutable_matmul(0)->set_flops_per_second(own);
    calibration.mutable_loopback()->set_bytes_per_second(local);
    LinkRate& link = *worker.mutable_network()->mutable_rate();
    link.set_latency_us(20);
    link.set_bytes_per_second(network);
  }
  return workers;
}

void SetMemory(int64_t bytes, std::vector<WorkerDescription>& workers) {
  for (WorkerDescription& worker : workers) {
    worker.mutable_budgets(0)->set_bytes(bytes);
  }
}

// Of one rank that keeps all: what the least that fits is a part of.
int64_t BytesOfOneRank(JobSpec job,
                       const std::vector<WorkerDescription>& workers) {
  job.clear_parallelism();
  job.clear_memory();
  job.mutable_training()->set_micro_batch_size(1);
  const absl::StatusOr<Plan> plan =
      TryPlan(job, {workers[0]}, GatherRoom::kAll);
  CHECK_OK(plan.status());
  return plan->prediction().ranks(0).peak_bytes();
}

int64_t PeakOf(const Plan& plan) {
  int64_t peak = 0;
  for (const RankPrediction& rank : plan.prediction().ranks()) {
    peak = std::max(peak, rank.peak_bytes());
  }
  return peak;
}

std::string TextOf(const JobSpec& job) {
  return absl::StrCat(job.parallelism().ShortDebugString(),
                      " micro_batch_size: ", job.training().micro_batch_size(),
                      " recompute: ", job.memory().recompute().mode());
}

}  // namespace

DrawnSpace DrawSpace(uint64_t seed, int workers_max) {
  Draw draw(seed);
  DrawnSpace space = {.job = DrawJob(draw)};
  int count = 0;
  do {
    count = draw.Of({2, 3, 4, 6, 8, 12, 16});
  } while (count > workers_max);
  space.workers = DrawWorkers(count, draw);
  // From less than a rank's share to more than all.
  const int percent = draw.Of({20, 35, 60, 110, 400});
  const int64_t bytes =
      BytesOfOneRank(space.job, space.workers) / 100 * percent;
  SetMemory(bytes, space.workers);
  // Some have half as much.
  const bool unlike_memory = draw.Below(4) == 0;
  for (int i = 0; i < count / 2 && unlike_memory; ++i) {
    space.workers[i].mutable_budgets(0)->set_bytes(bytes / 2);
  }
  space.name = absl::StrCat("seed ", seed, ": ", count, " workers, batch ",
                            space.job.training().global_batch_size(),
                            ", memory ", percent, " %",
                            unlike_memory ? ", half of that on some" : "");
  return space;
}

Everything SimulateEverything(const DrawnSpace& drawn) {
  Everything everything;
  Space space(drawn.job);
  KnownCosts known;
  Estimator estimator(drawn.job, drawn.workers, known);
  if (estimator.AreUnlike()) space.TryUnevenSplits();
  Reasons reasons;
  for (const int ranks :
       space.RankCounts(static_cast<int>(drawn.workers.size()))) {
    const std::vector<WorkerDescription> used(drawn.workers.begin(),
                                              drawn.workers.begin() + ranks);
    for (const Candidate& division : space.DivisionsOf(ranks, reasons)) {
      for (Candidate& candidate : space.CandidatesOf(division)) {
        for (const std::string& mode : space.RecomputeModesOf()) {
          candidate.recompute = mode;
          const JobSpec job = JobOf(drawn.job, candidate);
          const absl::StatusOr<Plan> plan =
              TryPlan(job, used, GatherRoom::kAll);
          ++everything.plans;
          if (!plan.ok() || !CheckMemory(*plan, used).ok()) continue;
          ++everything.fitting;
          const double seconds = plan->prediction().step_seconds();
          const absl::StatusOr<double> least =
              estimator.LeastSecondsOf(candidate);
          if (least.ok() && *least > seconds) {
            ++everything.least_broken;
            everything.least_too_long =
                std::max(everything.least_too_long, *least / seconds - 1);
          }
          // Of what is the same as another candidate there is none.
          const absl::StatusOr<Estimate> estimate = estimator.Of(candidate);
          if (estimate.ok() && estimate->fits()) {
            const double ratio = seconds / estimate->seconds;
            everything.too_small = std::max(everything.too_small, ratio - 1);
            everything.too_large =
                std::max(everything.too_large, 1 / ratio - 1);
          }
          // Then the search would give up what fits.
          if (estimate.ok() && estimate->fits() && estimate->lacks_for_kept) {
            ++everything.bounds_broken;
            everything.broken = absl::StrCat(TextOf(job), " fits and does not");
          }
          if (estimate.ok() && estimate->bytes > PeakOf(*plan)) {
            ++everything.bounds_broken;
            everything.broken = absl::StrCat(TextOf(job), ": ", estimate->bytes,
                                             " over ", PeakOf(*plan));
          }
          if (everything.best.has_value() &&
              everything.best->seconds <= seconds) {
            continue;
          }
          everything.best = Best{.seconds = seconds, .way = TextOf(job)};
        }
      }
    }
  }
  return everything;
}

Chosen ChooseIn(const DrawnSpace& space) {
  Chosen chosen;
  const absl::StatusOr<PlannedJob> planned = PlanJob(space.job, space.workers);
  if (!planned.ok()) {
    chosen.refusal = std::string(planned.status().message());
    return chosen;
  }
  chosen.simulated = planned->explanation.search().simulated();
  chosen.error = planned->explanation.search().error_max();
  const Plan& plan = planned->planned.plan;
  chosen.best = Best{.seconds = plan.prediction().step_seconds(),
                     .way = TextOf(plan.job())};
  return chosen;
}

}  // namespace troupe
