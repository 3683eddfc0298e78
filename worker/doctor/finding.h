// What a check of this machine found, and how findings are told to people and
// to programs.
#ifndef TROUPE_WORKER_DOCTOR_FINDING_H_
#define TROUPE_WORKER_DOCTOR_FINDING_H_

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

enum class FindingState {
  kOk,
  kWarn,  // works, but slower than it could, or not for large jobs
  kFail,  // this part of Troupe does not work here
  kNone,  // is not here, and need not be
};

struct Finding {
  FindingState state = FindingState::kOk;
  std::string text;    // what is so, with its numbers
  std::string advice;  // what to do, where there is something
  std::string check;   // its name, from the table of checks
};

// A line: "warn   file limit        1024 open files; ...: ulimit -n 4096".
std::string FindingText(const Finding& finding);

// An array of {"check", "state", "text", "advice"}, indented, which ends with a
// newline; states are "ok", "warn", "fail" and "none".
std::string FindingsJson(const std::vector<Finding>& findings);

// "2 of 14 checks fail: io_uring, ports"; empty where none does.
std::string FailureText(const std::vector<Finding>& findings);

// Memory as people read it: "1.4 GiB", "64 KiB".
std::string MemoryText(int64_t bytes);

}  // namespace troupe

#endif  // TROUPE_WORKER_DOCTOR_FINDING_H_
