// One line an event, to stderr and, where asked, to a file:
//
//   2026-03-01 12:00:00.123 I worker-2  joined job 7 as rank 1
//
// The message is built by the caller (absl::StrCat) and stays on its line, cut
// where it is too long (one_line.h); spdlog stays behind log.cc.
//
// Once the log is started nobody waits for it: a line goes into a queue, and a
// thread of its own writes it, one for stderr and one for the file, so that a
// pipe that nobody reads or a disk that hangs delays neither a caller nor the
// other one. When the queue is full, the oldest lines are dropped; when lines
// can be written again, one says how many were. Lines that are queued at the
// end of the process, or when a CHECK fails, are written first, for which there
// is a second.
#ifndef TROUPE_PROTO_BASE_LOG_H_
#define TROUPE_PROTO_BASE_LOG_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace troupe {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

struct LogOptions {
  std::string name;                  // of the process, for example "worker-2"
  LogLevel level = LogLevel::kInfo;  // the least that is written
  // Also append here, and from now on SIGHUP opens it anew (log_file.h); empty:
  // stderr only.
  std::string file;
  int64_t file_bytes_max = 64 << 20;  // then it is FILE.1, and so on
  int older_files_max = 4;
  size_t queued_lines_max = 4096;  // at each of the two
};

// Call once, first thing in main: threads that are there before may get the
// SIGHUP. Without it lines go to stderr, unnamed, and a caller that logs waits.
// FailedPrecondition: the file cannot be opened.
absl::Status StartLog(const LogOptions& options);

// Thread-safe.
void Log(LogLevel level, absl::string_view message);

inline void LogDebug(absl::string_view m) { Log(LogLevel::kDebug, m); }
inline void LogInfo(absl::string_view m) { Log(LogLevel::kInfo, m); }
inline void LogWarning(absl::string_view m) { Log(LogLevel::kWarning, m); }
inline void LogError(absl::string_view m) { Log(LogLevel::kError, m); }

// Waits until what was logged before has been written, or has been dropped, but
// no longer than `at_most`. Thread-safe.
void FlushLog(absl::Duration at_most = absl::Seconds(1));

}  // namespace troupe

#endif  // TROUPE_PROTO_BASE_LOG_H_
