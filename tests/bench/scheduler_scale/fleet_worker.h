// One worker of a fleet: its stream, and its answers.
#ifndef TROUPE_TESTS_BENCH_SCHEDULER_SCALE_FLEET_WORKER_H_
#define TROUPE_TESTS_BENCH_SCHEDULER_SCALE_FLEET_WORKER_H_

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "proto/worker.grpc.pb.h"
#include "tests/bench/scheduler_scale/fleet.h"

namespace troupe {

// The figures of a machine that somebody might have.
WorkerDescription DescribeFleetWorker(const FleetOptions& options, int index);

class FleetWorker final
    : public grpc::ClientBidiReactor<WorkerMessage, SchedulerMessage> {
 public:
  // Registers; borrows the fleet.
  FleetWorker(Fleet& fleet, const FleetOptions& options, int index);

  void Heartbeat();
  void ReportStep(int64_t step);
  absl::Duration StoreRoundTrip();
  void Leave();

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  // What is left of an assignment once it has been read.
  struct Seat {
    RankRef ref;
    std::vector<Instruction> train;
    int64_t trace_every = 0;
    int ranks = 0;
    int gathered = 0;  // by the first rank, of what all set
    int64_t store_bytes = 0;
    bool ready = false;
    int64_t step = 0;
  };

  void Send(WorkerMessage message) ABSL_LOCKS_EXCLUDED(mutex_);
  void SendLocked(WorkerMessage message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void Take(const Assignment& start) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Set(const std::string& key, size_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Get(const std::string& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void HandOut() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Ready() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Handle(const StoreValue& value) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LetGo() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Fleet& fleet_;
  std::unique_ptr<Workers::Stub> stub_;
  grpc::ClientContext context_;
  SchedulerMessage incoming_;  // gRPC writes it while a read is under way
  WorkerMessage outgoing_;     // gRPC reads it while writing_

  absl::Mutex mutex_;
  std::deque<WorkerMessage> queue_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool leaving_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<Seat> seat_ ABSL_GUARDED_BY(mutex_);
  bool answered_ ABSL_GUARDED_BY(mutex_) = false;  // StoreRoundTrip's question
};

}  // namespace troupe

#endif  // TROUPE_TESTS_BENCH_SCHEDULER_SCALE_FLEET_WORKER_H_
