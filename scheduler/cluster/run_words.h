// What is said of a job that has a run: parts of its reasons and events.
#ifndef TROUPE_SCHEDULER_CLUSTER_RUN_WORDS_H_
#define TROUPE_SCHEDULER_CLUSTER_RUN_WORDS_H_

#include <string>

#include "absl/time/time.h"
#include "proto/worker.pb.h"
#include "scheduler/cluster/job_table.h"
#include "scheduler/cluster/worker_preference.h"
#include "scheduler/cluster/worker_table.h"

namespace troupe {

// All of them REQUIRE that the job has a run.

// "step 17", where the job is.
std::string Place(const Job& job);
// ", 3 run again", of the steps that it has done; or empty.
std::string RunAgain(const Job& job);
// The cause, and whether it may not go on once more. REQUIRES that it was
// stopped.
std::string WhyFailed(const Job& job);
// Whether the rank is of the job's run, as far as it says. Where an older copy
// of the store was put back, the job's number may have been given anew.
bool IsOfRun(const Job& job, const HeldRank& held);
// Why a worker that registered after a restart of the scheduler has not the
// rank of the job that it had, as far as its registration tells. `held` is what
// it has instead, if anything. A rank that has ended is held until its end is
// stored, so one that is not held is gone with its process, or a scheduler told
// it to go milliseconds before it died itself.
std::string WhyWithoutRank(const Job& job, const Worker& worker,
                           const HeldRank& held);
// Why it goes on with other workers. REQUIRES that it was stopped.
const std::string& WhyItMoves(const Run& run);
// When it is begun again where its start failed. This and the next two REQUIRE
// that it is between two attempts.
absl::Time TriesAgainAt(const Job& job);
// "; it does not take worker-3, where its start failed: ..."; or empty.
std::string WhatItAvoids(const Job& job, const FailedStarts& avoided);
// Why it gives its workers to no other job; or empty: it would. REQUIRES
// run.handed, too.
std::string WhyItKeepsItsWorkers(const Job& job);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_RUN_WORDS_H_
