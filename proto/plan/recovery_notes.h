// What a job's user should know of its recovery before the job runs.
#ifndef TROUPE_PROTO_PLAN_RECOVERY_NOTES_H_
#define TROUPE_PROTO_PLAN_RECOVERY_NOTES_H_

#include <string>

#include "proto/job.pb.h"

namespace troupe {

// Of a job that recovers from copies, and has no directory in which they could
// be saved: it cannot give its workers to another job without losing what it
// has trained, and so waits with them for a worker in a lost one's place
// (scheduler/cluster/policy/who_gives_way.h). Empty: nothing is to be said.
std::string WhatRecoveryLacks(const JobSpec& job);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_RECOVERY_NOTES_H_
