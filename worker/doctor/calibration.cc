#include "worker/doctor/calibration.h"

#include <google/protobuf/text_format.h>

#include <filesystem>
#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "proto/base/file_text.h"
#include "worker/calibrate/calibration_file.h"

namespace troupe {

namespace fs = std::filesystem;

Finding JudgeCalibration(const CalibrationCache& cache) {
  if (cache.threads.empty()) {
    return {.state = FindingState::kNone,
            .text = absl::StrCat("this machine is not measured yet (",
                                 cache.folder, ")"),
            .advice =
                "the first worker does, in some seconds; for a good "
                "measure let nothing else run then"};
  }
  const std::string loss = Bf16LossText(cache.bf16);
  return {.text = absl::StrCat(
              "measured for workers of ", absl::StrJoin(cache.threads, ", "),
              cache.threads == std::vector<int>{1} ? " thread" : " threads",
              ", in ", cache.folder, loss.empty() ? "" : "; ", loss,
              loss.empty() ? "" : ": training.precision f32 is faster here")};
}

CalibrationCache ReadCalibrationCache(const CalibrationSearch& search) {
  CalibrationCache cache = {.folder = search.folder};
  std::map<int, Calibration> found;  // by threads
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(search.folder, error)) {
    const std::string name = entry.path().filename().string();
    absl::string_view number = name;
    int threads = 0;
    if (!absl::ConsumePrefix(&number, "calibration-") ||
        !absl::ConsumeSuffix(&number, ".textproto") ||
        !absl::SimpleAtoi(number, &threads)) {
      continue;
    }
    const std::string content = FileText(entry.path()).value_or("");
    Calibration calibration;
    if (google::protobuf::TextFormat::ParseFromString(content, &calibration) &&
        calibration.device() == search.device) {
      found[threads] = std::move(calibration);
    }
  }
  for (const auto& [threads, calibration] : found) {
    cache.threads.push_back(threads);
    cache.bf16 = Bf16GainOf(calibration);
  }
  return cache;
}

Finding CheckCalibration() {
  const fs::path file = DefaultCalibrationFile(1);
  return JudgeCalibration(ReadCalibrationCache(
      {.folder = file.parent_path().string(), .device = CalibrationDevice()}));
}

}  // namespace troupe
