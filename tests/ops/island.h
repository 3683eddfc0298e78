// A tensor whose surroundings show which kernels read or write beyond it.
#ifndef TROUPE_TESTS_OPS_ISLAND_H_
#define TROUPE_TESTS_OPS_ISLAND_H_

#include <cmath>
#include <cstdint>
#include <limits>

#include "gtest/gtest.h"
#include "tests/ops/test_tensor.h"

namespace troupe {

// A tensor [batch, rows, columns] amid NaN, strided in batch and rows: a kernel
// that reads beyond it spoils its results, one that writes beyond it is found.
class Island {
 public:
  Island(Device& device, DType dtype, int64_t batch, int64_t rows,
         int64_t columns)
      : batch_(batch),
        rows_(rows),
        columns_(columns),
        memory_(device, {batch, rows + 2, columns + 3},
                Values(batch * (rows + 2) * (columns + 3), kNaN), dtype) {}

  operator Tensor() const {
    return memory_.tensor().Slice(1, 1, 1 + rows_).Slice(2, 2, 2 + columns_);
  }
  void Write(const Values& values) {
    Values all = memory_.Read();
    ForEach([&](int64_t i, int64_t at) { all[at] = values[i]; });
    memory_.Write(all);
  }
  Values Read() const {
    Values all = memory_.Read();
    Values values(batch_ * rows_ * columns_);
    ForEach([&](int64_t i, int64_t at) {
      values[i] = all[at];
      all[at] = kNaN;
    });
    for (const double v : all) EXPECT_TRUE(std::isnan(v)) << "beyond the end";
    return values;
  }

 private:
  static constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

  template <typename Body>
  void ForEach(Body body) const {
    for (int64_t i = 0; i < batch_ * rows_ * columns_; ++i) {
      const int64_t row = i / columns_ % rows_;
      const int64_t sample = i / columns_ / rows_;
      const int64_t line = sample * (rows_ + 2) + row + 1;
      body(i, line * (columns_ + 3) + 2 + i % columns_);
    }
  }

  const int64_t batch_, rows_, columns_;
  TestTensor memory_;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_OPS_ISLAND_H_
