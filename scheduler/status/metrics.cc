#include "scheduler/status/metrics.h"

#include <iterator>
#include <map>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"
#include "prometheus/text_serializer.h"

namespace troupe {
namespace {

using prometheus::Family;
using prometheus::Gauge;

Family<Gauge>& AddGauge(prometheus::Registry& registry, const char* name,
                        const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}

prometheus::Histogram::BucketBoundaries StepBuckets() {
  return {0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300};
}

void AddCounts(prometheus::Registry& registry, const Cluster& cluster) {
  auto& workers =
      AddGauge(registry, "troupe_workers", "Workers, by their state");
  std::map<WorkerStatus::State, int> by_state;
  for (const auto state : {WorkerStatus::IDLE, WorkerStatus::BUSY,
                           WorkerStatus::LOST, WorkerStatus::LEFT}) {
    by_state[state] = 0;
  }
  auto& memory = AddGauge(registry, "troupe_worker_memory_bytes",
                          "Resident memory of a worker's process");
  int set_aside = 0;
  for (const auto& [id, worker] : cluster.workers().all()) {
    ++by_state[worker.status.state()];
    if (!worker.alive()) continue;
    set_aside += !worker.status.set_aside().empty();
    memory.Add({{"worker", worker.name()}})
        .Set(static_cast<double>(worker.status.memory_bytes()));
  }
  for (const auto& [state, count] : by_state) {
    workers
        .Add(
            {{"state", absl::AsciiStrToLower(WorkerStatus::State_Name(state))}})
        .Set(count);
  }
  AddGauge(registry, "troupe_workers_set_aside",
           "Workers that get no rank: cordoned, unfit, or failed on by several "
           "jobs")
      .Add({})
      .Set(set_aside);
  auto& jobs = AddGauge(registry, "troupe_jobs", "Jobs, by their state");
  std::map<JobState, int> jobs_by_state;
  for (int state = JobState_MIN + 1; state <= JobState_MAX; ++state) {
    jobs_by_state[static_cast<JobState>(state)] = 0;
  }
  int awaited = 0;
  for (const auto& [id, job] : cluster.jobs().all()) {
    ++jobs_by_state[job->status.state()];
    if (job->run == nullptr) continue;
    for (const RankSeat& seat : job->run->ranks) awaited += seat.awaited();
  }
  AddGauge(registry, "troupe_ranks_awaited",
           "Ranks that trained on while the scheduler was restarted, and whose "
           "workers are not back yet")
      .Add({})
      .Set(awaited);
  for (const auto& [state, count] : jobs_by_state) {
    jobs.Add({{"state", absl::AsciiStrToLower(JobState_Name(state))}})
        .Set(count);
  }
}

prometheus::Labels LabelsOf(const Job& job) {
  return {{"job", absl::StrCat(job.id.value())}, {"name", job.status.name()}};
}

// Of jobs that have not ended, running or not.
void AddAttempts(prometheus::Registry& registry, const Cluster& cluster) {
  auto& attempt = AddGauge(registry, "troupe_job_attempt",
                           "Which attempt (epoch) to run a job this is");
  auto& restarts = AddGauge(registry, "troupe_job_restarts",
                            "How often a job went on after a failure");
  auto& stood = AddGauge(registry, "troupe_job_stood_seconds",
                         "How long a job stood still between its attempts");
  auto& unsaved = AddGauge(registry, "troupe_job_unsaved",
                           "1: the newest checkpoint that was due could not be "
                           "written, and is tried again");
  for (const auto& [id, job] : cluster.jobs().all()) {
    if (job->ended()) continue;
    const prometheus::Labels labels = LabelsOf(*job);
    unsaved.Add(labels).Set(job->status.unsaved().empty() ? 0 : 1);
    attempt.Add(labels).Set(job->status.attempt());
    restarts.Add(labels).Set(job->status.restarts());
    stood.Add(labels).Set(job->status.stood_seconds());
  }
}

// Of running mixtures of experts.
class RouterGauges {
 public:
  explicit RouterGauges(prometheus::Registry& registry)
      : busiest_(AddGauge(registry, "troupe_job_busiest_expert_over_mean",
                          "Choices of the busiest expert of a running job's "
                          "last step over the mean of its layer")),
        dropped_(AddGauge(registry, "troupe_job_dropped_share",
                          "Choices of experts in a running job's last step "
                          "that found no room, of all")),
        balance_(AddGauge(registry, "troupe_job_balance_loss",
                          "What balancing experts added to the loss of a "
                          "running job's last step")),
        z_(AddGauge(registry, "troupe_job_router_z_loss",
                    "What the z-loss of routers added to the loss of a running "
                    "job's last step")),
        entropy_(AddGauge(registry, "troupe_job_router_entropy",
                          "Entropy of a token's scores in a running job's last "
                          "step, nats, mean of tokens and layers")) {}

  void Set(const prometheus::Labels& labels, const RouterRecord& routers) {
    busiest_.Add(labels).Set(routers.busiest_over_mean());
    dropped_.Add(labels).Set(routers.dropped_share());
    balance_.Add(labels).Set(routers.balance_loss());
    z_.Add(labels).Set(routers.z_loss());
    entropy_.Add(labels).Set(routers.entropy());
  }

 private:
  Family<prometheus::Gauge>& busiest_;
  Family<prometheus::Gauge>& dropped_;
  Family<prometheus::Gauge>& balance_;
  Family<prometheus::Gauge>& z_;
  Family<prometheus::Gauge>& entropy_;
};

void AddRunning(prometheus::Registry& registry, const Cluster& cluster) {
  RouterGauges routers(registry);
  auto& step = AddGauge(registry, "troupe_job_step",
                        "Last finished step of a running job");
  auto& loss = AddGauge(registry, "troupe_job_loss",
                        "Training loss of a running job's last step");
  auto& mtp = AddGauge(registry, "troupe_job_mtp_loss",
                       "What modules that predict further tokens added to the "
                       "loss of a running job's last step");
  auto& norm = AddGauge(registry, "troupe_job_grad_norm",
                        "Gradient norm of a running job's last step");
  auto& rate = AddGauge(registry, "troupe_job_learning_rate",
                        "Learning rate of a running job's last step");
  auto& scale = AddGauge(registry, "troupe_job_loss_scale",
                         "Scale of the loss of a running fp16 job's last step");
  auto& skipped = AddGauge(registry, "troupe_job_skipped_steps",
                           "Steps of a running fp16 job that updated nothing, "
                           "as gradients overflowed");
  auto& tokens = AddGauge(registry, "troupe_job_tokens_per_second",
                          "Tokens a second of a running job's last step");
  auto& mfu = AddGauge(registry, "troupe_job_mfu",
                       "Model FLOP/s of a running job's last step over the "
                       "peak of its workers: by their datasheets, or as "
                       "measured where one is not known");
  auto& moved = AddGauge(registry, "troupe_job_tier_bytes",
                         "Bytes that a running job's last step moved between a "
                         "tier of memory and the one above, by direction");
  auto& moving = AddGauge(registry, "troupe_job_tier_seconds",
                          "How long the busiest rank moved them");
  auto& speed = AddGauge(registry, "troupe_job_tier_bytes_per_second",
                         "Of both directions, while they were moved");
  auto& waited = AddGauge(registry, "troupe_job_tier_waited_seconds",
                          "How long the rank that waited longest for them had "
                          "nothing else to compute");
  for (const auto& [id, job] : cluster.jobs().all()) {
    const StepRecord& last = job->status.last_step();
    if (job->status.state() != RUNNING || last.step() == 0) continue;
    const prometheus::Labels labels = LabelsOf(*job);
    step.Add(labels).Set(static_cast<double>(last.step()));
    loss.Add(labels).Set(last.loss());
    if (last.mtp_loss() > 0) mtp.Add(labels).Set(last.mtp_loss());
    norm.Add(labels).Set(last.grad_norm());
    rate.Add(labels).Set(last.learning_rate());
    if (last.loss_scale() > 0) {
      scale.Add(labels).Set(last.loss_scale());
      skipped.Add(labels).Set(static_cast<double>(last.skipped_steps()));
    }
    if (last.has_routers()) routers.Set(labels, last.routers());
    tokens.Add(labels).Set(last.tokens_per_second());
    mfu.Add(labels).Set(last.mfu());
    for (const TierTraffic& tier : last.tiers()) {
      prometheus::Labels of_tier = labels;
      of_tier["tier"] = absl::AsciiStrToLower(Tier_Name(tier.tier()));
      moving.Add(of_tier).Set(tier.seconds());
      waited.Add(of_tier).Set(tier.waited_seconds());
      if (tier.seconds() > 0) {
        speed.Add(of_tier).Set(
            static_cast<double>(tier.bytes_in() + tier.bytes_out()) /
            tier.seconds());
      }
      of_tier["direction"] = "in";
      moved.Add(of_tier).Set(static_cast<double>(tier.bytes_in()));
      of_tier["direction"] = "out";
      moved.Add(of_tier).Set(static_cast<double>(tier.bytes_out()));
    }
  }
}

}  // namespace

struct Metrics::Parts {
  prometheus::Registry registry;
  prometheus::Counter& steps = prometheus::BuildCounter()
                                   .Name("troupe_steps_total")
                                   .Help("Training steps finished by all jobs")
                                   .Register(registry)
                                   .Add({});
  prometheus::Histogram& step_seconds =
      prometheus::BuildHistogram()
          .Name("troupe_step_seconds")
          .Help("How long training steps took")
          .Register(registry)
          .Add({}, StepBuckets());
  Family<prometheus::Counter>& rpcs =
      prometheus::BuildCounter()
          .Name("troupe_rpcs_total")
          .Help("RPCs of clients that were answered, by their status")
          .Register(registry);
};

Metrics::Metrics() : parts_(std::make_unique<Parts>()) {}
Metrics::~Metrics() = default;

void Metrics::Carry(const Actions& actions) {
  for (const Action& action : actions) {
    const auto* step = std::get_if<PersistStep>(&action);
    if (step == nullptr) continue;
    parts_->steps.Increment();
    parts_->step_seconds.Observe(step->step.step_seconds());
  }
}

void Metrics::CountRpc(absl::string_view rpc, const absl::Status& status) {
  parts_->rpcs
      .Add({{"rpc", std::string(rpc)},
            {"code", absl::StatusCodeToString(status.code())}})
      .Increment();
}

std::string Metrics::Text(const Cluster& cluster, absl::Duration uptime) const {
  prometheus::Registry now;
  AddCounts(now, cluster);
  AddAttempts(now, cluster);
  AddRunning(now, cluster);
  AddGauge(now, "troupe_uptime_seconds", "Since the scheduler started")
      .Add({})
      .Set(absl::ToDoubleSeconds(uptime));
  std::vector<prometheus::MetricFamily> families = parts_->registry.Collect();
  std::vector<prometheus::MetricFamily> gauges = now.Collect();
  families.insert(families.end(), std::make_move_iterator(gauges.begin()),
                  std::make_move_iterator(gauges.end()));
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, families);
  return text.str();
}

}  // namespace troupe
