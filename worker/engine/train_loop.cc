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
#include "worker/engine/recover.h"
#include "worker/rank/turn_log.h"

namespace troupe {
namespace {

// For the checksum of the data, when all else is done.
constexpr absl::Duration kDataCheckPatience = absl::Seconds(10);

bool ReadsLate(const TrainLoopOptions& options, const Device& device) {
  return options.reads_late.value_or(device.asynchronous()) &&
         !ScalesLoss(options.plan->job().training());
}

LoopCheckpointsOptions CheckpointsOf(const TrainLoopOptions& options,
                                     const RankPrograms& programs) {
  return {.plan = options.plan,
          .any = programs.checkpoint != nullptr,
          .holder = {.token = options.checkpoint_token,
                     .job_token = options.job_token,
                     .resume = options.resume,
                     .ran_before = options.ran_before},
          .recovers = options.recovery.has_value(),
          .run_id = options.run_id,
          .pauses = options.save_pauses};
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
      programs_(ProgramsOf(options_.plan->roles(0), options_.plan->derived())),
      executor_(resources.clock, options_.plan->lanes(), &resources.device),
      disk_(resources.clock),
      checkpoints_(CheckpointsOf(options_, programs_),
                   RankDisk{resources.io, disk_}, resources.clock, listener),
      kept_(std::move(kept)) {}

TrainLoop::~TrainLoop() = default;

absl::Status TrainLoop::Run() {
  absl::Status status = RunSteps();
  // What is under way after an error ends as it can: other ranks may need it.
  steps_.reset();
  const absl::Status written = checkpoints_.End();
  // A client that asked to stop may count on what was to be saved, unless it
  // asked once more, to stop without it.
  if (status.ok() || (absl::IsCancelled(status) && !written.ok())) {
    status = written;
    if (!written.ok()) stopped_ = false;
  }
  if (absl::IsCancelled(status) && checkpoints_.gave_up()) stopped_ = true;
  status = failure_.ReasonOf(status);
  if (state_ != nullptr) kept_ = state_->TakeKept();
  kept_.data_unchecked = DataUnchecked();
  data_check_.reset();
  sample_.reset();
  state_.reset();
  return status;
}

void TrainLoop::Abort(const absl::Status& why) {
  CHECK(!why.ok());
  if (!failure_.Aborted(why)) return;
  checkpoints_.GiveUp();
  executor_.Abort(why);
  disk_.Abort(why);
  failure_.EndWaits(why);
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
                        disk_, std::exchange(kept_, {}), options_.build_units,
                        resources_.host_threads));
  state_->collective_timeout = options_.collective_timeout;
  state_->turns = TurnLogOf(*options_.plan, state_->rank(), store_);
  ASSIGN_OR_RETURN(steps_, StepPipeline::Create(PipelineOptions(), executor_,
                                                *state_, resources_.clock));
  RETURN_IF_ERROR(
      checkpoints_.Open(*state_, [this] { return DataUnchecked(); }));
  if (options_.checks_data && state_->data.has_value()) {
    data_check_ = std::make_unique<DataCheck>(
        CheckedFilesOf(options_.plan->job().data(), *state_->data));
  }
  ASSIGN_OR_RETURN(sample_, ValidationSample::Create(*state_));
  ASSIGN_OR_RETURN(const StartingPoint start, Begin());
  steps_done_ = start.position.step;
  RETURN_IF_ERROR(checkpoints_.Resume(start, *state_));
  const int64_t first_step = start.position.step + 1;
  if (state_->rank() == 0 && !start.resumed_from.empty()) {
    listener_.OnResumed(start.resumed_from);
  }
  RETURN_IF_ERROR(listener_.OnReady(first_step));
  state_->first_step = first_step;
  steps_->BeginAfter(start.position.step);
  const JobSpec& job = options_.plan->job();
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
                     : IslandsAgreeIn(*options_.plan, step) &&
                           checkpoints_.TakeDue()};
    if (resources_.between_steps != nullptr) resources_.between_steps();
    if (step == first_step) RETURN_IF_ERROR(FillPipeline(context));
    const bool follows = steps_->under_way();
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

StepPipelineOptions TrainLoop::PipelineOptions() {
  return {
      .programs = programs_,
      .reads_late = reads_late_,
      .on_failure = [this](const absl::Status& why) { failure_.FailedIn(why); },
      .report =
          [this](const StepRecord& record, absl::Span<const double> sums,
                 const RankTimeline* timeline) {
            steps_done_ = record.step();
            return listener_.OnStep(record, sums, timeline);
          }};
}

absl::Status TrainLoop::Connect() {
  ASSIGN_OR_RETURN(state_->communicators,
                   connector_(*options_.plan, state_->rank()));
  CHECK_EQ(state_->communicators.size(), options_.plan->groups_size());
  return failure_.Attach(state_->communicators);
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
  return Annotate(steps_->Run(*programs_.fill, before).status(),
                  "while the pipeline was filled");
}

absl::Status TrainLoop::StartStep(const StepContext& context) {
  RETURN_IF_ERROR(checkpoints_.status());
  if (data_check_ != nullptr) {
    RETURN_IF_ERROR(DataStatus(data_check_->status()));
  }
  return steps_->Start(
      context, {.traced = options_.trace_every > 0 &&
                          IsDue(context.step, options_.trace_every),
                .checkpoint_stall_seconds = checkpoints_.TakeStallSeconds()});
}

absl::Status TrainLoop::EndStepBefore() {
  ASSIGN_OR_RETURN(PendingReport report, steps_->Await());
  return CloseStep(std::move(report), {});
}

absl::Status TrainLoop::EndStep(const StepContext& context) {
  const int64_t step = context.step;
  // The first one is not left: kernels are loaded in it, and loading counts on
  // having the device to itself (docs/gpu.md, "The first step").
  absl::optional<PendingReport> report;
  if (!reads_late_ || step == state_->first_step) {
    ASSIGN_OR_RETURN(report, steps_->Await());
  }
  const JobSpec& job = options_.plan->job();
  const bool stop = steps_->stop().IsAfter(step);
  const bool validate = programs_.validate != nullptr &&
                        IsDue(step, job.training().validate_every());
  const bool checkpoint = programs_.checkpoint != nullptr &&
                          (stop ? steps_->stop().save()
                                : IsDue(step, job.checkpoint().every()) ||
                                      steps_->stop().SavesAfter(step));
  const bool all_known =
      validate || checkpoint || stop || step == last_step_ || KeepsAfter(step);
  if (!report.has_value()) {
    if (!all_known) return absl::OkStatus();
    ASSIGN_OR_RETURN(report, steps_->Await());
  }
  RETURN_IF_ERROR(CloseStep(*std::move(report),
                            {.all_known = all_known, .validate = validate}));
  if (checkpoint) {
    RETURN_IF_ERROR(checkpoints_.Save(
        *state_, context, /*last=*/stop || step == last_step_,
        [&] { return steps_->Run(*programs_.checkpoint, context).status(); }));
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
  ASSIGN_OR_RETURN(const Scalars scalars,
                   steps_->Sum(report, closing.all_known));
  if (closing.validate) {
    ASSIGN_OR_RETURN(report.validation_loss, Validate(context));
    ASSIGN_OR_RETURN(report.sample, WriteSample());
  }
  return steps_->Report(std::move(report), scalars, closing.all_known);
}

absl::StatusOr<double> TrainLoop::Validate(const StepContext& context) {
  StepContext validation = context;
  validation.training = false;
  ASSIGN_OR_RETURN(const Scalars scalars,
                   steps_->Run(*programs_.validate, validation));
  return ValidationLoss(*options_.plan, scalars);
}

absl::StatusOr<absl::optional<TextSample>> TrainLoop::WriteSample() {
  if (sample_ == nullptr) return absl::nullopt;
  absl::StatusOr<absl::optional<TextSample>> sample =
      sample_->Write([this] { return failure_.aborted(); });
  if (!sample.ok()) failure_.FailedIn(sample.status());
  return sample;
}

bool TrainLoop::KeepsAfter(int64_t step) const {
  return programs_.keep != nullptr && step < last_step_ &&
         KeepsCopiesAfter(*options_.plan, step);
}

absl::Status TrainLoop::Keep(int64_t step, int64_t samples) {
  if (programs_.keep == nullptr) return absl::OkStatus();
  const int64_t turn = state_->copies.Begin(step);
  RETURN_IF_ERROR(
      Annotate(steps_->Run(*programs_.keep, {.step = turn}).status(),
               absl::StrCat("step ", step)));
  state_->copies.End(turn, KeptStateOf(step, samples, state_->loss_scale),
                     MirrorsOf(*programs_.keep));
  return absl::OkStatus();
}

absl::Status TrainLoop::DataStatus(const absl::Status& status) const {
  const int64_t first = checkpoints_.first_unchecked();
  if (status.ok() || first == 0) return status;
  return absl::Status(
      status.code(),
      absl::StrCat(status.message(), "; this run's checkpoints, from step ",
                   first,
                   " on, were trained on them: go on from an earlier one"));
}

}  // namespace troupe
