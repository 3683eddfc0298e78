// Starting and ending other programs: daemons that outlive us, and filters that
// we wait for.
#ifndef TROUPE_CLIENTS_CLI_LOCAL_PROCESS_H_
#define TROUPE_CLIENTS_CLI_LOCAL_PROCESS_H_

#include <signal.h>
#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/base/process_state.h"

namespace troupe {

struct DaemonOptions {
  std::vector<std::string> command;  // its file, then its arguments
  std::string log_file;              // gets stdout and stderr
  bool append = false;  // to what the log has, which else is taken away
};

// Starts a program in a session of its own (so Ctrl-C at our terminal does not
// reach it), with no stdin. The caller may wait for it as its child while it
// lives; afterwards it is init's.
absl::StatusOr<ProcessId> StartDaemon(const DaemonOptions& options);

struct EndOptions {
  absl::Duration grace = absl::ZeroDuration();  // before what is left is killed
  absl::Duration after = absl::Seconds(10);     // for what is killed to be gone
  absl::Duration say_every = absl::Seconds(5);  // but the first time after one
  absl::Duration ask_every = absl::Seconds(1);  // busy
  // Whether any of those that are left has something to bring to its end: then
  // the grace begins anew. May be null.
  std::function<bool(const std::vector<ProcessId>& left)> busy = nullptr;
  // Asked often; yes ends the grace. May be null.
  std::function<bool()> hurried = nullptr;
  // Hears which are waited for, and how long they still have: no end of it
  // where they are busy. May be null.
  std::function<void(const std::vector<ProcessId>& left, absl::Duration grace)>
      waits = nullptr;
  std::function<int(pid_t, int)> signal = ::kill;  // for tests
};
struct EndOutcome {
  std::vector<ProcessId> killed;
  // That run still: they are not ours to end, or the kernel does not let go.
  struct Left {
    ProcessId process;
    std::string why;
    bool refused = false;  // we may not signal it; else it was killed in vain
  };
  std::vector<Left> left;
};
// Asks each process to end (SIGTERM), and kills what is left after the grace.
// Ones that do not run are passed over.
EndOutcome EndProcesses(const std::vector<ProcessId>& processes,
                        const EndOptions& options);

// Collects a child that has ended; does nothing while it runs.
void Reap(const ProcessId& process);

struct FilterOptions {
  std::vector<std::string> command;
  std::string input;
  bool shows_errors = false;  // its stderr is ours, and not in the outcome
  // Asked many times a second; false ends the program: Cancelled.
  std::function<bool()> keep_going = nullptr;
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
