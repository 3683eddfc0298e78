// Following a job until it ends or the user leaves: what `submit --watch`,
// `watch` and `logs --follow` do.
#ifndef TROUPE_CLIENTS_CLI_WATCH_JOB_H_
#define TROUPE_CLIENTS_CLI_WATCH_JOB_H_

#include <string>

#include "absl/status/status.h"
#include "clients/cli/command.h"
#include "clients/cli/interrupt.h"
#include "clients/cpp/client.h"

namespace troupe {

struct WatchJobOptions {
  WatchOptions from;
  bool steps = true;          // false: events only, and any end is fine
  std::string cluster_words;  // ClusterFlags::Words
};

// OK where the job succeeded; Cancelled, after a hint how to come back, where
// the user left; else what became of the job.
absl::Status WatchJob(Client& client, const WatchJobOptions& options,
                      Interrupt& interrupt, Console& console);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_WATCH_JOB_H_
