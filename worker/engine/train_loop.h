// One rank of one job, from its first byte of memory to its last step: reserves
// memory, sets weights, meets its peers, then runs the TRAIN program for each
// step and VALIDATE, CHECKPOINT and KEEP where they are due (docs/plan.md,
// "Programs"); of a job that evaluates, VALIDATE for each step. All steps that
// are done are reported before a checkpoint is written and at the end. Where
// the job is to survive the loss of a worker, KEEP copies the state at the
// start and at intervals of steps, and a later attempt of the job goes on from
// that. This file says what is due when; the rest is in others:
//
//   step_pipeline.h     steps that overlap, and are summed and reported late
//   loop_checkpoints.h   what is saved, beside training where there is room
//   first_failure.h     what an error or an abort ends, and which came first
//
// Knows neither scheduler nor network: a listener hears of its progress, a
// connector gives it its communicators.
//
//   TrainLoop loop(options, resources, connector, listener);
//   absl::Status status = loop.Run();  // a thread's; others may Abort it
#ifndef TROUPE_WORKER_ENGINE_TRAIN_LOOP_H_
#define TROUPE_WORKER_ENGINE_TRAIN_LOOP_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "ops/device.h"
#include "proto/base/clock.h"
#include "proto/plan.pb.h"
#include "proto/worker.pb.h"
#include "storage/engine/engine.h"
#include "worker/collective/communicator.h"
#include "worker/collective/key_value_store.h"
#include "worker/engine/checkpoint_saver.h"
#include "worker/engine/data_check.h"
#include "worker/engine/executor.h"
#include "worker/engine/first_failure.h"
#include "worker/engine/loop_checkpoints.h"
#include "worker/engine/pending_reports.h"
#include "worker/engine/rank_listener.h"
#include "worker/engine/rank_programs.h"
#include "worker/engine/starting_point.h"
#include "worker/engine/step_pipeline.h"
#include "worker/engine/step_record.h"
#include "worker/engine/validation_sample.h"
#include "worker/rank/disk_log.h"
#include "worker/rank/rank_state.h"
#include "worker/rank/state_copies.h"
#include "worker/rank/tier_arenas.h"

namespace troupe {

struct TrainLoopOptions {
  std::shared_ptr<const Plan> plan;   // with this rank's programs only
  std::string resume;                 // starting_point.h
  absl::optional<Recovery> recovery;  // in place of it: recover.h
  int64_t trace_every = 0;       // steps whose timeline is reported; 0: none
  std::string checkpoint_token;  // checkpoint_writer.h
  // An earlier attempt ran: what lies where checkpoints go is the job's own,
  // and a holder of that place by a token that begins so is not alive to it.
  bool ran_before = false;
  std::string job_token;
  std::string run_id;        // JobStatus.run_id
  std::string name;          // of this worker, for messages
  bool checks_data = false;  // that the data's checksum holds
  // Whether the next step is started before this one's scalars are read;
  // absent: where the device is asynchronous. The same on all ranks of a job,
  // as they stop two steps later then. Of a job that scales its loss never: the
  // next step needs the scale.
  absl::optional<bool> reads_late;
  absl::Duration collective_timeout = absl::Minutes(5);
  SavePauses save_pauses;
  UnitsBuilder build_units = nullptr;  // as RankState::Create
};

// What the worker lends to a job; all outlive it.
struct RankResources {
  Device& device;
  const TierArenas& arenas;
  IoEngine& io;
  const Clock& clock;
  // Called before each step is started, where no kernel of the rank runs on the
  // host's cores; it must be quick. May be null.
  std::function<void()> between_steps = nullptr;
  int host_threads = 0;  // RankState::Create
};

// Communicators by index into plan.groups(), null where the rank meets nobody
// (proto/plan/meeting.h, MeetingGroups).
// Must return once the job is aborted.
using Connector =
    std::function<absl::StatusOr<std::vector<std::unique_ptr<Communicator>>>(
        const Plan& plan, int rank)>;

class TrainLoop {
 public:
  // Borrows the store, in which the ranks agree where they start, and the
  // listener. After an Abort the store must be aborted, too. `kept`: what an
  // earlier attempt left.
  TrainLoop(const TrainLoopOptions& options, const RankResources& resources,
            KeyValueStore& store, Connector connector, RankListener& listener,
            KeptMemory kept = {});
  ~TrainLoop();

  // Trains to the job's last step (proto/plan/last_step.h); all checkpoints are
  // written when it returns, or given up, and all memory of the job is back in
  // the arenas. The error says in which step what failed. Call once.
  absl::Status Run();

  // Makes Run return `why` soon, wherever it is: the instructions in progress
  // are the last ones, and what is being read or written ends there. The
  // listener is not told: it must end its waits by itself. From any thread, at
  // any time.
  void Abort(const absl::Status& why);

  int64_t steps_done() const { return steps_done_; }  // complete and reported

  // Makes all ranks end together after the next step that begins, or as many
  // further as its scalars are read late, with Cancelled, though only one of
  // them be asked. A last checkpoint that cannot be written, and is tried
  // again, is given up. From any thread.
  void RequestStop() {
    stop_requested_ = true;
    checkpoints_.GiveUp();
  }
  // The same, after a checkpoint of the last step where the job has any: as
  // soon as that can be written.
  void RequestSaveAndStop() {
    save_requested_ = true;
    stop_requested_ = true;
  }

  bool stopped() const { return stopped_; }    // as a rank was asked to
  void EndThreads() { executor_.EndLanes(); }  // of its lanes, after Run

  // After Run: what it leaves to the next attempt.
  KeptMemory& kept() { return kept_; }

  // Where the rank is now, but for its `ref`. From any thread.
  RankProgress Progress() const;

 private:
  absl::Status RunSteps();
  // Sets the state, and meets the others.
  absl::StatusOr<StartingPoint> Begin();
  absl::Status Connect();
  StepPipelineOptions PipelineOptions();
  absl::Status FillPipeline(const StepContext& first);
  absl::Status StartStep(const StepContext& context);
  // Of the step before, which was left under way.
  absl::Status EndStepBefore();
  // Sees to all that is due after the step, and ends it first, but where that
  // can be left until the next one is started.
  absl::Status EndStep(const StepContext& context);
  // Reports the step, or what is known by it. `all_known`: that is all steps.
  struct Closing {
    bool all_known = false;
    bool validate = false;
  };
  absl::Status CloseStep(PendingReport report, const Closing& closing);
  absl::StatusOr<double> Validate(const StepContext& context);
  // Nothing where there is none, or another rank has it.
  absl::StatusOr<absl::optional<TextSample>> WriteSample();
  bool KeepsAfter(int64_t step) const;
  // Copies the state, as it is after `step` steps and `samples` samples.
  absl::Status Keep(int64_t step, int64_t samples);
  bool DataUnchecked() const {
    return data_check_ != nullptr && !data_check_->holds();
  }
  // What the check of the data says, with what was saved before it did.
  absl::Status DataStatus(const absl::Status& status) const;
  bool IsDue(int64_t step, int64_t every) const;

  const TrainLoopOptions options_;
  const RankResources resources_;
  KeyValueStore& store_;
  const Connector connector_;
  RankListener& listener_;
  const int64_t last_step_;
  const bool reads_late_;
  const RankPrograms programs_;
  FirstFailure failure_;
  Executor executor_;
  DiskLog disk_;
  LoopCheckpoints checkpoints_;  // reads state_
  KeptMemory kept_;
  std::unique_ptr<RankState> state_;
  std::unique_ptr<StepPipeline> steps_;       // on state_
  std::unique_ptr<DataCheck> data_check_;     // reads state_'s data; or null
  std::unique_ptr<ValidationSample> sample_;  // uses state_; or null
  std::atomic<int64_t> steps_done_{0};
  std::atomic<bool> stopped_{false};
  std::atomic<bool> save_requested_{false};  // only with the next
  std::atomic<bool> stop_requested_{false};
};

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_TRAIN_LOOP_H_
