// The fences of one run of a program on an asynchronous device: which place in
// which lane's queue each instruction ends at. The executor brackets each
// instruction of a device lane with them:
//
//   fences.Begin(clock);         // the run is behind what the caller enqueued
//   fences.Enter(i);             // the lane's queue waits for what i is after
//   ... the handler of i enqueues its work ...
//   fences.Leave(i);             // from now on i is issued
//   status = fences.Await(i);    // on another thread: i is done
//   fences.Join();               // what the caller enqueues is behind the run
//
// So a run may begin while the one before it is on the device: the queue of the
// caller joins them, and no thread waits.
//
// Thread rule: Enter and Leave of an instruction on its lane's thread; Leave of
// an instruction before Enter of what is after it, before its Await and before
// Join, which the caller sees to.
#ifndef TROUPE_WORKER_ENGINE_STEP_FENCES_H_
#define TROUPE_WORKER_ENGINE_STEP_FENCES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ops/device.h"
#include "ops/fence.h"
#include "proto/base/clock.h"
#include "proto/program.pb.h"

namespace troupe {

class StepFences {
 public:
  // Borrows both. `timed`: Times will be asked for.
  StepFences(Device& device, const Program& program, bool timed);

  // From here on the run's work is behind all that the calling thread has
  // enqueued. Returns what `clock` shows. Where it is timed, waits for that
  // work first, and time counts from here: the clock is read just before the
  // device is asked to mark its own, so that Times are never late by the clock,
  // only early by what lay between the two. The device's error, where it waits.
  absl::StatusOr<int64_t> Begin(const Clock& clock);

  void Enter(int instruction);
  void Leave(int instruction);
  // Sleeps until the instruction's work has run.
  absl::Status Await(int instruction);

  // What the calling thread enqueues from now on is behind all instructions
  // that have been issued.
  void Join();

  // When the device worked on it, since Begin. REQUIRES `timed`, and that its
  // Await succeeded.
  struct Nanos {
    int64_t start = 0;
    int64_t end = 0;
  };
  Nanos Times(int instruction) const;

 private:
  Device& device_;
  const Program& program_;
  const FenceUse use_;
  std::unique_ptr<Fence> origin_;
  std::vector<bool> is_first_in_lane_;          // by instruction
  std::vector<std::unique_ptr<Fence>> starts_;  // by instruction, where timed
  std::vector<std::unique_ptr<Fence>> ends_;    // by instruction
};

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_STEP_FENCES_H_
