#include "tests/bench/scheduler_scale/scenario.h"

#include <atomic>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "proto/base/check.h"
#include "tests/bench/scheduler_scale/clients.h"
#include "tests/bench/scheduler_scale/fleet.h"
#include "tests/bench/scheduler_scale/flood.h"
#include "tests/bench/scheduler_scale/process_usage.h"
#include "tests/cluster/troupe_program.h"

namespace troupe {
namespace {

constexpr absl::Duration kPatience = absl::Minutes(5);
constexpr double kMiB = 1 << 20;
// Jobs that are submitted behind the one that runs, and plans that are asked
// for, to see how long that takes.
constexpr int kFurtherJobs = 3;

JobSpec Gpt2Job(const ScenarioOptions& options) {
  JobSpec job;
  job.set_name("gpt2-124m");
  ModelSpec& model = *job.mutable_model();
  model.set_architecture("gpt2");
  model.set_num_hidden_layers(12);
  model.set_hidden_size(768);
  model.set_num_attention_heads(12);
  model.set_vocab_size(50257);
  model.set_max_position_embeddings(1024);
  job.mutable_data()->set_tokens("some.tokens");
  job.mutable_training()->set_steps(100'000);
  job.mutable_training()->set_global_batch_size(options.workers *
                                                options.micro_batches);
  job.mutable_training()->set_micro_batch_size(1);
  job.mutable_optimizer()->set_lr(3e-4);
  job.mutable_parallelism()->set_data(options.workers);
  return job;
}

class Scenario {
 public:
  explicit Scenario(const ScenarioOptions& options)
      : options_(options),
        program_({options.scheduler, "--insecure", "--state", options.state,
                  "--log", options.state + "/scheduler.log"}),
        address_(std::string(
            absl::StripPrefix(program_.WaitForLine("grpc "), "grpc "))),
        client_(ConnectTo(address_)) {}

  ScenarioReport Run() {
    Register();
    Idle();
    Start();
    Steps();
    Flooded();
    FurtherJobs();
    Queue();
    CancelAndLeave();
    program_.Signal(SIGTERM);
    report_.exit_code = program_.Wait().code;
    report_.latencies = latencies_.Rows();
    return std::move(report_);
  }

 private:
  void Register() {
    const absl::Time start = absl::Now();
    fleet_ = std::make_unique<Fleet>(
        FleetOptions{.scheduler = address_, .workers = options_.workers});
    CHECK(fleet_->Await(
        [this](const auto& p) { return p.registered == options_.workers; },
        kPatience))
        << fleet_->progress().registered << " have registered";
    report_.register_seconds = Since(start);
  }

  void Idle() {
    const ProcessUsage before = UsageOf(program_.pid());
    const absl::Time start = absl::Now();
    absl::SleepFor(options_.idle);
    const ProcessUsage after = UsageOf(program_.pid());
    report_.cpu_idle = (after.cpu_seconds - before.cpu_seconds) / Since(start);
    report_.resident_bytes_idle = after.resident_bytes;
    const Prober prober({.scheduler = address_, .when = "idle"}, latencies_);
    absl::SleepFor(options_.idle / 2);
  }

  void Start() {
    const double cpu = UsageOf(program_.pid()).cpu_seconds;
    const Prober prober({.scheduler = address_, .when = "starting"},
                        latencies_);
    const absl::Time start = absl::Now();
    const auto submitted = client_->Submit(Gpt2Job(options_));
    CHECK_OK(submitted.status());
    report_.submitted_seconds = Since(start);
    latencies_.Add("starting: SubmitJob", absl::Now() - start);
    job_ = submitted->id();
    watcher_.emplace(address_, job_);
    CHECK(fleet_->Await(
        [this](const auto& p) { return p.ready == options_.workers; },
        kPatience))
        << fleet_->progress().assigned << " were assigned a rank, "
        << fleet_->progress().ready << " are ready";
    CHECK(watcher_->AwaitState(RUNNING, kPatience));
    const Fleet::Progress progress = fleet_->progress();
    report_.assigned_seconds =
        absl::ToDoubleSeconds(progress.last_assigned - start);
    report_.met_seconds = absl::ToDoubleSeconds(progress.last_ready - start);
    report_.hand_out_bytes = progress.assigned_bytes;
    report_.store_bytes_first = progress.store_bytes_first;
    report_.store_bytes_other = progress.store_bytes_other;
    Step();
    report_.first_step_seconds =
        absl::ToDoubleSeconds(watcher_->SeenAt(step_) - start);
    report_.cpu_start_seconds = UsageOf(program_.pid()).cpu_seconds - cpu;
  }

  // All ranks report at once, as after the last collective of a step.
  void Step(const std::string& when = "running") {
    fleet_->ReportStep(++step_);
    const absl::Time reported = absl::Now();
    CHECK(watcher_->AwaitStep(step_, kPatience)) << "step " << step_;
    latencies_.Add(when + ": step, from its last report to a watcher",
                   watcher_->SeenAt(step_) - reported);
  }

  void StepInTime(int steps, const std::string& when = "running") {
    for (int i = 0; i < steps; ++i) {
      const absl::Time start = absl::Now();
      Step(when);
      absl::SleepFor(options_.step - (absl::Now() - start));
    }
  }

  // Half of them with nobody else about, half while clients ask.
  void Steps() {
    const int half = options_.steps / 2;
    const ProcessUsage before = UsageOf(program_.pid());
    const absl::Time start = absl::Now();
    StepInTime(half);
    const ProcessUsage after = UsageOf(program_.pid());
    report_.cpu_running =
        (after.cpu_seconds - before.cpu_seconds) / Since(start);
    report_.resident_bytes_running = after.resident_bytes;
    int asked = 0;
    const Prober prober(
        {.scheduler = address_,
         .when = "running",
         .job = job_,
         .other =
             [&] {
               latencies_.Add(
                   "running: store, question to answer",
                   fleet_->StoreRoundTrip(asked++ % options_.workers));
             }},
        latencies_);
    StepInTime(options_.steps - half);
  }

  // What a flood of clients does to workers: a heartbeat goes the way of a
  // question to the store, whose answer tells when it came.
  void Flooded() {
    if (options_.flooding == 0) return;
    std::atomic<bool> over = false;
    const ProcessUsage before = UsageOf(program_.pid());
    const absl::Time start = absl::Now();
    const Flood flood(
        {.scheduler = address_, .clients = options_.flooding, .job = job_});
    std::thread asks([&] {
      for (int asked = 0; !over; ++asked) {
        latencies_.Add("flooded: store, question to answer",
                       fleet_->StoreRoundTrip(asked % options_.workers));
        absl::SleepFor(absl::Milliseconds(20));
      }
    });
    StepInTime(options_.steps / 2, "flooded");
    over = true;
    asks.join();
    const ProcessUsage after = UsageOf(program_.pid());
    report_.cpu_flooded =
        (after.cpu_seconds - before.cpu_seconds) / Since(start);
    report_.flood_per_second =
        static_cast<double>(flood.answered()) / Since(start);
    report_.flood_refused = flood.refused();
  }

  void FurtherJobs() {
    const Prober prober(
        {.scheduler = address_, .when = "others planned", .job = job_},
        latencies_);
    for (int i = 0; i < kFurtherJobs; ++i) {
      absl::Time start = absl::Now();
      CHECK_OK(client_->PlanJob(PlanRequest()).status());
      latencies_.Add("others planned: PlanJob", absl::Now() - start);
      start = absl::Now();
      const auto further = client_->Submit(Gpt2Job(options_));
      CHECK_OK(further.status());
      latencies_.Add("others planned: SubmitJob", absl::Now() - start);
      CHECK_OK(client_->Cancel(further->id()).status());
    }
  }

  void Queue() {
    ScenarioOptions larger = options_;
    ++larger.workers;
    for (int i = 0; i < options_.queued; ++i) {
      CHECK_OK(client_->Submit(Gpt2Job(larger)).status());
    }
  }

  PlanJobRequest PlanRequest() const {
    PlanJobRequest request;
    *request.mutable_job() = Gpt2Job(options_);
    return request;
  }

  void CancelAndLeave() {
    const absl::Time start = absl::Now();
    CHECK_OK(client_->Cancel(job_).status());
    CHECK(watcher_->AwaitState(CANCELLED, kPatience));
    report_.cancel_seconds = Since(start);
    report_.steps_seen = watcher_->steps_seen();
    watcher_.reset();
    const auto described = client_->Describe(job_);
    CHECK_OK(described.status());
    report_.end = JobState_Name(described->status().state());
    const auto workers = client_->Workers();
    CHECK_OK(workers.status());
    for (const WorkerStatus& worker : workers->workers()) {
      report_.workers_lost += worker.state() == WorkerStatus::LOST;
    }
    const ProcessUsage usage = UsageOf(program_.pid());
    report_.resident_bytes_max = usage.resident_bytes_max;
    report_.threads = usage.threads;
    fleet_.reset();
  }

  static double Since(absl::Time start) {
    return absl::ToDoubleSeconds(absl::Now() - start);
  }

  const ScenarioOptions options_;
  ScenarioReport report_;
  Latencies latencies_;
  TroupeProgram program_;
  const std::string address_;
  const std::unique_ptr<Client> client_;
  std::unique_ptr<Fleet> fleet_;
  int64_t job_ = 0;
  int64_t step_ = 0;
  std::optional<JobWatcher> watcher_;
};

}  // namespace

ScenarioReport RunScenario(const ScenarioOptions& options) {
  return Scenario(options).Run();
}

std::string ReportText(const ScenarioOptions& options,
                       const ScenarioReport& report) {
  std::string text = absl::StrFormat(
      "%d workers, one job on all of them, %d micro-batches a rank; %d jobs "
      "wait at its end\n"
      "all workers registered           %8.2f s\n"
      "submit -> answer                 %8.2f s\n"
      "submit -> last assignment read   %8.2f s\n"
      "submit -> all ranks have met     %8.2f s  (%.1f KiB moved by a rank, "
      "%.1f by the first)\n"
      "submit -> first step at watcher  %8.2f s  (scheduler's CPU: %.2f s)\n"
      "bytes of the hand-out            %8.1f MiB (%.1f KiB a rank)\n"
      "cancel -> all ranks let go       %8.2f s\n"
      "CPU, idle (heartbeats)           %8.1f %% of a core\n"
      "CPU, a step each %-15s %8.1f %% of a core\n"
      "CPU, and %d ask without pause%8.1f %% of a core (%.0f answers a second, "
      "%d refused)\n"
      "resident: idle %.0f MiB, running %.0f MiB, at most %.0f MiB; "
      "%d threads\n"
      "%d steps seen, %d workers lost, job %s, exit code %d\n",
      options.workers, options.micro_batches, options.queued,
      report.register_seconds, report.submitted_seconds,
      report.assigned_seconds, report.met_seconds,
      report.store_bytes_other / 1024.0, report.store_bytes_first / 1024.0,
      report.first_step_seconds, report.cpu_start_seconds,
      report.hand_out_bytes / kMiB,
      report.hand_out_bytes / 1024.0 / options.workers, report.cancel_seconds,
      100 * report.cpu_idle, absl::FormatDuration(options.step),
      100 * report.cpu_running, options.flooding, 100 * report.cpu_flooded,
      report.flood_per_second, report.flood_refused,
      report.resident_bytes_idle / kMiB, report.resident_bytes_running / kMiB,
      report.resident_bytes_max / kMiB, report.threads, report.steps_seen,
      report.workers_lost, report.end, report.exit_code);
  absl::StrAppendFormat(&text, "\n%-50s %6s %9s %9s %9s\n", "latency", "count",
                        "p50 ms", "p99 ms", "max ms");
  for (const Latencies::Row& row : report.latencies) {
    absl::StrAppendFormat(&text, "%-50s %6d %9.2f %9.2f %9.2f\n", row.what,
                          row.count, row.p50_ms, row.p99_ms, row.max_ms);
  }
  return text;
}

}  // namespace troupe
