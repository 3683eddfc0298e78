// A harness (harness.h) for jobs that recover: ranks that end and say what they
// keep, and what their workers are told then.
#ifndef TROUPE_TESTS_SCHEDULER_CLUSTER_RECOVERY_HARNESS_H_
#define TROUPE_TESTS_SCHEDULER_CLUSTER_RECOVERY_HARNESS_H_

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "proto/base/check.h"
#include "tests/scheduler/cluster/harness.h"

namespace troupe {

inline JobSpec RecoveringSpec(int ranks, int restarts = 100) {
  JobSpec spec = SpecOf(ranks);
  spec.mutable_recovery()->set_copies(1);
  spec.mutable_recovery()->set_restarts(restarts);
  spec.mutable_checkpoint()->set_directory("/c");
  return spec;
}

struct RecoveryHarness : Harness {
  explicit RecoveryHarness(const Limits& limits = {}) : Harness(limits) {}

  // Ranks 0.. on these workers, in order, all ready.
  JobId Recovering(const std::vector<WorkerId>& on, int restarts = 100) {
    const JobId id =
        Submit(RecoveringSpec(static_cast<int>(on.size()), restarts));
    AllReady(id, on, 1);
    return id;
  }
  void AllReady(JobId id, const std::vector<WorkerId>& on, int64_t first_step) {
    for (size_t r = 0; r < on.size(); ++r) {
      Ready(id, static_cast<int>(r), on[r], first_step);
    }
    CHECK_EQ(status(id).state(), RUNNING) << status(id).ShortDebugString();
  }
  void AllStep(JobId id, const std::vector<WorkerId>& on, int64_t step) {
    for (size_t r = 0; r < on.size(); ++r) {
      Step(id, static_cast<int>(r), on[r], step);
    }
  }
  // As it was told to, or of itself, with an error, whose cause may lie in its
  // machine; and keeps these steps.
  void EndsKeeping(JobId id, int rank, WorkerId from,
                   const std::vector<int64_t>& steps,
                   const std::string& error = "", bool of_machine = false) {
    WorkerMessage message;
    RankEnded& ended = *message.mutable_ended();
    *ended.mutable_ref() = Ref(id, rank);
    ended.set_error(error.empty() ? "told to stop" : error);
    ended.set_stopped(error.empty());
    ended.set_local_cause(of_machine);
    for (const int64_t step : steps) {
      KeptCopy& kept = *ended.add_kept();
      kept.mutable_state()->set_step(step);
      kept.set_own(true);
    }
    Send(from, message);
  }
  void Commits(JobId id, WorkerId from, int64_t step) {
    WorkerMessage message;
    *message.mutable_committed()->mutable_ref() = Ref(id, 0);
    CheckpointRecord& record =
        *message.mutable_committed()->mutable_checkpoint();
    record.set_step(step);
    record.set_path(absl::StrCat("/c/step-", step));
    Send(from, message);
  }
  // It was asked to end, and has heard of this attempt.
  void Leaves(JobId id, int rank, WorkerId from) {
    WorkerMessage message;
    *message.mutable_leaving()->mutable_ref() = Ref(id, rank);
    message.mutable_leaving()->set_reason("SIGTERM");
    Send(from, message);
  }
  void SaysGoodbye(WorkerId from) {
    WorkerMessage message;
    message.mutable_goodbye()->set_reason("SIGTERM");
    Send(from, message);
  }

  // Whether an event of the job does.
  bool Says(JobId id, const std::string& text) const {
    const auto& events = job(id).events;
    return std::any_of(events.begin(), events.end(), [&](const JobEvent& e) {
      return absl::StrContains(e.text(), text);
    });
  }

  // What the worker was told to begin with last.
  Assignment Begun(WorkerId worker) const {
    Assignment begun;
    for (const SchedulerMessage& message : Sent(worker)) {
      if (message.has_start()) begun = message.start();
    }
    return begun;
  }
  // Which copies it was asked to save.
  std::vector<SaveCopies> Asked(WorkerId worker) const {
    std::vector<SaveCopies> asked;
    for (const SchedulerMessage& message : Sent(worker)) {
      if (message.has_save_copies()) asked.push_back(message.save_copies());
    }
    return asked;
  }
  // To what it was asked last.
  void Saved(WorkerId worker, const std::string& error = "",
             bool fails_again = false) {
    const SaveCopies asked = Asked(worker).back();
    WorkerMessage message;
    CopiesSaved& saved = *message.mutable_copies_saved();
    *saved.mutable_ref() = asked.ref();
    saved.set_token(asked.token());
    saved.set_error(error);
    saved.set_fails_again(fails_again);
    if (error.empty() && asked.has_commits()) {
      saved.mutable_checkpoint()->set_step(asked.state().step());
      saved.mutable_checkpoint()->set_path("/c/copies");
    }
    for (int i = 0; error.empty() && i < asked.copies_size(); ++i) {
      saved.add_shard_records()->set_file("shard");
    }
    Send(worker, message);
  }
  // Of which attempts it was told to forget what it keeps.
  std::vector<int> Forgotten(WorkerId worker) const {
    std::vector<int> attempts;
    for (const SchedulerMessage& message : Sent(worker)) {
      if (message.stop().give_up_kept()) {
        attempts.push_back(message.stop().ref().attempt());
      }
    }
    return attempts;
  }
};

}  // namespace troupe

#endif  // TROUPE_TESTS_SCHEDULER_CLUSTER_RECOVERY_HARNESS_H_
