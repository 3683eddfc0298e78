#include "storage/checkpoint/check_numbers.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace troupe {
namespace {

absl::Status Check(const std::vector<float>& values,
                   const std::vector<int64_t>& shape, int64_t first = 0) {
  // At an odd address, as tensors of a file may lie.
  std::vector<char> bytes(1 + values.size() * sizeof(float));
  std::copy_n(reinterpret_cast<const char*>(values.data()),
              values.size() * sizeof(float), bytes.data() + 1);
  return CheckNumbers({.path = "/m/model.safetensors",
                       .tensor = "wte",
                       .shape = shape,
                       .first = first,
                       .count = static_cast<int64_t>(values.size()),
                       .data = bytes.data() + 1});
}

TEST(CheckNumbers, AllThatAFloatCanBeIsANumber) {
  using Limits = std::numeric_limits<float>;
  EXPECT_TRUE(Check({}, {0}).ok());
  EXPECT_TRUE(Check({0.0f, -0.0f, Limits::max(), Limits::lowest(),
                     Limits::min(), Limits::denorm_min()},
                    {6})
                  .ok());
}

TEST(CheckNumbers, NamesTheFirstThatIsNone) {
  for (const size_t at : {0, 1, 1023, 1024, 1500, 2999}) {
    std::vector<float> values(3000, 1.0f);
    values[at] = at % 2 == 0 ? NAN : -INFINITY;
    values[2999] = INFINITY;
    const absl::Status status = Check(values, {3, 1000});
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    const std::string value = at == 2999 ? "inf" : at % 2 == 0 ? "nan" : "-inf";
    const std::string want = "/m/model.safetensors: tensor wte is " + value +
                             " at [" + std::to_string(at / 1000) + ", " +
                             std::to_string(at % 1000) + "]; ";
    EXPECT_EQ(status.message().substr(0, want.size()), want);
  }
}

TEST(CheckNumbers, CountsFromThePieceThatWasRead) {
  const absl::Status status = Check({1, NAN}, {4, 2, 3}, /*first=*/15);
  EXPECT_NE(status.message().find("at [2, 1, 1]"), absl::string_view::npos)
      << status;
}

}  // namespace
}  // namespace troupe
