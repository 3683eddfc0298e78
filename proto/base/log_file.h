// The file that a daemon's log goes to. When it has grown to its bound it
// becomes FILE.1, FILE.1 becomes FILE.2, and so on; the oldest goes. On SIGHUP
// it is opened anew by its name, for those who rotate it by other means
// (logrotate).
//
// Where stdout or stderr of this process is the same file, as `troupe up` has
// it, they follow to the new one: what libraries and crashing processes write
// there stays with the log.
//
// One thread writes.
#ifndef TROUPE_PROTO_BASE_LOG_FILE_H_
#define TROUPE_PROTO_BASE_LOG_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace troupe {

// The whole line, or an error that names what the system said. Waits while the
// other end of a pipe takes nothing.
absl::Status WriteLine(int file, absl::string_view line);

struct LogFileOptions {
  std::string path;
  int64_t bytes_max = 64 << 20;  // of one file
  int older_max = 4;             // FILE.1 ... FILE.4
};

class LogFile {
 public:
  // Appends to what is there. FailedPrecondition: it cannot be opened.
  static absl::StatusOr<std::unique_ptr<LogFile>> Open(
      const LogFileOptions& options);
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  absl::Status Write(absl::string_view line);

  // Whether stderr is this file, too.
  bool is_stderr() const { return is_stderr_; }

  // From now on SIGHUP opens it anew, at once. For one file of a process, the
  // last that asked; that one stays open for as long as the process lives.
  void ReopenOnHangup();

 private:
  LogFile(const LogFileOptions& options, int file);
  // Opens the path, and puts what it finds in the place of what was open.
  // Async-signal-safe. False: it cannot be opened, and nothing has changed.
  bool Reopen() const;
  // Moves the older files on only if this one moves, too; then opens a new one.
  // Where that fails, lines go on to the moved one, and the next line that
  // finds it full tries to open a new one again.
  void Rotate() const;
  // Whether the path names the file that is open.
  bool IsAtItsPath() const;

  const LogFileOptions options_;
  const int file_;  // this number is the file's, whichever is behind it
  bool is_stdout_ = false;
  bool is_stderr_ = false;
};

}  // namespace troupe

#endif  // TROUPE_PROTO_BASE_LOG_FILE_H_
