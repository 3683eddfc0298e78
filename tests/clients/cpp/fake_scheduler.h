// A scheduler for tests of clients: a real gRPC server on a port of the
// kernel's, which answers from a script and remembers what it was asked.
#ifndef TROUPE_TESTS_CLIENTS_CPP_FAKE_SCHEDULER_H_
#define TROUPE_TESTS_CLIENTS_CPP_FAKE_SCHEDULER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/scheduler.pb.h"

namespace troupe {

// The script is set before the first call; a call for a job that is not in it
// is NOT_FOUND.
class FakeJobScheduler {
 public:
  FakeJobScheduler();
  ~FakeJobScheduler();

  std::string address() const;

  // The script.
  absl::Status refusal;                 // of SubmitJob and PlanJob, if not OK
  std::vector<JobDescription> jobs;     // found by status().id()
  std::vector<WatchJobResponse> watch;  // sent in order to every watcher
  bool watch_hangs = false;             // then the stream stays open
  bool watch_breaks = false;            // then the stream breaks
  bool submit_hangs = false;            // no answer, as while a plan is made
  // Asked by ListWorkers; may be called on any thread.
  std::function<std::vector<WorkerStatus>()> workers;
  Topology topology;  // the same
  GetTimelineResponse timeline;
  std::vector<std::string> text;  // of Generate

  // What was asked.
  struct Asked {
    std::vector<JobSpec> submitted;
    std::vector<std::string> fields;  // of the last one
    std::string version;              // kBuildVersionKey of the last one
    std::vector<WatchJobRequest> watched;
    std::vector<GenerateRequest> generated;
    std::vector<int64_t> cancelled;
    std::vector<int64_t> cancelled_texts;
    std::vector<CordonWorkerRequest> cordons;
    std::vector<int64_t> traced;  // steps
  };
  Asked asked() const;
  // Returns once a watcher of a hanging stream has gone.
  void WaitForGoneWatcher();
  // Returns once the client that waits for a submission that hangs has gone.
  void WaitForGoneSubmitter();

 private:
  class Service;  // the gRPC side
  std::unique_ptr<Service> service_;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_CLIENTS_CPP_FAKE_SCHEDULER_H_
