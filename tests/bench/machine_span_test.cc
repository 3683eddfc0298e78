#include "tests/bench/machine_span.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/calibrate/calibration_file.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(MachineSpan, ComparesWithTheCalibrationThatIsThere) {
  const std::string cache = testing::TempDir() + "/machine-span";
  std::filesystem::create_directories(cache + "/troupe");
  setenv("XDG_CACHE_HOME", cache.c_str(), 1);
  std::filesystem::remove(DefaultCalibrationFile(1));
  EXPECT_THAT(MachineSpan(1).Line(),
              HasSubstr("not calibrated for workers of 1 threads"));
  // One on which the probe took a nanosecond, and one that took a minute.
  for (const char* us : {"1e-3", "6e7"}) {
    std::ofstream(DefaultCalibrationFile(1)) << absl::StrCat(
        "device: \"", CalibrationDevice(), "\" threads: 1 probe_us: ", us);
    EXPECT_THAT(MachineSpan(1).Line(), StartsWith("machine: "));
    EXPECT_THAT(MachineSpan(1).Line(),
                HasSubstr(us[0] == '1' ? "% slower than at calibration"
                                       : "% faster than at calibration"));
  }
}

}  // namespace
}  // namespace troupe
