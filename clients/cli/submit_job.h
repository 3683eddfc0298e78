// Submits the job of a file, for the commands that do.
#ifndef TROUPE_CLIENTS_CLI_SUBMIT_JOB_H_
#define TROUPE_CLIENTS_CLI_SUBMIT_JOB_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "clients/cli/command.h"
#include "clients/cli/interrupt.h"
#include "clients/cpp/client.h"
#include "clients/job_file/job_file.h"

namespace troupe {

// The job's id, once the scheduler has accepted it, which `console` then says.
// After an interrupt it says how to find out whether the job was accepted:
// `cluster_words` follow `troupe jobs` there. Errors name the place in the file.
absl::StatusOr<int64_t> SubmitJob(const JobFile& job, Client& client,
                                  Interrupt& interrupt,
                                  const std::string& cluster_words,
                                  const Console& console);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_SUBMIT_JOB_H_
