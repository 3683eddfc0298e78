#include "worker/calibrate/calibration_file.h"

#include <google/protobuf/text_format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "ops/cpu/device.h"
#include "proto/base/cores.h"
#include "proto/base/file_text.h"
#include "proto/base/log.h"
#include "proto/base/status.h"
#include "storage/disk/directory.h"
#include "storage/disk/file_lock.h"
#include "storage/disk/new_file.h"
#include "worker/calibrate/machine_times.h"

namespace troupe {
namespace {

// Grows when what is measured, or how fast our kernels are, changes much.
constexpr int kCalibrationVersion = 4;

// The first line of a file that was measured beside others' work. Its rates are
// better than none, but only for the while that such work may last.
constexpr absl::string_view kBusyLine = "# measured on a busy machine";
constexpr double kBusyShare = 0.2;
constexpr absl::Duration kBusyFor = absl::Minutes(5);

bool IsStale(const std::string& path, absl::string_view text) {
  if (!absl::StartsWith(text, kBusyLine)) return false;
  struct stat file = {};
  return stat(path.c_str(), &file) != 0 ||
         absl::Now() - absl::TimeFromTimespec(file.st_mtim) > kBusyFor;
}

absl::Status WriteFile(const std::string& path, const Calibration& calibration,
                       double lost_share) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(calibration, &text);
  if (lost_share > kBusyShare) {
    LogWarning(absl::StrFormat(
        "others used %.0f %% of the machine while it was measured: predictions "
        "are too slow until a calibration in %d minutes or later",
        100 * lost_share, absl::ToInt64Minutes(kBusyFor)));
    text = absl::StrCat(kBusyLine, "\n", text);
  }
  return ReplaceFile(path, text);
}

}  // namespace

std::string DefaultCalibrationFile(int threads) {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  std::string directory = "/tmp";
  if (cache != nullptr && *cache != '\0') {
    directory = cache;
  } else if (home != nullptr && *home != '\0') {
    directory = absl::StrCat(home, "/.cache");
  }
  const int cores = UsableCoreCount();
  return absl::StrCat(directory, "/troupe/calibration-", threads,
                      threads > cores ? absl::StrCat("-on-", cores) : "",
                      ".textproto");
}

std::string CalibrationDevice() {
  std::string name = "cpu";
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!absl::StartsWith(line, "model name")) continue;
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    absl::StrAppend(&name, " ",
                    absl::StripAsciiWhitespace(line.substr(colon + 1)));
    break;
  }
  return absl::StrCat(name, ", ", CpuInstructionSets().back(), ", v",
                      kCalibrationVersion);
}

absl::StatusOr<Calibration> ReadCalibration(
    const CalibrationFileOptions& options) {
  const absl::optional<std::string> text = FileText(options.path);
  if (!text.has_value()) return absl::NotFoundError(options.path);
  Calibration calibration;
  if (!google::protobuf::TextFormat::ParseFromString(*text, &calibration)) {
    return absl::DataLossError(
        absl::StrCat(options.path, " is no calibration; it is replaced"));
  }
  if (calibration.device() != options.device ||
      calibration.threads() != options.threads) {
    return absl::NotFoundError(
        absl::StrCat(options.path, " is for another machine"));
  }
  if (IsStale(options.path, *text)) {
    return absl::NotFoundError(
        absl::StrCat(options.path, " was measured on a busy machine"));
  }
  return calibration;
}

absl::StatusOr<Calibration> LoadOrMeasure(
    const CalibrationFileOptions& options,
    const std::function<absl::StatusOr<Calibration>()>& measure) {
  // Without them it is measured each time, by all at once.
  MakeDirectories(ParentDirectory(options.path)).IgnoreError();
  const absl::StatusOr<FileLock> lock = FileLock::Await(
      absl::StrCat(options.path, ".lock"), absl::StrCat("pid ", getpid()));
  if (!options.measure_anew) {
    absl::StatusOr<Calibration> kept = ReadCalibration(options);
    if (kept.ok()) return kept;
    if (absl::IsDataLoss(kept.status())) LogWarning(kept.status().message());
  }
  const MachineTimes start = options.times();
  ASSIGN_OR_RETURN(Calibration calibration, measure());
  calibration.set_device(options.device);
  calibration.set_threads(options.threads);
  const absl::Status written =
      WriteFile(options.path, calibration,
                LostShare(SharesBetween(start, options.times())));
  if (!written.ok()) {
    LogWarning(
        absl::StrCat("the calibration is not kept: ", written.message()));
  }
  return calibration;
}

}  // namespace troupe
