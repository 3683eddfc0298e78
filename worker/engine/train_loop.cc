#include "worker/engine/train_loop.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/resume_words.h"
#include "proto/base/status.h"
#include "proto/plan/copies.h"
#include "proto/plan/islands.h"
#include "proto/plan/last_step.h"
#include "proto/plan/lr_schedule.h"
#include "proto/plan/memory.h"
#include "proto/plan/precision.h"
#include "proto/plan/sums.h"
#include "proto/plan/tier_traffic.h"
#include "worker/engine/carried_files.h"
#include "worker/engine/recover.h"
#include "worker/rank/resident_memory.h"

namespace troupe {
namespace {

// For the checksum of the data, when all else is done.
constexpr absl::Duration kDataCheckPatience = absl::Seconds(10);

bool ReadsLate(const TrainLoopOptions& options, const Device& device) {
  return options.reads_late.value_or(device.asynchronous()) &&
         !ScalesLoss(options.plan->job().training());
}

std::string StepWords(int64_t step) { return absl::StrCat("step ", step); }

}  // namespace

TrainLoop::TrainLoop(const TrainLoopOptions& options,
                     const RankResources& resources, KeyValueStore& store,
                     Connector connector, RankListener& listener,
                     KeptMemory kept)
    : options_(options),
      resources_(resources),
      store_(store),
      connector_(std::move(connector)),
      listener_(listener),
      last_step_(LastStep(options_.plan->job().training())),
      reads_late_(ReadsLate(options_, resources.device)),
      stop_(options_.plan->derived().report_lag() + (reads_late_ ? 1 : 0)),
      programs_(ProgramsOf(options_.plan->roles(0), options_.plan->derived())),
      executor_(resources.clock, options_.plan->lanes(), &resources.device),
      disk_(resources.clock),
      kept_(std::move(kept)) {}

TrainLoop::~TrainLoop() = default;

absl::Status TrainLoop::Run() {
  absl::Status status = RunSteps();
  // What is under way after an error ends as it can: other ranks may need it.
  runs_.reset();
  under_way_.clear();
  const absl::Status written = EndSaver();
  // Whoever asked to stop may count on what was to be saved, unless they asked
  // once more, to stop without it.
  if (status.ok() || (absl::IsCancelled(status) && !written.ok())) {
    status = written;
    if (!written.ok()) stopped_ = false;
  }
  if (absl::IsCancelled(status) && gives_up_.HasBeenNotified()) stopped_ = true;
  {
    // From here on nobody may abort the communicators.
    absl::MutexLock lock(&mutex_);
    connected_.clear();
    // What an abort breaks fails in many ways; why it was done is the reason.
    if (!status.ok() && !aborted_.ok() && !failed_first_) status = aborted_;
  }
  if (state_ != nullptr) kept_ = state_->TakeKept();
  kept_.data_unchecked = DataUnchecked();
  data_check_.reset();
  folder_.reset();
  sample_.reset();
  state_.reset();
  return status;
}

void TrainLoop::Abort(const absl::Status& why) {
  CHECK(!why.ok());
  {
    absl::MutexLock lock(&mutex_);
    if (!aborted_.ok()) return;
    aborted_ = why;
  }
  GiveUpSaving();
  executor_.Abort(why);
  disk_.Abort(why);
  AbortCommunicators(why);
}

void TrainLoop::FailedIn(const absl::Status& why) {
  {
    absl::MutexLock lock(&mutex_);
    failed_first_ |= aborted_.ok() && !MissingRank(why).has_value();
  }
  AbortCommunicators(why);
}

void TrainLoop::AbortCommunicators(const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  for (Communicator* communicator : connected_) communicator->Abort(why);
}

RankProgress TrainLoop::Progress() const {
  RankProgress progress = executor_.Progress();
  absl::optional<DiskProgress> disk = disk_.Progress();
  if (disk.has_value()) *progress.mutable_disk() = *std::move(disk);
  return progress;
}

absl::Status TrainLoop::RunSteps() {
  ASSIGN_OR_RETURN(
      state_,
      RankState::Create(options_.plan, resources_.device, resources_.arenas,
                        disk_, std::exchange(kept_, {}), options_.build_units));
  state_->collective_timeout = options_.collective_timeout;
  ASSIGN_OR_RETURN(runs_, ProgramRuns::Create(executor_, *state_,
                                              [this](const absl::Status& why) {
                                                FailedIn(why);
                                              }));
  if (programs_.checkpoint != nullptr) {
    ASSIGN_OR_RETURN(folder_,
                     OpenCheckpointFolder(options_.plan->job(), Holder(),
                                          state_->rank(), listener_));
    saver_ = std::make_unique<CheckpointSaver>(SaverOptions(), *state_,
                                               RankDisk{resources_.io, disk_},
                                               resources_.clock, listener_);
  }
  if (options_.checks_data && state_->data.has_value()) {
    data_check_ = std::make_unique<DataCheck>(
        CheckedFilesOf(options_.plan->job().data(), *state_->data));
  }
  ASSIGN_OR_RETURN(sample_, ValidationSample::Create(*state_));
  ASSIGN_OR_RETURN(const StartingPoint start, Begin());
  steps_done_ = start.position.step;
  const JobSpec& job = options_.plan->job();
  if (programs_.checkpoint != nullptr && state_->rank() == 0) {
    saver_->SetCarried(
        CollectCarriedFiles({.tokens = TokensOf(job, state_->data),
                             .tokenizer = state_->tokenizer(),
                             .hf = job.model().hf(),
                             .resumed_from = start.resumed_from}));
    RETURN_IF_ERROR(Annotate(RemoveOld(start), "checkpoint.directory"));
  }
  const int64_t first_step = start.position.step + 1;
  RETURN_IF_ERROR(listener_.OnReady(first_step));
  state_->first_step = first_step;
  summed_through_ = start.position.step;
  int64_t samples_before = start.position.samples_consumed;
  if (first_step <= last_step_) {
    RETURN_IF_ERROR(Keep(start.position.step, samples_before));
  }
  for (int64_t step = first_step; step <= last_step_; ++step) {
    const bool stop = stop_requested_;
    const StepContext context = {
        .step = step,
        .samples_before = samples_before,
        .learning_rate = LearningRate(job, step),
        .training = !job.evaluate(),
        .stop = stop,
        .save = stop ? save_requested_.load()
                     : saver_ != nullptr &&
                           IslandsAgreeIn(*options_.plan, step) &&
                           saver_->TakeDue()};
    if (resources_.between_steps != nullptr) resources_.between_steps();
    if (step == first_step) RETURN_IF_ERROR(FillPipeline(context));
    const bool follows = !under_way_.empty();
    const absl::Status started = StartStep(context);
    if (follows) {
      RETURN_IF_ERROR(Annotate(EndStepBefore(), StepWords(step - 1)));
    }
    RETURN_IF_ERROR(
        Annotate(started.ok() ? EndStep(context) : started, StepWords(step)));
    samples_before += job.training().global_batch_size();
    if (KeepsAfter(step)) RETURN_IF_ERROR(Keep(step, samples_before));
  }
  if (data_check_ == nullptr) return absl::OkStatus();
  return DataStatus(data_check_->AwaitEnd(kDataCheckPatience));
}

absl::StatusOr<StartingPoint> TrainLoop::Begin() {
  const auto meet = [this]() -> absl::Status {
    RETURN_IF_ERROR(executor_.Prepare(
        {programs_.fill, programs_.step, programs_.validate, programs_.report,
         programs_.checkpoint, programs_.keep},
        PredictedBytes(*options_.plan, state_->rank(), kKernelScratchItem)));
    return Connect();
  };
  StartingPoint start;
  if (!options_.recovery.has_value()) {
    ASSIGN_OR_RETURN(start, SetStartingPoint({.resume = options_.resume,
                                              .last_step = last_step_,
                                              .name = options_.name},
                                             {.disk = {resources_.io, disk_},
                                              .store = store_},
                                             *state_, listener_));
    RETURN_IF_ERROR(meet());
    return start;
  }
  RETURN_IF_ERROR(meet());
  RETURN_IF_ERROR(Recover(*options_.recovery, *state_));
  start.position.step = options_.recovery->state().step();
  start.position.samples_consumed =
      options_.recovery->state().samples_consumed();
  // The checkpoint that another rank would have gone on from carries the same.
  start.resumed_from = IsResumeWord(options_.resume) ? "" : options_.resume;
  return start;
}

HolderOptions TrainLoop::Holder() const {
  return {.token = options_.checkpoint_token,
          .job_token = options_.job_token,
          .resume = options_.resume,
          .ran_before = options_.ran_before};
}

// Copies may be of a later step than the checkpoint is. Where the directory is
// not held yet, the first checkpoint that is written removes the same.
absl::Status TrainLoop::RemoveOld(const StartingPoint& start) {
  if (options_.recovery.has_value() || !folder_->held().ok() ||
      !ResumesItsOwn(options_.plan->job(), Holder())) {
    return absl::OkStatus();
  }
  return saver_->RemoveOld(start.position.step, start.resumed_from);
}

absl::Status TrainLoop::Connect() {
  ASSIGN_OR_RETURN(state_->communicators,
                   connector_(*options_.plan, state_->rank()));
  CHECK_EQ(state_->communicators.size(), options_.plan->groups_size());
  absl::MutexLock lock(&mutex_);
  if (!aborted_.ok()) return aborted_;
  for (const auto& communicator : state_->communicators) {
    if (communicator != nullptr) connected_.push_back(communicator.get());
  }
  return absl::OkStatus();
}

bool TrainLoop::IsDue(int64_t step, int64_t every) const {
  if (step == last_step_) return true;
  return every > 0 && step % every == 0;
}

// The program runs as if for the step before the first: what it computes is all
// ahead of that.
absl::Status TrainLoop::FillPipeline(const StepContext& first) {
  if (programs_.fill == nullptr) return absl::OkStatus();
  const StepContext before = {
      .step = first.step - 1,
      .samples_before = first.samples_before -
                        options_.plan->job().training().global_batch_size()};
  return Annotate(RunProgram(*programs_.fill, before).status(),
                  "while the pipeline was filled");
}

absl::Status TrainLoop::StartStep(const StepContext& context) {
  if (saver_ != nullptr) RETURN_IF_ERROR(saver_->status());
  if (data_check_ != nullptr)
    RETURN_IF_ERROR(DataStatus(data_check_->status()));
  StepUnderWay step = {.report = {.finished = {.context = context},
                                  .checkpoint_stall_seconds = std::exchange(
                                      checkpoint_stall_seconds_, 0)},
                       .traced = options_.trace_every > 0 &&
                                 IsDue(context.step, options_.trace_every),
                       .begin_ns = resources_.clock.MonotonicNanos()};
  // Who moves between tiers is told how long, each step.
  if (step.traced || MovesBetweenTiers(*programs_.step)) {
    step.report.timeline.emplace().set_rank(state_->rank());
  }
  under_way_.push_back(std::move(step));
  absl::optional<RankTimeline>& timeline = under_way_.back().report.timeline;
  StepContext at_start = context;
  at_start.summed_through = summed_through_;
  const absl::Status started = runs_->Start(
      *programs_.step, at_start, timeline.has_value() ? &*timeline : nullptr);
  if (!started.ok()) under_way_.pop_back();
  return started;
}

absl::StatusOr<PendingReport> TrainLoop::AwaitStep() {
  const absl::StatusOr<ProgramRuns::Ended> ended = runs_->Await();
  StepUnderWay step = std::move(under_way_.front());
  under_way_.pop_front();
  RETURN_IF_ERROR(ended.status());
  PendingReport& report = step.report;
  FinishedStep& finished = report.finished;
  finished.scalars = ended->scalars;
  // The device takes a step up when it has done the one before.
  finished.seconds =
      (ended->ended_ns - std::max(step.begin_ns, ended_ns_)) * 1e-9;
  ended_ns_ = ended->ended_ns;
  report.memory_bytes = ResidentMemoryBytes();
  // Where it is scaled, no step is summed or read late.
  finished.loss_scale = state_->loss_scale.state();
  const Plan& plan = *options_.plan;
  state_->loss_scale.Update(SumNamed(plan, finished.scalars, kSquaredNormSum));
  if (MovesBetweenTiers(*programs_.step)) {
    report.tiers = TrafficOf(*programs_.step, plan.lanes(), *report.timeline);
    if (!step.traced) report.timeline.reset();
  }
  StopFlags flags = FlagsIn(finished.scalars);
  if (programs_.report_lag == 0) {
    // In the sum already, where there is another rank to sum with.
    flags.stop += finished.context.stop;
    flags.save += finished.context.save;
  }
  Heed(finished.context.step - programs_.report_lag, flags);
  return std::move(step.report);
}

absl::Status TrainLoop::EndStepBefore() {
  ASSIGN_OR_RETURN(PendingReport report, AwaitStep());
  return CloseStep(std::move(report), {});
}

absl::Status TrainLoop::EndStep(const StepContext& context) {
  const int64_t step = context.step;
  // The first one is not left: kernels are loaded in it, and whoever does that
  // counts on having the device to itself (docs/gpu.md, "The first step").
  absl::optional<PendingReport> report;
  if (!reads_late_ || step == state_->first_step) {
    ASSIGN_OR_RETURN(report, AwaitStep());
  }
  const JobSpec& job = options_.plan->job();
  const bool stop = stop_.IsAfter(step);
  const bool validate = programs_.validate != nullptr &&
                        IsDue(step, job.training().validate_every());
  const bool checkpoint =
      programs_.checkpoint != nullptr &&
      (stop ? stop_.save()
            : IsDue(step, job.checkpoint().every()) || stop_.SavesAfter(step));
  const bool all_known =
      validate || checkpoint || stop || step == last_step_ || KeepsAfter(step);
  if (!report.has_value()) {
    if (!all_known) return absl::OkStatus();
    ASSIGN_OR_RETURN(report, AwaitStep());
  }
  RETURN_IF_ERROR(CloseStep(*std::move(report),
                            {.all_known = all_known, .validate = validate}));
  if (checkpoint) {
    RETURN_IF_ERROR(SaveCheckpoint(context, stop || step == last_step_));
  }
  if (!stop) return absl::OkStatus();
  if (data_check_ != nullptr) {
    RETURN_IF_ERROR(DataStatus(data_check_->AwaitEnd(absl::ZeroDuration())));
  }
  stopped_ = true;
  return absl::CancelledError("a rank was asked to stop");
}

absl::Status TrainLoop::CloseStep(PendingReport report,
                                  const Closing& closing) {
  const StepContext context = report.finished.context;
  const int64_t lag = programs_.report_lag;
  Scalars scalars = report.finished.scalars;
  if (lag > 0) {
    RETURN_IF_ERROR(Report(context.step - lag, scalars));
    if (closing.all_known) {
      ASSIGN_OR_RETURN(scalars, SumLateSteps(context.step));
    }
  }
  if (closing.validate) {
    ASSIGN_OR_RETURN(report.validation_loss, Validate(context));
    if (sample_ != nullptr) {
      ASSIGN_OR_RETURN(report.sample, sample_->Write(context.step, [this] {
        absl::MutexLock lock(&mutex_);
        return aborted_;
      }));
    }
  }
  pending_.Add(std::move(report));
  if (lag > 0 && !closing.all_known) return absl::OkStatus();
  return Report(context.step, scalars);
}

absl::StatusOr<double> TrainLoop::Validate(const StepContext& context) {
  StepContext validation = context;
  validation.training = false;
  ASSIGN_OR_RETURN(const Scalars scalars,
                   RunProgram(*programs_.validate, validation));
  return ValidationLoss(*options_.plan, scalars);
}

StopFlags TrainLoop::FlagsIn(const Scalars& scalars) const {
  return {.stop = SumNamed(*options_.plan, scalars, kStopSum),
          .save = SumNamed(*options_.plan, scalars, kSaveSum)};
}

void TrainLoop::Heed(int64_t step, const StopFlags& flags) {
  if (step <= summed_through_) return;  // the sum was left out
  summed_through_ = step;
  if (IslandsAgreeIn(*options_.plan, step)) stop_.Heed(step, flags);
}

absl::StatusOr<Scalars> TrainLoop::SumLateSteps(int64_t done) {
  Scalars scalars;
  for (int64_t later = 1; later <= programs_.report_lag; ++later) {
    const StepContext context = {.step = done + later};
    const int64_t step = context.step - programs_.report_lag;
    ASSIGN_OR_RETURN(scalars, RunProgram(*programs_.report, context));
    Heed(step, FlagsIn(scalars));
    if (step < done) RETURN_IF_ERROR(Report(step, scalars));
  }
  return scalars;
}

absl::Status TrainLoop::Report(int64_t step, const Scalars& scalars) {
  absl::optional<PendingReport> report = pending_.Take(step);
  if (!report.has_value()) return absl::OkStatus();
  report->finished.scalars = scalars;
  StepRecord record = MakeStepRecord(*options_.plan, report->finished);
  report->FillIn(record);
  absl::Status finite = options_.plan->job().evaluate()
                            ? evaluated_.Add(*options_.plan, scalars, record)
                            : CheckFinite(record, state_->loss_scale);
  if (programs_.report_lag > 0) {
    finite = Annotate(finite, absl::StrCat("of step ", step));
  }
  RETURN_IF_ERROR(finite);
  steps_done_ = step;
  return listener_.OnStep(
      record, scalars,
      report->timeline.has_value() ? &*report->timeline : nullptr);
}

absl::StatusOr<Scalars> TrainLoop::RunProgram(const Program& program,
                                              StepContext context) {
  context.summed_through = summed_through_;
  return runs_->Run(program, context, nullptr);
}

absl::Status TrainLoop::SaveCheckpoint(const StepContext& context, bool last) {
  const int64_t begin_ns = resources_.clock.MonotonicNanos();
  // There is one copy: what is in it must be written before it is replaced.
  RETURN_IF_ERROR(saver_->AwaitFree());
  RETURN_IF_ERROR(RunProgram(*programs_.checkpoint, context).status());
  Snapshot snapshot = {
      .step = context.step,
      .samples_consumed = context.samples_before +
                          options_.plan->job().training().global_batch_size(),
      .loss_scale = state_->loss_scale.state(),
      .tensors = std::move(state_->snapshot)};
  RETURN_IF_ERROR(saver_->Save(std::move(snapshot), last));
  checkpoint_stall_seconds_ =
      (resources_.clock.MonotonicNanos() - begin_ns) * 1e-9;
  return absl::OkStatus();
}

bool TrainLoop::KeepsAfter(int64_t step) const {
  return programs_.keep != nullptr && step < last_step_ &&
         step % std::max<int64_t>(1,
                                  options_.plan->prediction().keep_every()) ==
             0;
}

absl::Status TrainLoop::Keep(int64_t step, int64_t samples) {
  if (programs_.keep == nullptr) return absl::OkStatus();
  const int64_t turn = state_->copies.Begin(step);
  RETURN_IF_ERROR(Annotate(RunProgram(*programs_.keep, {.step = turn}).status(),
                           absl::StrCat("step ", step)));
  state_->copies.End(turn, KeptStateOf(step, samples, state_->loss_scale),
                     MirrorsOf(*programs_.keep));
  return absl::OkStatus();
}

CheckpointSaverOptions TrainLoop::SaverOptions() {
  return {.token = options_.checkpoint_token,
          .run_id = options_.run_id,
          .background = options_.plan->job().checkpoint().background(),
          .folder = folder_.get(),
          .pauses = options_.save_pauses,
          .data_unchecked = [this] { return DataUnchecked(); },
          .gives_up = gives_up_};
}

absl::Status TrainLoop::DataStatus(const absl::Status& status) const {
  const int64_t first = saver_ == nullptr ? 0 : saver_->first_unchecked();
  if (status.ok() || first == 0) return status;
  return absl::Status(
      status.code(),
      absl::StrCat(status.message(), "; this run's checkpoints, from step ",
                   first,
                   " on, were trained on them: go on from an earlier one"));
}

absl::Status TrainLoop::EndSaver() {
  const absl::Status saved =
      saver_ == nullptr ? absl::OkStatus() : saver_->AwaitFree();
  saver_.reset();  // waits for what is being removed
  return saved;
}

}  // namespace troupe
