// The command line of the daemon, into its options.
#ifndef TROUPE_SCHEDULER_DAEMON_FLAGS_H_
#define TROUPE_SCHEDULER_DAEMON_FLAGS_H_

#include "CLI/CLI.hpp"
#include "scheduler/daemon.h"

namespace troupe {

// Borrows the options until the command line is parsed.
void AddDaemonFlags(CLI::App& app, SchedulerDaemonOptions& options);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_DAEMON_FLAGS_H_
