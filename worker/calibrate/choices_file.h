// A device's choices (ops/kept_choices.h) in a file of the user's cache, beside
// calibrations but apart from them: it grows with the models that are trained,
// and no planner reads it. A line for each, "key = choice", which people may
// read and delete. Workers of one machine share it, and take turns on a lock:
// GPUs of one kind so choose alike.
#ifndef TROUPE_WORKER_CALIBRATE_CHOICES_FILE_H_
#define TROUPE_WORKER_CALIBRATE_CHOICES_FILE_H_

#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
#include "ops/kept_choices.h"

namespace troupe {

// The file beside a calibration file; empty: beside that of the user's cache.
std::string ChoicesPath(const std::string& calibration_file);

class ChoicesFile final : public KeptChoices {
 public:
  // More are not kept, and nothing is chosen for them.
  static constexpr int kChoicesMax = 4096;

  explicit ChoicesFile(std::string path) : path_(std::move(path)) {}

  // A file that cannot be read, written or locked costs one warning.
  absl::optional<std::string> FindOrChoose(
      const std::string& key, absl::FunctionRef<std::string()> choose) override;

 private:
  // Whether it is an error, which is told once.
  bool IsBad(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string path_;
  absl::Mutex mutex_;  // the lock of the file is the process's
  bool warned_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_CALIBRATE_CHOICES_FILE_H_
