// The command line of the daemon and of `compile`, into their options.
#ifndef TROUPE_SCHEDULER_DAEMON_FLAGS_H_
#define TROUPE_SCHEDULER_DAEMON_FLAGS_H_

#include "CLI/CLI.hpp"
#include "scheduler/compile/compile.h"
#include "scheduler/daemon.h"

namespace troupe {

// Borrows the options until the command line is parsed.
void AddDaemonFlags(CLI::App& app, SchedulerDaemonOptions& options);

// The subcommand, which the app owns. Borrows as above.
const CLI::App* AddCompileCommand(CLI::App& app, CompileOptions& options);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_DAEMON_FLAGS_H_
