// Texts that workers are writing: each request holds one idle worker until its
// last piece, and the pieces go to the client that asked. Where the client goes
// away, or somebody cancels the text, the worker is told to stop; it is free
// when it says that it has.
#ifndef TROUPE_SCHEDULER_CLUSTER_GENERATIONS_H_
#define TROUPE_SCHEDULER_CLUSTER_GENERATIONS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/scheduler.pb.h"
#include "proto/worker.pb.h"
#include "scheduler/cluster/action.h"
#include "scheduler/cluster/limits.h"
#include "scheduler/cluster/run_control.h"
#include "scheduler/cluster/worker_table.h"

namespace troupe {

class Generations {
 public:
  // Borrows the table.
  Generations(const Limits& limits, WorkerTable& workers)
      : limits_(limits), workers_(workers) {}

  // The number under which the pieces will come. `checkpoint` is a directory.
  // UNAVAILABLE: no idle worker. INVALID_ARGUMENT: a number out of range.
  absl::StatusOr<int64_t> Start(const GenerateRequest& request,
                                const std::string& checkpoint, absl::Time now,
                                Actions& actions);

  // A piece; the worker is idle again after the last.
  void HandlePiece(WorkerId from, const GeneratedText& piece, absl::Time now,
                   Actions& actions);

  // The client is gone: the text is stopped, what still comes is dropped.
  void Abandon(int64_t request, absl::Time now, Actions& actions);

  // Ends it for its client (ABORTED) and its worker, whose name is returned.
  // NOT_FOUND: nobody writes it.
  absl::StatusOr<std::string> Cancel(int64_t request, absl::Time now,
                                     Actions& actions);

  // REQUIRES: the worker generates.
  void WorkerGone(const Worker& worker, const std::string& reason,
                  Actions& actions);

  // Time in which no piece could be heard.
  void Forgive(absl::Duration time, absl::Time now);

  // Workers from which nothing has come for too long, or that do not stop.
  std::vector<StuckWorker> Tick(absl::Time now) const;

 private:
  struct Text {
    WorkerId worker;
    absl::Time heard;
    // When its worker was told to stop; from then on nobody waits for it.
    absl::Time stopped = absl::InfiniteFuture();
  };
  using Texts = std::map<int64_t, Text>;

  static bool IsStopped(const Text& text) {
    return text.stopped != absl::InfiniteFuture();
  }
  void Stop(Texts::iterator text, const std::string& reason, absl::Time now,
            Actions& actions);

  const Limits limits_;
  WorkerTable& workers_;
  int64_t next_request_ = 1;
  Texts texts_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_GENERATIONS_H_
