#include "proto/base/log.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "proto/base/log_file.h"
#include "proto/base/one_line.h"
#include "proto/base/status.h"
#include "proto/base/steady_time.h"
#include "spdlog/async.h"
#include "spdlog/details/null_mutex.h"
#include "spdlog/sinks/base_sink.h"
#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace troupe {
namespace {

constexpr size_t kLineBytesMax = 8 << 10;
constexpr char kPattern[] = "%Y-%m-%d %H:%M:%S.%e %L %n  %v";

spdlog::level::level_enum SpdlogLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

spdlog::string_view_t View(const std::string& text) {
  return {text.data(), text.size()};
}

thread_local bool is_writer = false;  // one of the threads below

// At the start of a thread that writes. The process's signals are for others:
// without SIGPIPE, a pipe whose reader is gone is an error of the write.
void BeginToWrite(bool takes_hangup) {
  is_writer = true;
  sigset_t signals;
  sigfillset(&signals);
  sigdelset(&signals, SIGABRT);
  if (takes_hangup) sigdelset(&signals, SIGHUP);
  pthread_sigmask(SIG_SETMASK, &signals, nullptr);
}

using WriteFunction = std::function<absl::Status(absl::string_view)>;

// Writes the lines of one queue, on the queue's thread.
class LineWriter final
    : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  LineWriter(spdlog::details::thread_pool& queue, WriteFunction write)
      : queue_(queue), write_(std::move(write)) {
    set_pattern(kPattern);
  }

  // Waits until this number of lines have been written or dropped.
  void Await(int64_t lines, absl::Duration at_most)
      ABSL_LOCKS_EXCLUDED(lines_mutex_) {
    absl::MutexLock lock(&lines_mutex_);
    const auto done = [&]() ABSL_SHARED_LOCKS_REQUIRED(lines_mutex_) {
      return written_ + Dropped() >= lines;
    };
    progress_.Await(lines_mutex_, at_most, done);
  }

 private:
  int64_t Dropped() const {
    return static_cast<int64_t>(queue_.overrun_counter());
  }

  absl::Status Put(const spdlog::details::log_msg& message) {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    return write_(absl::string_view(line.data(), line.size()));
  }

  void sink_it_(const spdlog::details::log_msg& message) override {
    const int64_t missing = Dropped() + failed_;
    if (missing > said_) {
      const std::string note = absl::StrCat(
          missing - said_,
          " lines of the log are missing before the next one: ",
          error_.empty() ? "what reads the log was too slow" : error_);
      if (Put({message.logger_name, spdlog::level::warn, View(note)}).ok()) {
        said_ = missing;
        error_.clear();
      }
    }
    const absl::Status put = Put(message);
    if (!put.ok()) {
      ++failed_;
      error_ = std::string(put.message());
    }
    absl::MutexLock lock(&lines_mutex_);
    ++written_;
    progress_.Say();
  }
  void flush_() override {}  // nothing is kept here

  spdlog::details::thread_pool& queue_;
  const WriteFunction write_;
  int64_t failed_ = 0;  // lines that were not dropped, nor written
  int64_t said_ = 0;    // of those that are missing
  std::string error_;   // of the last that failed
  absl::Mutex lines_mutex_;
  SteadyCondition progress_;
  int64_t written_ ABSL_GUARDED_BY(lines_mutex_) = 0;
};

// A bounded queue of lines and the thread that writes them. Never deleted: a
// thread that hangs in a write cannot be joined.
class LineQueue {
 public:
  LineQueue(const LogOptions& options, WriteFunction write, bool takes_hangup)
      : pool_(std::make_shared<spdlog::details::thread_pool>(
            options.queued_lines_max, 1,
            [takes_hangup] { BeginToWrite(takes_hangup); })),
        writer_(std::make_shared<LineWriter>(*pool_, std::move(write))),
        logger_(std::make_shared<spdlog::async_logger>(
            options.name, writer_, pool_,
            spdlog::async_overflow_policy::overrun_oldest)) {
    logger_->set_level(spdlog::level::trace);
  }

  void Add(LogLevel level, const std::string& line) {
    ++added_;
    logger_->log(SpdlogLevel(level), View(line));
  }

  void Flush(absl::Duration at_most) const { writer_->Await(added_, at_most); }

 private:
  const std::shared_ptr<spdlog::details::thread_pool> pool_;
  const std::shared_ptr<LineWriter> writer_;
  const std::shared_ptr<spdlog::async_logger> logger_;
  std::atomic<int64_t> added_ = 0;
};

struct StartedLog {
  LogLevel level = LogLevel::kInfo;
  std::vector<std::unique_ptr<LineQueue>> queues;
  std::unique_ptr<LogFile> file;
  const StartedLog* before = nullptr;  // its threads live on
};

std::atomic<const StartedLog*> started = nullptr;

// Before StartLog: stderr, for stdout may be a filter's output.
spdlog::logger& EarlyLogger() {
  static spdlog::logger& logger = [&]() -> spdlog::logger& {
    auto* early = new spdlog::logger(
        "", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    early->set_pattern(kPattern);
    return *early;
  }();
  return logger;
}

// abort() of any caller: a failed CHECK, an assertion of a library. The signal
// comes to the thread that calls it; then the process ends as it would.
void FlushBeforeAbort(int) {
  if (!is_writer) FlushLog();
}

// The library's own handler would write to stderr, and wait there for ever.
[[noreturn]] void EndWithLog() {
  std::string what = "std::terminate was called";
  if (const std::exception_ptr thrown = std::current_exception()) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& error) {
      what = absl::StrCat("nobody caught an exception: ", error.what());
    } catch (...) {
      what = "nobody caught an exception";
    }
  }
  LogError(what);
  std::abort();
}

void WriteWhatIsQueuedAtTheEnd() {
  static const bool once = [] {
    std::atexit([] { FlushLog(); });
    std::set_terminate(&EndWithLog);
    struct sigaction action = {};
    action.sa_handler = &FlushBeforeAbort;
    action.sa_flags = SA_RESETHAND;
    sigaction(SIGABRT, &action, nullptr);
    return true;
  }();
  static_cast<void>(once);
}

void LeaveHangupToTheLog() {
  sigset_t hangup;
  sigemptyset(&hangup);
  sigaddset(&hangup, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &hangup, nullptr);
}

}  // namespace

absl::Status StartLog(const LogOptions& options) {
  auto log = std::make_unique<StartedLog>();
  log->level = options.level;
  if (!options.file.empty()) {
    ASSIGN_OR_RETURN(log->file,
                     LogFile::Open({.path = options.file,
                                    .bytes_max = options.file_bytes_max,
                                    .older_max = options.older_files_max}));
    LeaveHangupToTheLog();
    log->file->ReopenOnHangup();
    log->queues.push_back(std::make_unique<LineQueue>(
        options,
        [file = log->file.get()](absl::string_view line) {
          return file->Write(line);
        },
        /*takes_hangup=*/true));
  }
  if (log->file == nullptr || !log->file->is_stderr()) {
    log->queues.push_back(std::make_unique<LineQueue>(
        options,
        [](absl::string_view line) { return WriteLine(STDERR_FILENO, line); },
        /*takes_hangup=*/false));
  }
  WriteWhatIsQueuedAtTheEnd();
  log->before = started;
  started = log.release();
  return absl::OkStatus();
}

void Log(LogLevel level, absl::string_view message) {
  const std::string line = OneLine(message, kLineBytesMax);
  const StartedLog* const log = started;
  if (log == nullptr) {
    EarlyLogger().log(SpdlogLevel(level), View(line));
    return;
  }
  if (level < log->level) return;
  for (const auto& queue : log->queues) queue->Add(level, line);
}

void FlushLog(absl::Duration at_most) {
  const StartedLog* const log = started;
  if (log == nullptr) return;
  const absl::Time until = SteadyNow() + at_most;
  for (const auto& queue : log->queues) queue->Flush(until - SteadyNow());
}

}  // namespace troupe
