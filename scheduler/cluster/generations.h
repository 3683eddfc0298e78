// Texts that workers are writing. A request begins with one idle worker, which
// says by which job the checkpoint was made; then workers write that have room
// for the model, one or several, each with a part (choose_writers.h). All are
// busy with it until they say that they have ended. The first one's pieces go
// to the client that asked.
//
// Where the client goes away, somebody cancels the text, or one of its workers
// fails or is lost, the others are told to stop; each is free when it says that
// it has.
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
#include "scheduler/cluster/job_compiler.h"
#include "scheduler/cluster/limits.h"
#include "scheduler/cluster/rendezvous.h"
#include "scheduler/cluster/stuck_worker.h"
#include "scheduler/cluster/worker_table.h"

namespace troupe {

class Generations {
 public:
  // Borrows compiler and table.
  Generations(const Limits& limits, const JobCompiler& compiler,
              WorkerTable& workers)
      : limits_(limits), compiler_(compiler), workers_(workers) {}

  // The number under which the pieces will come. `checkpoint` is a directory.
  // UNAVAILABLE: no idle worker. INVALID_ARGUMENT: a number out of range.
  absl::StatusOr<int64_t> Start(const GenerateRequest& request,
                                const std::string& checkpoint, absl::Time now,
                                Actions& actions);

  // CheckpointJob, GeneratedText, StoreSet or StoreGet; others are not of a
  // text.
  void HandleMessage(WorkerId from, const WorkerMessage& message,
                     absl::Time now, Actions& actions);

  // The client is gone: the text is stopped, what still comes is dropped.
  void Abandon(int64_t request, absl::Time now, Actions& actions);

  // Ends it for its client (ABORTED) and its workers, whose names are returned.
  // NOT_FOUND: nobody writes it.
  absl::StatusOr<std::string> Cancel(int64_t request, absl::Time now,
                                     Actions& actions);

  // REQUIRES: the worker generates.
  void WorkerGone(const Worker& worker, const std::string& reason,
                  absl::Time now, Actions& actions);

  // Time in which no piece could be heard.
  void Forgive(absl::Duration time, absl::Time now);

  // Tells clients of failures for which no better reason has come. Workers from
  // which nothing has come for too long, or that do not stop.
  std::vector<StuckWorker> Tick(absl::Time now, Actions& actions);

 private:
  struct Member {
    WorkerId worker;
    std::string name;
    absl::Time heard;
    bool loaded = false;  // has its weights; from then on peers watch it
    bool gone = false;    // has ended, or was lost
  };
  struct Text {
    explicit Text(const Limits& limits) : rendezvous(limits) {}

    // Member of this rank, or -1.
    int RankOf(WorkerId worker) const;
    std::string Names() const;
    bool IsStopped() const { return stopped != absl::InfiniteFuture(); }

    GenerateRequest request;
    std::string checkpoint;
    std::vector<Member> members;  // by rank; first the one that reads
    bool writes = false;          // the members write
    std::string made;             // CheckpointJob.made
    Rendezvous rendezvous;
    bool answered = false;  // its client has heard the end, or is gone
    // An error that blames another, which may have something to say itself.
    absl::Status failure;
    absl::Time failed = absl::InfiniteFuture();
    // When its workers were told to stop; from then on nobody waits for it.
    absl::Time stopped = absl::InfiniteFuture();
  };
  using Texts = std::map<int64_t, Text>;

  Texts::iterator Find(int64_t request, WorkerId from);
  void SeatMembers(const std::vector<WorkerId>& ids, absl::Time now,
                   Texts::iterator it);
  void HandOut(Texts::iterator it, const TextPlan& plan, Actions& actions);

  void HandleJob(WorkerId from, const CheckpointJob& job, absl::Time now,
                 Actions& actions);
  void HandlePiece(WorkerId from, const GeneratedText& piece, absl::Time now,
                   Actions& actions);
  void Relay(Texts::iterator it, const GeneratedText& piece, Actions& actions);
  void HandleError(Texts::iterator it, int rank, const GeneratedText& piece,
                   absl::Time now, Actions& actions);
  void Set(WorkerId from, const StoreSet& set, absl::Time now,
           Actions& actions);
  void Get(WorkerId from, const StoreGet& get, absl::Time now,
           Actions& actions);

  // The client hears why there is no more, once.
  void Answer(Texts::iterator it, const absl::Status& status, Actions& actions);
  void Stop(Texts::iterator it, const std::string& reason, absl::Time now,
            Actions& actions);
  // The member has ended; the last one ends the text.
  void LetGo(Texts::iterator it, int rank, Actions& actions);

  const Limits limits_;
  const JobCompiler& compiler_;
  WorkerTable& workers_;
  int64_t next_request_ = 1;
  Texts texts_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_GENERATIONS_H_
