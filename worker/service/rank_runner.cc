#include "worker/service/rank_runner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/local_cause.h"
#include "proto/base/log.h"
#include "proto/base/one_line.h"
#include "proto/base/status.h"
#include "proto/plan/copies.h"
#include "proto/plan/meeting.h"
#include "proto/plan/served.h"
#include "worker/actor/thread_name.h"
#include "worker/collective/communicator.h"
#include "worker/collective/join_groups.h"
#include "worker/engine/checkpoint_holder.h"
#include "worker/rank/group_staging_memory.h"
#include "worker/rank/resident_memory.h"
#include "worker/service/job_paths.h"
#include "worker/service/step_report.h"

namespace troupe {
namespace {

// For all ranks to come to the rendezvous: they have their memory and their
// weights by then.
constexpr absl::Duration kJoinTimeout = absl::Minutes(4);

std::string NameOf(const Assignment& assignment) {
  const int rank = assignment.ref().rank();
  return rank < assignment.worker_names_size() ? assignment.worker_names(rank)
                                               : absl::StrCat("rank ", rank);
}

TrainLoopOptions LoopOptions(const Assignment& assignment,
                             const RankRunnerOptions& options) {
  return {
      .plan = std::make_shared<const Plan>(assignment.plan()),
      .resume = assignment.resume(),
      .recovery = assignment.has_recovery()
                      ? absl::make_optional(assignment.recovery())
                      : absl::nullopt,
      .trace_every = assignment.trace_every(),
      .checkpoint_token = AttemptToken(assignment.ref(), assignment.run_id()),
      .ran_before = assignment.ran_before(),
      .job_token = JobToken(assignment.ref(), assignment.run_id()),
      .run_id = assignment.run_id(),
      .name = NameOf(assignment),
      .checks_data = assignment.checks_data(),
      .collective_timeout = absl::Seconds(assignment.collective_seconds_max()),
      .save_pauses = options.save_pauses};
}

RankMetricsOptions MetricsOptions(const Assignment& assignment,
                                  const RankResources& resources) {
  const JobSpec& job = assignment.plan().job();
  const HolderOptions holder = {
      .token = AttemptToken(assignment.ref(), assignment.run_id()),
      .job_token = JobToken(assignment.ref(), assignment.run_id()),
      .ran_before = assignment.ran_before()};
  return {.start = {.ran_before = assignment.ran_before(),
                    .holder = HolderLine(job, holder),
                    .supersedes = SupersededLine(job, holder)},
          .attempt = assignment.ref().attempt(),
          .clock = resources.clock};
}

}  // namespace

RankRunner::RankRunner(const Assignment& assignment,
                       const RankRunnerOptions& options, KeptMemory kept)
    : ref_(assignment.ref()),
      sums_(assignment.plan().sums()),
      paths_(CheckJobPaths(assignment)),
      worker_names_(assignment.worker_names().begin(),
                    assignment.worker_names().end()),
      options_(options),
      store_(ref_, options_.send),
      loop_(
          LoopOptions(assignment, options), options_.resources, store_,
          [this](const Plan& plan, int rank) { return Connect(plan, rank); },
          *this, std::move(kept)),
      hands_over_(assignment.recovery().handovers_size() > 0),
      steps_of_others_(!KnowsScalars(assignment.plan(), ref_.rank())),
      metrics_spec_(ref_.rank() == FirstThatKnowsScalars(assignment.plan())
                        ? assignment.plan().job().metrics()
                        : MetricsSpec()),
      metrics_options_(MetricsOptions(assignment, options_.resources)) {
  thread_ = std::thread([this] { Run(); });
}

RankRunner::~RankRunner() {
  if (!ended()) Abort(absl::CancelledError("the worker gave the job up"));
  if (thread_.joinable()) thread_.join();
  if (stopper_.joinable()) stopper_.join();
}

void RankRunner::Run() {
  NameThisThread("train loop");
  LogInfo(absl::StrCat("job ", ref_.job(), ": begins as rank ", ref_.rank(),
                       " of ", worker_names_.size()));
  absl::Status status;
  {
    const KeptFreeMemory kept;
    status = MayBegin();
    if (status.ok() && options_.begins != nullptr) options_.begins();
    if (status.ok()) status = loop_.Run();
  }
  loop_.EndThreads();
  if (metrics_ != nullptr) metrics_->Close();
  ReleaseFreeMemory();
  if (status.ok()) {
    LogInfo(absl::StrCat("job ", ref_.job(), ": rank ", ref_.rank(),
                         " is done after step ", loop_.steps_done()));
  } else {
    LogWarning(absl::StrCat("job ", ref_.job(), ": rank ", ref_.rank(),
                            " ends after step ", loop_.steps_done(), ": ",
                            status.message()));
  }
  SendEnded(status);
  ended_.Notify();
}

absl::Status RankRunner::MayBegin() const {
  if (!paths_.ok()) return OfThisMachine(paths_);
  if (options_.unfit == nullptr) return absl::OkStatus();
  const std::vector<std::string> unfit = options_.unfit();
  if (unfit.empty()) return absl::OkStatus();
  return OfThisMachine(absl::FailedPreconditionError(absl::StrCat(
      "this machine is not fit to run a rank: ", absl::StrJoin(unfit, "; "))));
}

void RankRunner::SendEnded(const absl::Status& status) {
  WorkerMessage message;
  RankEnded& ended = *message.mutable_ended();
  *ended.mutable_ref() = ref_;
  ended.set_ok(status.ok());
  ended.set_step(loop_.steps_done());
  ended.set_stopped(loop_.stopped() || WasTold(status));
  if (!status.ok()) ended.set_error(std::string(status.message()));
  ended.set_local_cause(IsOfThisMachine(status));
  const absl::optional<int> missing = MissingRank(status);
  if (missing.has_value()) ended.set_missing_rank(*missing);
  for (KeptCopy& kept : loop_.kept().copies.Whole()) {
    *ended.add_kept() = std::move(kept);
  }
  // Without a scheduler there is nobody to tell.
  options_.send(std::move(message)).IgnoreError();
}

// What an abort breaks is no failure of this rank.
bool RankRunner::WasTold(const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  return !status.ok() && status == aborted_;
}

KeptMemory RankRunner::TakeKept() {
  thread_.join();
  return std::move(loop_.kept());
}

const KeptMemory& RankRunner::kept() {
  ended_.WaitForNotification();
  return loop_.kept();
}

RankProgress RankRunner::Progress() const {
  RankProgress progress = loop_.Progress();
  *progress.mutable_ref() = ref_;
  return progress;
}

bool RankRunner::IsOurs(const RankRef& ref) const {
  return ref.job() == ref_.job() && ref.attempt() == ref_.attempt() &&
         ref.rank() == ref_.rank();
}

void RankRunner::OnMessage(const SchedulerMessage& message) {
  if (message.has_stop() && IsOurs(message.stop().ref())) {
    Stop(message.stop());
  } else if (message.has_store_value() && IsOurs(message.store_value().ref())) {
    store_.OnValue(message.store_value());
  } else if (message.has_commit() && IsOurs(message.commit().ref())) {
    OnCommit(message.commit());
  } else if (message.has_done() && IsOurs(message.done().ref())) {
    OnDone(message.done());
  }
}

void RankRunner::OnCommit(const CheckpointCommit& commit) {
  absl::MutexLock lock(&mutex_);
  // A scheduler that was started again asks again.
  if (commit.write() != write_.number || write_.asked_to_commit) return;
  write_.asked_to_commit = true;
  write_.shards.emplace();
  for (const CheckpointShard& shard : commit.shards()) {
    write_.shards->push_back(shard.shard());
  }
}

void RankRunner::OnDone(const CheckpointDone& done) {
  absl::MutexLock lock(&mutex_);
  if (!done.given_up().empty()) {
    // One that has ended here may be said again for others.
    if (done.write() == write_.number) write_.given_up = done.given_up();
    return;
  }
  committed_ = std::max(committed_, done.step());
  if (!done.unstored()) stored_ = std::max(stored_, done.step());
}

void RankRunner::Stop(const StopRank& stop) {
  if (stop.give_up_kept()) {
    ended_.WaitForNotification();  // its last words have been heard
    DropKept();
    return;
  }
  if (ended()) return;
  LogInfo(absl::StrCat("job ", ref_.job(), ": asked to stop: ", stop.reason()));
  const absl::Status why = absl::CancelledError(stop.reason());
  const bool at_once =
      !stop.checkpoint() && options_.stop_grace <= absl::ZeroDuration();
  if (stop.peers_gone() || first_step_ == 0 || stopper_.joinable() || at_once) {
    Abort(why);
    return;
  }
  if (stop.checkpoint()) {
    loop_.RequestSaveAndStop();
    return;
  }
  loop_.RequestStop();
  stopper_ = std::thread([this, why] {
    if (!ended_.WaitForNotificationWithTimeout(options_.stop_grace)) Abort(why);
  });
}

void RankRunner::Abort(const absl::Status& why) {
  {
    absl::MutexLock lock(&mutex_);
    if (aborted_.ok()) aborted_ = why;
  }
  store_.Abort(why);
  join_abort_.Abort(why);
  loop_.Abort(why);
}

absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> RankRunner::Connect(
    const Plan& plan, int rank) {
  std::vector<int> groups = MeetingGroups(plan.roles(0));
  const int copies = CopiesGroup(plan);
  if (hands_over_ && std::count(groups.begin(), groups.end(), copies) == 0) {
    groups.push_back(copies);
  }
  const auto staging = [&](int group, const Group::Carrier& carrier) {
    return GroupStagingMemory(plan, group, carrier, options_.resources.arenas);
  };
  return JoinGroups(plan.groups(), groups,
                    {.mesh = plan.mesh(),
                     .rank = rank,
                     .store = store_,
                     .host = options_.address,
                     .timeout = kJoinTimeout,
                     .abort = &join_abort_,
                     .device = options_.resources.device,
                     .staging = staging});
}

absl::Status RankRunner::OnWarning(const std::string& warning) {
  warnings_.push_back(warning);
  return absl::OkStatus();
}

absl::Status RankRunner::OpenMetrics(int64_t first_step) {
  metrics_options_.start.first_step = first_step;
  metrics_options_.notice = [this](const std::string& text) {
    SendNotice(text);
  };
  ASSIGN_OR_RETURN(metrics_,
                   RankMetrics::Open(metrics_spec_, metrics_options_));
  return absl::OkStatus();
}

void RankRunner::SendNotice(const std::string& text) const {
  LogWarning(absl::StrCat("job ", ref_.job(), ": ", text));
  WorkerMessage message;
  *message.mutable_notice()->mutable_ref() = ref_;
  message.mutable_notice()->set_text(text);
  // Without a scheduler it is in the log.
  options_.send(std::move(message)).IgnoreError();
}

void RankRunner::LogSample(const StepRecord& record) const {
  constexpr size_t kBytesMax = 2000;
  const TextSample& sample = record.sample();
  LogInfo(absl::StrCat(
      "job ", ref_.job(), ", step ", record.step(),
      sample.error().empty() ? ": sample: " : ": no sample: ",
      OneLine(sample.error().empty() ? sample.text() : sample.error(),
              kBytesMax)));
}

void RankRunner::OnResumed(const std::string& checkpoint) {
  resumed_from_ = checkpoint;
}

absl::Status RankRunner::OnReady(int64_t first_step) {
  RETURN_IF_ERROR(OpenMetrics(first_step));
  first_step_ = first_step;
  WorkerMessage message;
  RankReady& ready = *message.mutable_rank_ready();
  *ready.mutable_ref() = ref_;
  ready.set_first_step(first_step);
  ready.mutable_warnings()->Assign(warnings_.begin(), warnings_.end());
  ready.set_resumed_from(resumed_from_);
  return options_.send(std::move(message));
}

absl::Status RankRunner::OnStep(const StepRecord& record,
                                absl::Span<const double> sums,
                                const RankTimeline* timeline) {
  WorkerMessage message;
  StepReport& report = *message.mutable_step();
  report = MakeStepReport(
      ref_, sums_,
      {.record = record, .values = sums, .of_others = steps_of_others_});
  if (timeline != nullptr) *report.mutable_timeline() = *timeline;
  if (metrics_ != nullptr) metrics_->Add(record);
  if (record.has_sample()) LogSample(record);
  return options_.send(std::move(message));
}

absl::Status RankRunner::OnShardWritten(const WrittenShard& shard) {
  WorkerMessage message;
  CheckpointShard& report = *message.mutable_shard();
  *report.mutable_ref() = ref_;
  report.set_step(shard.step);
  report.set_write(WriteNumber());
  *report.mutable_shard() = shard.record;
  return options_.send(std::move(message));
}

absl::Status RankRunner::OnUnwritten(int64_t step, const std::string& error) {
  WorkerMessage message;
  CheckpointUnwritten& unwritten = *message.mutable_unwritten();
  *unwritten.mutable_ref() = ref_;
  unwritten.set_step(step);
  unwritten.set_write(WriteNumber());
  unwritten.set_error(error);
  return options_.send(std::move(message));
}

int64_t RankRunner::WriteNumber() const {
  absl::MutexLock lock(&mutex_);
  return write_.number;
}

// As long as the disks of the others get on; the scheduler, which hears whether
// they do, ends the wait where they do not.
absl::StatusOr<absl::optional<std::vector<ShardRecord>>>
RankRunner::AwaitShards(int64_t step) {
  absl::MutexLock lock(&mutex_);
  const auto answered = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return !aborted_.ok() || write_.shards.has_value() ||
           write_.given_up.has_value();
  };
  mutex_.Await(absl::Condition(&answered));
  if (!aborted_.ok()) return aborted_;
  if (write_.given_up.has_value()) return absl::nullopt;
  return std::exchange(write_.shards, absl::nullopt);
}

// All ranks hear of the end of each write: so they number the next one alike.
absl::StatusOr<CheckpointEnd> RankRunner::AwaitEnd(int64_t step) {
  absl::MutexLock lock(&mutex_);
  const auto answered = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return !aborted_.ok() || committed_ >= step || write_.given_up.has_value();
  };
  mutex_.Await(absl::Condition(&answered));
  const bool committed = committed_ >= step;
  if (!committed && !write_.given_up.has_value()) return aborted_;
  CheckpointEnd end;
  if (committed) {
    end.stored = stored_ >= step;
  } else {
    end.given_up = *std::move(write_.given_up);
  }
  write_ = {.number = write_.number + 1};
  return end;
}

absl::Status RankRunner::OnCommitted(const CheckpointRecord& checkpoint) {
  LogInfo(absl::StrCat("job ", ref_.job(), ": checkpoint ", checkpoint.path()));
  WorkerMessage message;
  *message.mutable_committed()->mutable_ref() = ref_;
  *message.mutable_committed()->mutable_checkpoint() = checkpoint;
  return options_.send(std::move(message));
}

}  // namespace troupe
