#include "proto/plan/recovery_notes.h"

#include "proto/plan/ranks_needed.h"

namespace troupe {

std::string WhatRecoveryLacks(const JobSpec& job) {
  const bool keeps_copies =
      job.has_recovery() &&
      (!job.recovery().has_copies() || job.recovery().copies() > 0);
  const bool is_alone = !LeavesParallelismOpen(job) && RanksNeeded(job) == 1;
  if (!keeps_copies || is_alone || job.checkpoint().has_directory()) return "";
  return "recovery: without checkpoint.directory the copies of the job's state "
         "can be saved nowhere. Where it waits for a worker in a lost one's "
         "place it keeps its other workers, and two such jobs may wait for "
         "each other's until more workers come; with checkpoint.directory the "
         "younger one is saved and gives its workers away";
}

}  // namespace troupe
