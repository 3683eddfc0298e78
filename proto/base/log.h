// One line an event, to stderr and, where asked, to a file:
//
//   2026-03-01 12:00:00.123 I worker-2  joined job 7 as rank 1
//
// The message is built by the caller (absl::StrCat) and stays on its line, cut
// where it is too long (one_line.h); spdlog stays behind log.cc.
#ifndef TROUPE_PROTO_BASE_LOG_H_
#define TROUPE_PROTO_BASE_LOG_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace troupe {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

struct LogOptions {
  std::string name;                  // who speaks, for example "worker-2"
  LogLevel level = LogLevel::kInfo;  // the least that is written
  std::string file;                  // also append here; empty: stderr only
};

// Call once, first thing in main. Without it, lines go to stderr, unnamed.
absl::Status StartLog(const LogOptions& options);

// Thread-safe.
void Log(LogLevel level, absl::string_view message);

inline void LogDebug(absl::string_view m) { Log(LogLevel::kDebug, m); }
inline void LogInfo(absl::string_view m) { Log(LogLevel::kInfo, m); }
inline void LogWarning(absl::string_view m) { Log(LogLevel::kWarning, m); }
inline void LogError(absl::string_view m) { Log(LogLevel::kError, m); }

}  // namespace troupe

#endif  // TROUPE_PROTO_BASE_LOG_H_
