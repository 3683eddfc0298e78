// A job on N ranks without daemons: the planner's plan, and one thread with a
// train loop for each rank. What the scheduler would do for them, a board in
// memory does.
//
//   const TrainingRun run = Train(job, {.ranks = 2, .backend = "gloo"});
//   run.steps[0][4].loss()   // of rank 0, the fifth step
#ifndef TROUPE_TESTS_EQUIVALENCE_CLUSTER_OF_THREADS_H_
#define TROUPE_TESTS_EQUIVALENCE_CLUSTER_OF_THREADS_H_

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
#include "proto/job.pb.h"
#include "proto/plan.pb.h"
#include "proto/status.pb.h"
#include "proto/timeline.pb.h"
#include "storage/engine/engine.h"
#include "worker/collective/communicator_seat.h"
#include "worker/engine/train_loop.h"
#include "worker/rank/rank_state.h"

namespace troupe {

struct TrainOptions {
  int ranks = 1;
  // How many consecutive ranks are on each host, for the planner; 0: all.
  // What carries groups is the backend below, whatever the plan chose.
  int ranks_on_host = 0;
  std::string backend = "in_process";
  // Makes communicators, where no backend does; empty: the backend.
  std::function<absl::StatusOr<std::unique_ptr<Communicator>>(
      const CommunicatorSeat& seat)>
      create;
  std::string resume;       // a checkpoint's directory, or `latest`
  bool ran_before = false;  // as TrainLoopOptions
  // Called with the compiled and checked plan: to break it.
  std::function<void(Plan& plan)> change_plan;
  // The same with what one rank gets of it: a rank that sees other things.
  std::function<void(int rank, Plan& plan)> change_assignment;
  bool checks_data = false;  // rank 0, its checksum
  int64_t trace_every = 1;   // as TrainLoopOptions
  absl::optional<bool> reads_late;
  absl::Duration collective_timeout = absl::Seconds(20);
  // Makes each rank's device; empty: a CPU of one thread. Where its memory is
  // not the host's, groups are carried as between GPUs that share one.
  std::function<std::unique_ptr<Device>()> new_device;
  // What staged groups go through is taken as operations need it, and not as
  // much as the plan says from the start.
  bool staging_grows = false;
  UnitsBuilder build_units = nullptr;  // as RankState::Create
  // Makes each rank's disk; empty: a thread pool's.
  std::function<std::unique_ptr<IoEngine>(int rank)> new_io;
  // Of the nvme tiers of all ranks; empty: one of the run's own.
  std::string nvme;
  // Makes what a thread of the rank moves to and from its nvme tier with;
  // empty: as a worker does.
  std::function<std::unique_ptr<IoEngine>(int rank)> new_nvme_io;
  // Called after each step of each rank, on its thread; may abort loops.
  std::function<void(int rank, const StepRecord& record,
                     const std::vector<TrainLoop*>& loops)>
      on_step;
  // Called when a rank has written its shard, on the thread that did; an error
  // ends the rank.
  std::function<absl::Status(int rank, const WrittenShard& shard,
                             const std::vector<TrainLoop*>& loops)>
      on_shard;
  // Called when a rank could not write its part of a checkpoint, or rank 0 not
  // commit it, on the thread that tried.
  std::function<void(int rank, int64_t step, const std::string& error)>
      on_unwritten;
  // Until what could not be written is tried again; none in most tests.
  SavePauses save_pauses = {.first = absl::Milliseconds(1),
                            .max = absl::Milliseconds(1)};
  // Called when a rank begins to wait for the commit of another, on the thread
  // that does.
  std::function<void(int rank, int64_t step,
                     const std::vector<TrainLoop*>& loops)>
      on_await;
  // Called with what each rank keeps when it has ended, on its thread, and the
  // plan that it had.
  std::function<void(int rank, const KeptMemory& kept, const Plan& plan)>
      on_ended;
};

// By rank, all of it.
struct TrainingRun {
  Plan plan;
  std::vector<absl::Status> statuses;
  std::vector<std::vector<StepRecord>> steps;
  // Of each step Plan.sums, as the scheduler is told.
  std::vector<std::vector<std::vector<double>>> sums;
  std::vector<std::vector<RankTimeline>> timelines;
  // What the rank's communicators have sent since they joined, when it reported
  // a step: what of that is the step's is known where steps do not overlap.
  std::vector<std::vector<uint64_t>> sent_bytes;
  std::vector<CheckpointRecord> checkpoints;  // in the order of their commits
  std::vector<std::string> warnings;          // of rank 0
  std::vector<int64_t> staged_bytes;          // by rank, the most at once
  size_t bytes_left = 0;                      // in the arenas, after the run
  std::vector<std::string> files_left;        // in its own nvme tier, after it

  // The first error of any rank.
  absl::Status status() const;
};

// For as many workers as ranks, all alike; on_host of them on each host, 0:
// all.
absl::StatusOr<Plan> CompileForThreads(const JobSpec& job, int ranks,
                                       int on_host = 0);

// CHECKs that the job compiles.
TrainingRun Train(const JobSpec& job, const TrainOptions& options);

}  // namespace troupe

#endif  // TROUPE_TESTS_EQUIVALENCE_CLUSTER_OF_THREADS_H_
