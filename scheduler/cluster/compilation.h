// Planning takes as long as a job is large, and no client and no heartbeat
// should wait for it. So the cluster only says what is to be compiled and for
// which workers, best first; other code does the work (CompileFirstFit) and
// brings the outcome back as an event. Much may have changed by then: each user
// of an outcome looks whether its workers are still there and idle.
#ifndef TROUPE_SCHEDULER_CLUSTER_COMPILATION_H_
#define TROUPE_SCHEDULER_CLUSTER_COMPILATION_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "proto/base/ids.h"
#include "proto/cluster.pb.h"
#include "proto/job.pb.h"
#include "scheduler/cluster/job_compiler.h"
#include "scheduler/cluster/worker_preference.h"
#include "scheduler/cluster/worker_table.h"

namespace troupe {

// The workers that might carry a job out: rank r on the worker ids[r].
struct Choice {
  JobSpec spec;  // the compilation's, or a narrower one
  std::vector<WorkerId> ids;
  // The same ones; many choices share them.
  std::vector<std::shared_ptr<const WorkerDescription>> workers;
  bool idle = false;  // all of them are
};

struct Compilation {
  int64_t number = 0;  // of a queued job's; 0: for a client that asks
  JobSpec spec;
  std::vector<Choice> choices;  // best first, no two with the same workers
  // The same for fewer ranks (AddNarrower): tried on idle workers before busy
  // ones are looked at, and on those when all else was refused.
  std::vector<Choice> narrower;
  bool narrows = false;  // has those, if there are any
  int64_t changes = 0;   // WorkerTable::changes() at its making
  bool explain = false;  // asked for in place of a plan
  // Of a job that goes on: the last plan that it ran, without programs.
  std::shared_ptr<const Plan> before;
  // Elastic, where a refusal of the job itself is to end it: kinds of workers
  // of which more are imagined (ImagineMore).
  std::vector<std::vector<std::shared_ptr<const WorkerDescription>>> more_like;
  // For other ranks than the job needs, or for more than it runs on: where none
  // of the choices does, that is no refusal of the job.
  bool elastic = false;
};

struct CompileOutcome {
  CompiledJob compiled;  // for the first choice that does; else without plan
  std::vector<WorkerId> workers;  // of that choice
  bool idle = false;              // they were, at the compilation's making
  // Why idle workers will not do, or busy ones where none are idle; OK if they
  // do. For the sake of the workers (IsForWorkers) where others would. Or why
  // planning was ended.
  absl::Status refusal;
  int64_t changes = 0;  // the compilation's
  // Where that was asked for, and not refused: on the best choice's workers.
  Explanation explanation;

  bool fits() const { return compiled.plan != nullptr; }
};

// The idle workers that PlaceRanks prefers, the idle ones with the most memory,
// and then the same of all that are alive; where some have GPUs, those first,
// and never both kinds unless neither is enough. None where there are too few.
// Those of which there is the least doubt are tried before others, and those
// where the job's start has failed not at all.
Compilation CompilationFor(const JobSpec& spec, int needed,
                           const WorkerTable& workers,
                           const FailedStarts& failed = {});

// The same of a job that leaves ranks open, `least` or more: all idle workers
// of one kind, and then all that are alive. The plan says how many of them it
// takes.
Compilation OpenCompilation(const JobSpec& spec, int least,
                            const WorkerTable& workers);

// For a job with `elastic`, most ranks first: on these workers, those that
// PlaceRanks prefers and then those with the most memory, each of the ways in
// turn. What has no more than `more_than` ranks is left out. A way that leaves
// ranks open is for all workers of a kind, where they are more than that.
Compilation ElasticCompilation(const std::vector<JobSpec>& ways,
                               const JobCompiler& compiler,
                               const std::vector<const Worker*>& candidates,
                               int more_than);

// What `choices` that are refused leave for a job with `elastic`: fewer of the
// workers that are idle, and of all that are alive. So a worker that is too
// small, or of another kind, harms no job that has enough others.
void AddNarrower(const JobCompiler& compiler, const WorkerTable& workers,
                 Compilation& compilation, const FailedStarts& failed = {});

// For an elastic compilation of a job that has run: where all choices are
// refused, as many ranks as there are no workers for are tried on more workers
// like the candidates, all that the job needs first. Where the planner has
// something against the job itself with these, too, no workers that come would
// change that.
void ImagineMore(const JobSpec& spec,
                 const std::vector<const Worker*>& candidates,
                 Compilation& compilation);

// Tries the choices in turn: the next where one has too little memory. Of those
// of an elastic compilation, and of the narrower ones, the first few that fit
// on as many workers are compared, and the quickest, as predicted, is taken. Or
// explains, for the first.
CompileOutcome CompileFirstFit(const JobCompiler& compiler,
                               const Compilation& compilation,
                               const MayGoOn& may_go_on = {});

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_COMPILATION_H_
