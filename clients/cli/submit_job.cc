#include "clients/cli/submit_job.h"

#include <ostream>

#include "proto/plan/recovery_notes.h"

namespace troupe {

absl::StatusOr<int64_t> SubmitJob(const JobFile& job, Client& client,
                                  Interrupt& interrupt,
                                  const std::string& cluster_words,
                                  const Console& console) {
  const absl::StatusOr<SubmitJobResponse> accepted =
      client.Submit(job.spec, [&] { return !interrupt.Arrived(); });
  if (absl::IsCancelled(accepted.status())) {
    console.err << "troupe: left before the scheduler had answered; whether "
                   "it took the job says: troupe jobs"
                << cluster_words << "\n";
  }
  if (!accepted.ok()) return job.Locate(accepted.status());
  console.out << "job " << accepted->id() << " (" << job.spec.name()
              << ") accepted" << std::endl;
  const std::string lacks = WhatRecoveryLacks(job.spec);
  if (!lacks.empty()) console.err << "troupe: " << lacks << "\n";
  return accepted->id();
}

}  // namespace troupe
