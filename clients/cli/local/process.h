// Starting and ending other programs: daemons that outlive us, and filters that
// we wait for.
#ifndef TROUPE_CLIENTS_CLI_LOCAL_PROCESS_H_
#define TROUPE_CLIENTS_CLI_LOCAL_PROCESS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "clients/cpp/process_state.h"

namespace troupe {

struct DaemonOptions {
  std::vector<std::string> command;  // its file, then its arguments
  std::string log_file;              // gets stdout and stderr, from empty
};

// Starts a program in a session of its own (so Ctrl-C at our terminal does not
// reach it), with no stdin. The caller may wait for it as its child while it
// lives; afterwards it is init's.
absl::StatusOr<ProcessId> StartDaemon(const DaemonOptions& options);

// Asks each process to end (SIGTERM), and kills what is left after `grace`.
// Returns the ids of those that had to be killed. Ones that do not run are
// passed over.
std::vector<ProcessId> EndProcesses(const std::vector<ProcessId>& processes,
                                    absl::Duration grace);

// Collects a child that has ended; does nothing while it runs.
void Reap(const ProcessId& process);

struct FilterOptions {
  std::vector<std::string> command;
  std::string input;
};

struct FilterOutcome {
  int exit_code = 0;  // -N where signal N ended it
  std::string out;
  std::string err;
};

// Runs a program to its end with `input` on stdin, whatever its end is. An
// error where it cannot be started.
absl::StatusOr<FilterOutcome> RunToEnd(const FilterOptions& options);

// The same, and returns its stdout. Aborted, with the last lines of its stderr,
// where it does not exit with 0.
absl::StatusOr<std::string> RunFilter(const FilterOptions& options);

// The last `lines` lines of a file, indented; empty where it cannot be read.
std::string LogTail(const std::string& file, int lines);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_LOCAL_PROCESS_H_
