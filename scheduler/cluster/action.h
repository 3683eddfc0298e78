// What the cluster wants done: it decides, others do. Each event returns
// actions, to be carried out in their order; none of them can fail in a way
// that the cluster must know, except that a worker's connection ends, which is
// an event of its own.
#ifndef TROUPE_SCHEDULER_CLUSTER_ACTION_H_
#define TROUPE_SCHEDULER_CLUSTER_ACTION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "proto/base/ids.h"
#include "proto/cluster.pb.h"
#include "proto/job.pb.h"
#include "proto/plan.pb.h"
#include "proto/scheduler.pb.h"
#include "proto/status.pb.h"
#include "proto/worker.pb.h"
#include "scheduler/cluster/compilation.h"
#include "scheduler/cluster/job_compiler.h"
#include "scheduler/cluster/moved_plan.h"
#include "scheduler/cluster/worker_records.h"

namespace troupe {

// The durable part of a job; its steps and events are rows of their own.
struct JobRow {
  JobSpec spec;
  JobStatus status;
  std::shared_ptr<const Plan> plan;  // without programs; null before the start
  int32_t attempt = 0;
  bool cancelled = false;  // the user asked for its end
};

// What the assignments of an attempt have in common.
struct HandOut {
  Assignment assignment;                    // without ref and plan
  std::shared_ptr<const Plan> plan;         // with the programs of every rank
  std::vector<bool> loads_data;             // CompiledJob's
  std::vector<WorkerDescription> machines;  // by rank
  // The same plan, connected for these machines. Null: `plan` is.
  std::shared_ptr<const MovedPlan> moved = nullptr;

  // What the ranks get. May take as long as the plan is large.
  const Plan& PlanToSend(const JobCompiler& compiler) const {
    return moved == nullptr ? *plan : moved->For(compiler);
  }
};

struct SendToWorker {
  WorkerId worker;
  SchedulerMessage message;
  // Of an assignment, or a request to save copies: what it is completed with
  // when it is sent (hand_out.h).
  std::shared_ptr<const HandOut> hand_out = nullptr;
};

// Sent when all rows that came before are on the disk: a worker forgets what it
// knows to be stored. Where they cannot be written, and somebody waits, that is
// told with another message; what was said may be lost with the scheduler then.
struct SendWhenStored {
  SendToWorker send;
  absl::optional<SchedulerMessage> otherwise;  // nothing: nobody waits
};

// Ends the worker's connection: it is lost, or it was refused.
struct DropWorker {
  WorkerId worker;
  std::string reason;
};

struct PersistJob {
  std::shared_ptr<const JobRow> row;
};

// What the next attempt begins with, should this scheduler not be there: in
// place of what was stored for the one before. It goes when the job is queued
// again or has ended.
struct PersistHandOut {
  JobId job;
  int32_t attempt = 0;
  std::shared_ptr<const HandOut> hand_out;
};

// What is remembered of a worker, by its name; an empty record is none.
struct PersistWorker {
  WorkerRecord record;
};

// What was measured of a host's links.
struct PersistHostLinks {
  HostTopology links;
};

struct PersistStep {
  JobId job;
  StepRecord step;
};

struct PersistEvent {
  JobId job;
  int64_t index = 0;  // 0 is the job's first event
  JobEvent event;
};

// The scheduler has forgotten the job, with its steps and events.
struct ForgetJob {
  JobId job;
};

// Of the job's steps before this one only each `every`th is kept.
struct ThinSteps {
  JobId job;
  int64_t before = 0;
  int64_t every = 1;
  bool without_sequences = false;  // and of these no sequence_losses
};

// The job's status, steps or events changed: those that watch it look again.
struct NotifyJob {
  JobId job;
};

// A piece of a text, to the client that asked for it; the last has `done`.
struct GenerateReply {
  int64_t request = 0;
  GenerateResponse response;
  bool done = false;
  absl::Status status;  // with done
};

// What workers found of the files of a job that is to be queued. OK: all is
// well, or nobody could say.
struct FilesLookedAt {
  int64_t request = 0;
  absl::Status status;
};

// A queued job's turn has come: to be compiled, and the outcome brought back
// with Cluster::Compiled.
struct CompileJob {
  JobId job;
  std::shared_ptr<const Compilation> compilation;
  std::string client;  // that submitted it; empty: not known
};

// Brought back with Cluster::Stored when all rows that came before are on the
// disk, or cannot be written: only then a worker may hear of the attempt, whose
// numbers a scheduler that crashed would give away again.
struct AwaitStored {
  JobId job;  // 0: of no job; whether the store can be written again
  int32_t attempt = 0;
  int question = 0;  // of the attempt's, which one; the same asked again
};

using Action =
    std::variant<SendToWorker, SendWhenStored, DropWorker, PersistJob,
                 PersistHandOut, PersistWorker, PersistHostLinks, PersistStep,
                 PersistEvent, ForgetJob, ThinSteps, NotifyJob, GenerateReply,
                 FilesLookedAt, CompileJob, AwaitStored>;
using Actions = std::vector<Action>;

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_ACTION_H_
