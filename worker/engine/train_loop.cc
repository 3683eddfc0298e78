#include "worker/engine/train_loop.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/last_step.h"
#include "proto/plan/lr_schedule.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "worker/engine/carried_files.h"
#include "worker/instructions/instructions.h"
#include "worker/rank/resident_memory.h"

namespace troupe {
namespace {

const Program* FindProgram(const Plan& plan, Program::Kind kind) {
  for (const Program& program : plan.ranks(0).programs()) {
    if (program.kind() == kind) return &program;
  }
  return nullptr;
}

}  // namespace

TrainLoop::TrainLoop(const TrainLoopOptions& options,
                     const RankResources& resources, Connector connector,
                     RankListener& listener)
    : options_(options),
      resources_(resources),
      connector_(std::move(connector)),
      listener_(listener),
      last_step_(LastStep(options_.plan->job().training())),
      train_(FindProgram(*options_.plan, Program::TRAIN)),
      validate_(FindProgram(*options_.plan, Program::VALIDATE)),
      checkpoint_(FindProgram(*options_.plan, Program::CHECKPOINT)),
      executor_(resources.clock, &resources.device) {
  CHECK(train_ != nullptr) << "a plan without a TRAIN program";
}

TrainLoop::~TrainLoop() = default;

absl::Status TrainLoop::Run() {
  absl::Status status = RunSteps();
  const absl::Status written = EndWriter();
  // Whoever asked to stop may count on what was to be saved.
  if (status.ok() || (absl::IsCancelled(status) && !written.ok())) {
    status = written;
    if (!written.ok()) stopped_ = false;
  }
  {
    // From here on nobody may abort the communicators.
    absl::MutexLock lock(&mutex_);
    connected_.clear();
    // What an abort breaks fails in many ways; why it was done is the reason.
    if (!status.ok() && !aborted_.ok()) status = aborted_;
  }
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
  executor_.Abort(why);
  AbortCommunicators(why);
}

void TrainLoop::AbortCommunicators(const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  for (Communicator* communicator : connected_) communicator->Abort(why);
}

absl::Status TrainLoop::RunSteps() {
  ASSIGN_OR_RETURN(state_, RankState::Create(options_.plan, resources_.device,
                                             resources_.arenas));
  state_->collective_timeout = options_.collective_timeout;
  if (checkpoint_ != nullptr) {
    const std::string& dir = options_.plan->job().checkpoint().directory();
    RETURN_IF_ERROR(
        Annotate(PrepareCheckpointDirectory(dir), "checkpoint.directory"));
    if (options_.plan->job().checkpoint().background()) {
      background_ = std::make_unique<BackgroundWriter>();
    }
  }
  ASSIGN_OR_RETURN(TrainingPosition position, SetState());
  steps_done_ = position.step;
  first_step_ = position.step + 1;
  RETURN_IF_ERROR(Connect());
  RETURN_IF_ERROR(listener_.OnReady(first_step_));
  const JobSpec& job = options_.plan->job();
  for (int64_t step = first_step_; step <= last_step_; ++step) {
    const StepContext context = {.step = step,
                                 .samples_before = position.samples_consumed,
                                 .learning_rate = LearningRate(job, step),
                                 .stop = stop_requested_,
                                 .save = save_requested_};
    RETURN_IF_ERROR(Annotate(TrainStep(context), absl::StrCat("step ", step)));
    position.samples_consumed += job.training().global_batch_size();
  }
  return absl::OkStatus();
}

absl::StatusOr<TrainingPosition> TrainLoop::SetState() {
  TrainingPosition position;
  std::string resumed_from;
  const std::string& hf = options_.plan->job().model().hf();
  if (options_.resume.empty() && !hf.empty()) {
    RETURN_IF_ERROR(InitializeFromHuggingFace(hf, *state_));
  } else if (options_.resume.empty()) {
    InitializeFromSeed(*state_);
  } else {
    ASSIGN_OR_RETURN(resumed_from, CheckpointToResume());
    ASSIGN_OR_RETURN(position, RestoreFromCheckpoint(resumed_from, *state_));
    if (position.step > last_step_) {
      return absl::InvalidArgumentError(absl::StrCat(
          "training.stop_after: ", last_step_, ", but checkpoint ",
          resumed_from, " is of step ", position.step,
          "; ask for a later step, or for 0: all of training.steps"));
    }
  }
  // What was enqueued here, lanes will use.
  RETURN_IF_ERROR(state_->device.Synchronize());
  if (checkpoint_ != nullptr && state_->rank() == 0) {
    const JobSpec& spec = options_.plan->job();
    carried_ = CollectCarriedFiles(
        {.tokens = spec.data().tokens(),
         .tokenizer = state_->data.file().layout().tokenizer,
         .hf = spec.model().hf(),
         .resumed_from = resumed_from});
  }
  return position;
}

// `latest` is the newest of the job's own directory whose files are all as the
// manifest lists them: one flipped bit would train on silently. Every rank
// reads them all and so finds the same one, for nobody writes there yet.
absl::StatusOr<std::string> TrainLoop::CheckpointToResume() {
  if (options_.resume != "latest") return options_.resume;
  const absl::StatusOr<NewestCheckpoint> newest = FindNewestComplete(
      options_.plan->job().checkpoint().directory(), CheckDepth::kChecksums);
  if (!newest.ok()) {
    return Annotate(newest.status(), "checkpoint.resume latest");
  }
  for (const std::string& skipped : newest->skipped) {
    RETURN_IF_ERROR(listener_.OnWarning(skipped));
  }
  return newest->path;
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

absl::Status TrainLoop::TrainStep(const StepContext& context) {
  const Plan& plan = *options_.plan;
  if (background_ != nullptr) RETURN_IF_ERROR(background_->status());
  FinishedStep finished = {.context = context};
  RankTimeline timeline;
  timeline.set_rank(state_->rank());
  const int64_t begin_ns = resources_.clock.MonotonicNanos();
  const bool traced =
      options_.trace_every > 0 && IsDue(context.step, options_.trace_every);
  ASSIGN_OR_RETURN(finished.scalars,
                   RunProgram(*train_, context, traced ? &timeline : nullptr));
  finished.seconds = (resources_.clock.MonotonicNanos() - begin_ns) * 1e-9;

  StepRecord record = MakeStepRecord(plan, finished);
  record.set_memory_bytes(ResidentMemoryBytes());
  record.set_checkpoint_stall_seconds(
      std::exchange(checkpoint_stall_seconds_, 0));
  RETURN_IF_ERROR(CheckFinite(record));
  if (validate_ != nullptr &&
      IsDue(context.step, plan.job().training().validate_every())) {
    StepContext validation = context;
    validation.training = false;
    ASSIGN_OR_RETURN(const Scalars scalars,
                     RunProgram(*validate_, validation, nullptr));
    record.set_validation_loss(MeanLoss(scalars));
  }
  steps_done_ = context.step;
  RETURN_IF_ERROR(listener_.OnStep(record, traced ? &timeline : nullptr));
  const bool stop = context.stop || finished.scalars[kStopFlag] > 0;
  const bool save = context.save || finished.scalars[kSaveFlag] > 0;
  if (checkpoint_ != nullptr &&
      (stop ? save : IsDue(context.step, plan.job().checkpoint().every()))) {
    RETURN_IF_ERROR(WriteCheckpoint(context, record.samples_consumed()));
  }
  if (!stop) return absl::OkStatus();
  stopped_ = true;
  return absl::CancelledError("a rank was asked to stop");
}

absl::StatusOr<Scalars> TrainLoop::RunProgram(const Program& program,
                                              const StepContext& context,
                                              RankTimeline* timeline) {
  RankState& state = *state_;
  state.step = context;
  state.squared_norm.reset();
  state.snapshot.clear();
  char* scalars_memory = nullptr;
  const Buffer* buffer =
      FindResident(state.rank_plan(), Buffer::SCALARS, absl::nullopt);
  if (buffer != nullptr) scalars_memory = state.memory.At(*buffer);
  Scalars scalars{};
  if (scalars_memory != nullptr) {
    state.device.Zero(scalars_memory, sizeof(scalars));
  }
  const ProgramRunner runner = {
      .run =
          [&](int index) {
            return RunInstruction(
                {state, program, program.instructions(index)});
          },
      .on_failure =
          [this](const absl::Status& why) { AbortCommunicators(why); }};
  RETURN_IF_ERROR(executor_.Run(program, runner, timeline));
  if (scalars_memory != nullptr) {
    state.device.CopyToHost(scalars.data(), scalars_memory, sizeof(scalars));
    RETURN_IF_ERROR(state.device.Synchronize());
  }
  return scalars;
}

absl::Status TrainLoop::WriteCheckpoint(const StepContext& context,
                                        int64_t samples_consumed) {
  const int64_t begin_ns = resources_.clock.MonotonicNanos();
  // There is one copy: what is in it must be written before it is replaced.
  if (background_ != nullptr) RETURN_IF_ERROR(background_->AwaitIdle());
  RETURN_IF_ERROR(RunProgram(*checkpoint_, context, nullptr).status());
  Snapshot snapshot = {.step = context.step,
                       .samples_consumed = samples_consumed,
                       .tensors = std::move(state_->snapshot)};
  if (background_ != nullptr) {
    background_->Start(
        [this, snapshot = std::move(snapshot)] { return Write(snapshot); });
  } else {
    RETURN_IF_ERROR(Write(snapshot));
  }
  checkpoint_stall_seconds_ =
      (resources_.clock.MonotonicNanos() - begin_ns) * 1e-9;
  return absl::OkStatus();
}

absl::Status TrainLoop::Write(const Snapshot& snapshot) {
  CheckpointWriter writer(
      {.token = options_.checkpoint_token, .carried = carried_}, *state_,
      resources_.io, resources_.clock, listener_);
  return Annotate(writer.Write(snapshot),
                  absl::StrCat("checkpoint of step ", snapshot.step));
}

absl::Status TrainLoop::EndWriter() {
  if (background_ == nullptr) return absl::OkStatus();
  const absl::Status written = background_->AwaitIdle();
  background_.reset();
  return written;
}

}  // namespace troupe
