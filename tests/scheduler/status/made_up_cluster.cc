#include "tests/scheduler/status/made_up_cluster.h"

#include <cmath>
#include <memory>

#include "absl/time/clock.h"
#include "proto/plan/sums.h"
#include "tests/clients/gantt/made_pipeline.h"

namespace troupe {
namespace {

constexpr int64_t kMiB = 1 << 20;

constexpr int kUnitsPerStage = 3;
constexpr int kLayersWithExperts = 6;
constexpr int kExperts = 16;

// A step of a pipeline, of 0.3 s.
Timeline TimelineOf(int ranks, bool predicted) {
  const int micro_batches = 2 * ranks;
  const int64_t pass_ns = 300'000'000 / (3 * (micro_batches + ranks - 1));
  Timeline timeline = MakePipeline(OneForwardOneBackward(ranks, micro_batches),
                                   {.units_per_stage = kUnitsPerStage,
                                    .pass_ns = pass_ns,
                                    .transfer_ns = pass_ns / 20,
                                    .jitter_ns = predicted ? 0 : pass_ns / 6,
                                    .alternating = true});
  timeline.set_predicted(predicted);
  return timeline;
}

}  // namespace

absl::StatusOr<int> MadeUpCluster::Compiler::RanksNeeded(
    const JobSpec& job) const {
  return job.parallelism().data();
}

absl::StatusOr<CompiledJob> MadeUpCluster::Compiler::Compile(
    const JobSpec& job, const std::vector<WorkerDescription>& workers,
    const MayGoOn&) const {
  const int ranks = job.parallelism().data();
  auto plan = std::make_shared<Plan>();
  *plan->mutable_job() = job;
  plan->set_fingerprint("9f3ac21b7d04e865");
  *plan->mutable_lanes() = TimelineOf(ranks, /*predicted=*/true).lanes();
  Axis* axis = plan->mutable_mesh()->add_axes();
  axis->set_name("pipeline");
  axis->set_size(ranks);
  *plan->mutable_sums() = FirstSums();
  for (int layer = 1; layer <= kLayersWithExperts; ++layer) {
    Sum* tokens = plan->add_sums();
    tokens->set_name(kExpertTokensSum);
    tokens->set_unit(layer);
    tokens->set_elements(kExperts);
  }
  plan->mutable_derived()->set_tokens_per_step(8192);
  plan->mutable_derived()->set_parameters(10'795'776);
  plan->mutable_derived()->set_micro_batches(2);
  plan->mutable_derived()->set_model_flops_per_token(7.2e7);
  Prediction* prediction = plan->mutable_prediction();
  prediction->set_step_seconds(0.31);
  prediction->set_peak_flops_per_second(2.9e12);
  prediction->set_limited_by(
      "Matrix products take 71 % of the step; 4 % is exposed communication.");
  for (int rank = 0; rank < ranks; ++rank) {
    RankPrediction* of_rank = prediction->add_ranks();
    of_rank->set_rank(rank);
    of_rank->set_bytes_sent_per_step(64'774'656);
    *of_rank->mutable_budgets() = workers[rank].budgets();
    TierTraffic* nvme = of_rank->add_tiers();
    nvme->set_tier(NVME);
    nvme->set_bytes_in(300 * kMiB);
    nvme->set_bytes_out(200 * kMiB);
    nvme->set_waited_seconds(0.05 + 0.01 * rank);
    struct Item {
      Tier tier;
      const char* name;
      int64_t mib;
    };
    for (const Item& made : {Item{DEVICE, "parameters", 41},
                             {DEVICE, "gradients", 41},
                             {HOST, "optimizer_moments", 82},
                             {DEVICE, "activations", 118},
                             {DEVICE, "buffers", 12}}) {
      MemoryItem* item = of_rank->add_memory();
      item->set_tier(made.tier);
      item->set_item(made.name);
      item->set_bytes(made.mib * kMiB);
    }
  }
  for (Stage& stage : StagesOf(ranks, kUnitsPerStage)) {
    *plan->add_stages() = std::move(stage);
  }
  return MakeCompiledJob(std::move(*plan), TimelineOf(ranks, true));
}

Plan MadeUpCluster::Compiler::PlanOfRank(const Plan& plan, int) const {
  return plan;
}

absl::StatusOr<TextPlan> MadeUpCluster::Compiler::PlanText(
    const JobSpec&) const {
  return absl::InvalidArgumentError("model: it has no text");
}

MadeUpCluster::MadeUpCluster(ActionSink* sink, int ranks)
    : ranks_(ranks),
      clock_(absl::Now()),
      cluster_(limits_, compiler_),
      host(cluster_, clock_, sink_) {
  sink_.other = sink;
  const int workers = ranks + 2;
  for (int i = 0; i < workers; ++i) Join(i);
  const JobId ended = Submit("warm-up", 1, 20);
  running_ = Submit("demo", ranks, 200);
  WorkerMessage ready;
  *ready.mutable_rank_ready()->mutable_ref() = Ref(ended, 0);
  Send(0, ready);
  for (int step = 1; step <= 20; ++step) {
    WorkerMessage report;
    *report.mutable_step()->mutable_ref() = Ref(ended, 0);
    report.mutable_step()->mutable_record()->set_step(step);
    report.mutable_step()->mutable_record()->set_loss(5 - 0.05 * step);
    Send(0, report);
  }
  WorkerMessage end;
  *end.mutable_ended()->mutable_ref() = Ref(ended, 0);
  end.mutable_ended()->set_ok(true);
  end.mutable_ended()->set_step(20);
  Send(0, end);
  for (int rank = 0; rank < ranks; ++rank) {
    WorkerMessage message;
    *message.mutable_rank_ready()->mutable_ref() = Ref(running_, rank);
    for (int worker = 0; worker < workers; ++worker) Send(worker, message);
  }
  for (int i = 0; i < 120; ++i) Step();
  WorkerMessage committed;
  *committed.mutable_committed()->mutable_ref() = Ref(running_, 0);
  CheckpointRecord* checkpoint =
      committed.mutable_committed()->mutable_checkpoint();
  checkpoint->set_step(100);
  checkpoint->set_path("/home/ada/checkpoints/step-100");
  checkpoint->set_bytes(129'549'312);
  checkpoint->set_seconds(0.21);
  for (int worker = 0; worker < workers; ++worker) Send(worker, committed);
  host.Apply([&](Cluster& cluster, absl::Time now, Actions& out) {
    cluster.Disconnected(workers_.back(), "connection closed", now, out);
  });
  Submit("larger-model", ranks, 1000);
}

void MadeUpCluster::Join(int number) {
  Register request = RegisterOf(absl::StrCat("worker-", number), "orchard");
  WorkerDescription* worker = request.mutable_worker();
  worker->set_device("cpu");
  worker->set_threads(2);
  worker->mutable_budgets(0)->set_bytes(600 * kMiB);
  TierBudget& host_tier = *worker->add_budgets();
  host_tier.set_tier(HOST);
  host_tier.set_bytes(200 * kMiB);
  request.set_pid(4200 + number);
  host.Apply([&](Cluster& cluster, absl::Time now, Actions& out) {
    const auto id = cluster.RegisterWorker(request, now, out);
    CHECK_OK(id.status());
    workers_.push_back(*id);
  });
  WorkerMessage heartbeat;
  heartbeat.mutable_heartbeat()->set_memory_bytes((310 + 9 * number) * kMiB);
  Send(number, heartbeat);
}

JobId MadeUpCluster::Submit(const char* name, int ranks, int64_t steps) {
  JobSpec spec;
  spec.set_name(name);
  spec.mutable_parallelism()->set_data(ranks);
  spec.mutable_training()->set_steps(steps);
  spec.mutable_data()->mutable_sample()->set_prompt("Once ");
  return host.Apply([&](Cluster& cluster, absl::Time now, Actions& out) {
    const auto compilation = cluster.Consider(spec);
    CHECK_OK(compilation.status());
    const auto id = cluster.Submit(
        spec, CompileFirstFit(compiler_, *compilation), now, out);
    CHECK_OK(id.status());
    // Its start is stored at once.
    for (size_t i = 0; i < out.size(); ++i) {
      const Action action = out[i];  // a copy: an answer adds actions
      const auto* asked = std::get_if<AwaitStored>(&action);
      if (asked != nullptr) cluster.Stored(*asked, absl::OkStatus(), now, out);
    }
    return *id;
  });
}

void MadeUpCluster::Wait() {
  JobSpec spec;
  spec.set_name("patient");
  spec.mutable_parallelism()->set_data(ranks_);
  spec.mutable_training()->set_steps(1000);
  host.Apply([&](Cluster& cluster, absl::Time now, Actions& out) {
    CHECK_OK(cluster.Submit(spec, {}, now, out).status());
  });
}

RankRef MadeUpCluster::Ref(JobId job, int rank) const {
  RankRef ref;
  ref.set_job(job.value());
  ref.set_attempt(1);
  ref.set_rank(rank);
  return ref;
}

void MadeUpCluster::Send(int worker, const WorkerMessage& message) {
  host.Apply([&](Cluster& cluster, absl::Time now, Actions& out) {
    cluster.HandleMessage(workers_[worker], message, now, out);
  });
}

void MadeUpCluster::ReportStep(JobId job, int rank, int64_t step) {
  WorkerMessage message;
  StepReport* report = message.mutable_step();
  *report->mutable_ref() = Ref(job, rank);
  StepRecord* record = report->mutable_record();
  const double noise = std::sin(step * 12.9898) * 0.5 + std::sin(step * 4.1);
  record->set_step(step);
  record->set_loss(1.3 + 4.2 * std::exp(-step / 38.0) + 0.05 * noise);
  if (step % 25 == 0) {
    record->set_validation_loss(record->loss() + 0.09);
    record->mutable_sample()->set_prompt("Once ");
    record->mutable_sample()->set_text("<b>upon a time");
  }
  record->set_grad_norm(0.6 + 3 * std::exp(-step / 20.0) + 0.1 * noise);
  record->set_learning_rate(
      step < 20 ? 3e-4 * step / 20
                : 3e-5 + 1.35e-4 * (1 + std::cos(3.14159 * (step - 20) / 180)));
  record->set_step_seconds(0.335 + 0.012 * noise + 0.002 * rank);
  record->set_memory_bytes(330 * kMiB);
  record->mutable_routers()->set_busiest_over_mean(1.5);
  report->mutable_sums()->Resize(static_cast<int>(SumElements(FirstSums())), 0);
  for (int layer = 1; layer <= kLayersWithExperts; ++layer) {
    for (int expert = 0; expert < kExperts; ++expert) {
      report->add_sums(std::floor(
          256 * std::exp2(std::sin(layer + 5 * expert) *
                          (0.3 + 1.5 * std::exp(-step / 60.0)))));
    }
  }
  TierTraffic& nvme = *record->add_tiers();
  nvme.set_tier(NVME);
  nvme.set_bytes_in(300 * kMiB);
  nvme.set_bytes_out(200 * kMiB);
  nvme.set_seconds(0.25);
  nvme.set_waited_seconds(0.125);
  if (step % 10 == 0) {
    *report->mutable_timeline() = TimelineOf(ranks_, false).ranks(rank);
  }
  for (size_t i = 0; i < workers_.size(); ++i) Send(i, message);
}

void MadeUpCluster::Step() {
  clock_.Advance(absl::Milliseconds(335));
  ++step_;
  for (int rank = 0; rank < ranks_; ++rank) ReportStep(running_, rank, step_);
}

}  // namespace troupe
