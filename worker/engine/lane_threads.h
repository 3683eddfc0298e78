// The threads of a rank's lanes, each with a mailbox: one thread for each lane,
// which runs the instructions that it is sent. On an asynchronous device the
// thread of a device lane (lanes.h) is a queue of the device, and the lane has
// a second thread, which sleeps until the device has done what the first one
// has issued.
//
//   LaneThreads threads(plan.lanes(), device, {.run = ..., .await = ...});
//   threads.Add(program);        // those that its instructions use
//   threads.AwaitPrepared();
//   threads.Send(work);          // to the lane of its instruction
//
// Thread rule: Send and SendIssued from any thread, while no lane is added;
// all else from one thread.
#ifndef TROUPE_WORKER_ENGINE_LANE_THREADS_H_
#define TROUPE_WORKER_ENGINE_LANE_THREADS_H_

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "ops/device.h"
#include "proto/plan/lanes.h"
#include "proto/program.pb.h"
#include "worker/actor/actor.h"
#include "worker/engine/program_run.h"

namespace troupe {

class LaneThreads {
 public:
  struct Handlers {
    std::function<void(const LaneWork& work)> run;    // on the lane's thread
    std::function<void(const LaneWork& work)> await;  // on its second one
  };

  // Borrows the lanes and the device, which is asynchronous, or null. Declare
  // it after all that the handlers use.
  LaneThreads(const Lanes& lanes, Device* device, Handlers handlers);
  LaneThreads(const LaneThreads&) = delete;
  LaneThreads& operator=(const LaneThreads&) = delete;

  // Whether each lane that the program uses has its threads.
  bool Has(const Program& program) const;
  // Starts those that it lacks. A thread first takes what its lane needs of the
  // device (Device::PrepareQueue). REQUIRES that no lane has work.
  void Add(const Program& program);
  // Waits until all that were added have done so.
  void AwaitPrepared() ABSL_LOCKS_EXCLUDED(mutex_);
  // Joins all threads. REQUIRES that no lane has work.
  void End();

  // A lane has at most one instruction that is ready, so a mailbox of one never
  // overflows.
  void Send(const LaneWork& work) { lanes_.at(work.lane())->Send(work); }
  void Send(const std::vector<LaneWork>& all) {
    for (const LaneWork& work : all) Send(work);
  }
  // To the second thread: the instruction is issued.
  void SendIssued(const LaneWork& work) {
    waiters_.at(work.lane())->Send(work);
  }

 private:
  using LaneActor = Actor<LaneWork>;

  bool OnDevice(int lane) const {
    return device_ != nullptr && IsDeviceLane(table_[lane]);
  }
  void AddLane(int lane);
  // First, on the lane's thread.
  void PrepareLane(int lane) ABSL_LOCKS_EXCLUDED(mutex_);

  const Lanes& table_;
  Device* const device_;
  const Handlers handlers_;
  absl::Mutex mutex_;
  int starting_ ABSL_GUARDED_BY(mutex_) = 0;  // that are not prepared
  // By lane. Those that wait for the ends of a device lane's instructions
  // outlive the lanes, which send them those.
  std::map<int, std::unique_ptr<LaneActor>> waiters_;
  std::map<int, std::unique_ptr<LaneActor>> lanes_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_LANE_THREADS_H_
