#include "proto/base/log.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/one_line.h"
#include "spdlog/sinks/basic_file_sink.h"
#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace troupe {
namespace {

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

constexpr size_t kLineBytesMax = 8 << 10;
constexpr char kPattern[] = "%Y-%m-%d %H:%M:%S.%e %L %n  %v";

// Before StartLog: stderr as well, for stdout may be a filter's output.
void UseStderr() {
  auto logger = std::make_shared<spdlog::logger>(
      "", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern(kPattern);
  spdlog::set_default_logger(std::move(logger));
}

// spdlog's own default logger has no name and writes to stdout.
spdlog::logger& Logger() {
  static const bool is_ready = [] {
    if (spdlog::default_logger_raw()->name().empty()) UseStderr();
    return true;
  }();
  static_cast<void>(is_ready);
  return *spdlog::default_logger_raw();
}

}  // namespace

absl::Status StartLog(const LogOptions& options) {
  std::vector<spdlog::sink_ptr> sinks = {
      std::make_shared<spdlog::sinks::stderr_sink_mt>()};
  if (!options.file.empty()) {
    try {  // spdlog throws when it cannot open the file
      sinks.push_back(
          std::make_shared<spdlog::sinks::basic_file_sink_mt>(options.file));
    } catch (const spdlog::spdlog_ex& error) {
      return absl::FailedPreconditionError(
          absl::StrCat("log file ", options.file, ": ", error.what()));
    }
  }
  auto logger = std::make_shared<spdlog::logger>(options.name, sinks.begin(),
                                                 sinks.end());
  logger->set_pattern(kPattern);
  logger->set_level(SpdlogLevel(options.level));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
  return absl::OkStatus();
}

void Log(LogLevel level, absl::string_view message) {
  const std::string line = OneLine(message, kLineBytesMax);
  Logger().log(SpdlogLevel(level),
               spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace troupe
