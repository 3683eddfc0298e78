#include "worker/calibrate/choices_file.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "proto/base/file_text.h"
#include "proto/base/log.h"
#include "storage/disk/directory.h"
#include "storage/disk/file_lock.h"
#include "storage/disk/new_file.h"
#include "worker/calibrate/calibration_file.h"

namespace troupe {
namespace {

// Empty where there is no such file yet.
std::string ReadAll(const std::string& path) {
  return FileText(path).value_or("");
}

// What the line of the key says, if there is one.
absl::optional<std::string> FindIn(absl::string_view text,
                                   const std::string& key) {
  const std::string start = absl::StrCat(key, " = ");
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::StartsWith(line, start)) continue;
    return std::string(line.substr(start.size()));
  }
  return absl::nullopt;
}

}  // namespace

std::string ChoicesPath(const std::string& calibration_file) {
  return std::filesystem::path(calibration_file.empty()
                                   ? DefaultCalibrationFile(1)
                                   : calibration_file)
      .replace_filename("product-kernels.txt");
}

bool ChoicesFile::IsBad(const absl::Status& status) {
  if (status.ok()) return false;
  if (!warned_) {
    LogWarning(
        absl::StrCat("kernels of products are not timed: ", status.message()));
  }
  warned_ = true;
  return true;
}

absl::optional<std::string> ChoicesFile::FindOrChoose(
    const std::string& key, absl::FunctionRef<std::string()> choose) {
  absl::MutexLock lock(&mutex_);
  if (IsBad(MakeDirectories(ParentDirectory(path_)))) return absl::nullopt;
  const absl::StatusOr<FileLock> file_lock =
      FileLock::Await(absl::StrCat(path_, ".lock"), ThisProcessName());
  if (IsBad(file_lock.status())) return absl::nullopt;
  std::string text = ReadAll(path_);
  if (auto kept = FindIn(text, key)) return kept;
  if (std::count(text.begin(), text.end(), '\n') >= kChoicesMax) {
    return absl::nullopt;
  }
  const std::string choice = choose();
  if (choice.empty()) return absl::nullopt;
  absl::StrAppend(&text, key, " = ", choice, "\n");
  if (IsBad(ReplaceFile(path_, text))) return absl::nullopt;
  return choice;
}

}  // namespace troupe
