// The real `troupe`, as a user runs it: a process with arguments, whose output
// is read while it runs.
#ifndef TROUPE_TESTS_CLUSTER_TROUPE_PROGRAM_H_
#define TROUPE_TESTS_CLUSTER_TROUPE_PROGRAM_H_

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace troupe {

// Where Bazel put the programs, from the test's working directory.
inline constexpr char kTroupe[] = "clients/cli/troupe";
inline constexpr char kScheduler[] = "scheduler/troupe-scheduler";
inline constexpr char kWorker[] = "worker/troupe-worker";

struct Outcome {
  int code = -1;  // the exit code; 128 + the signal that ended it
  std::string out;
  std::string err;
};

// What a program that is waited for has: less than the time of a whole test, so
// that the test says what did not end.
inline constexpr absl::Duration kPatience = absl::Seconds(240);

// Runs a program to its end.
Outcome RunProgram(const std::vector<std::string>& command,
                   absl::Duration patience = kPatience);

// A program under way; killed where it still runs at the end of its life. One
// that lets WaitForLine or Wait wait for longer than `patience` fails the test
// and is killed.
class TroupeProgram {
 public:
  explicit TroupeProgram(const std::vector<std::string>& command,
                         absl::Duration patience = kPatience);
  ~TroupeProgram();
  TroupeProgram(const TroupeProgram&) = delete;
  TroupeProgram& operator=(const TroupeProgram&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int signal) const;
  // Reads stdout until a line holds `text`, and returns that line; empty where
  // the output ends before.
  std::string WaitForLine(const std::string& text);
  // Reads to the end. Call once.
  Outcome Wait();

 private:
  // False at the end of the output, and at the end of patience.
  bool ReadMore(absl::Time deadline);

  const std::string command_;
  const absl::Duration patience_;
  pid_t pid_ = -1;
  int out_fd_ = -1;
  std::string err_file_;
  std::string out_;      // all that was read
  size_t searched_ = 0;  // of it, by WaitForLine
};

}  // namespace troupe

#endif  // TROUPE_TESTS_CLUSTER_TROUPE_PROGRAM_H_
