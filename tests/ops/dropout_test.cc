#include "ops/dropout.h"

#include "tests/ops/devices.h"

namespace troupe {
namespace {

class DropoutTest : public OpTest {};

const PhiloxStream kStream{.seed = 0x1234567890abcdefu,
                           .purpose = RandomPurpose::kDropout,
                           .site = 77,
                           .step = 3};

TEST_P(DropoutTest, IsThePhiloxMaskAtAnyOffset) {
  for (int64_t n : {1, 3, 17, 255, 256, 257, 5001}) {
    for (uint64_t first : {0ull, 1ull, 7ull, 0xffffffffull * 4 - 10}) {
      const float p = 0.2f;
      for (const DType dtype : ActivationTypes()) {
        const Values x = Random(dtype, n), residual = Random(dtype, n);
        Values want(n);
        for (int64_t i = 0; i < n; ++i) {
          const bool kept =
              PhiloxUniform(PhiloxUint32(kStream, first + i)) >= p;
          want[i] = residual[i] + (kept ? x[i] / (1 - p) : 0);
        }
        const TestTensor tx(device(), {n}, x, dtype);
        const TestTensor tr(device(), {n}, residual, dtype);
        ApplyDropout(
            device(),
            {.x = tx, .residual = tr, .y = tx, .mask = {p, kStream, first}});
        EXPECT_LT(RelativeError(tx.Read(), want), ErrorOf(dtype, 1e-6))
            << n << " " << first;
      }
    }
  }
}

TEST_P(DropoutTest, KeepsTheRightShareAndTheMean) {
  const int64_t n = 100000;
  const TestTensor x(device(), {n}, Values(n, 1.0));
  const TestTensor y(device(), DType::kF32, {n});
  ApplyDropout(device(), {.x = x, .y = y, .mask = {0.1f, kStream, 0}});
  double kept = 0, sum = 0;
  for (double v : y.Read()) {
    kept += v != 0;
    sum += v;
  }
  EXPECT_NEAR(kept / n, 0.9, 0.005);  // five standard deviations
  EXPECT_NEAR(sum / n, 1.0, 0.006);
}

TEST_P(DropoutTest, RowsOfAnyPlanAreRowsOfTheWhole) {
  const int64_t rows = 50, n = 129;
  const TestTensor whole(device(), {rows, n}, Random(rows * n));
  const TestTensor parts(device(), {rows, n}, whole.Read());
  ApplyDropout(device(), {.x = whole, .y = whole, .mask = {0.5f, kStream, 0}});
  for (int64_t begin = 0; begin < rows; begin += 7) {
    const Tensor part =
        parts.tensor().Slice(0, begin, std::min(begin + 7, rows));
    ApplyDropout(device(),
                 {.x = part,
                  .y = part,
                  .mask = {0.5f, kStream, static_cast<uint64_t>(begin * n)}});
  }
  EXPECT_EQ(whole.Read(), parts.Read());
}

TEST_P(DropoutTest, ColumnsOfAnyPlanAreColumnsOfTheWhole) {
  const int64_t rows = 37;
  const std::vector<int64_t> cuts[] = {{1, 7, 33}, {64, 16, 32}, {129, 70}};
  for (const DType dtype : ActivationTypes()) {
    for (const std::vector<int64_t>& pieces : cuts) {
      int64_t columns = 0;
      for (int64_t n : pieces) columns += n;
      const uint64_t first = 1000 * columns;
      const Values x = Random(dtype, rows * columns);
      const Values residual = Random(dtype, rows * columns);
      const TestTensor whole(device(), {rows, columns}, x, dtype);
      const TestTensor whole_residual(device(), {rows, columns}, residual,
                                      dtype);
      ApplyDropout(device(), {.x = whole,
                              .residual = whole_residual,
                              .y = whole,
                              .mask = {0.3f, kStream, first}});
      const Values y = whole.Read();
      int64_t begin = 0;
      for (int64_t n : pieces) {
        const auto cut = [&](const Values& of) {
          Values part;
          for (int64_t i = 0; i < rows * n; ++i) {
            part.push_back(of[i / n * columns + begin + i % n]);
          }
          return part;
        };
        const TestTensor part(device(), {rows, n}, cut(x), dtype);
        const TestTensor part_residual(device(), {rows, n}, cut(residual),
                                       dtype);
        ApplyDropout(device(), {.x = part,
                                .residual = part_residual,
                                .y = part,
                                .mask = {.probability = 0.3f,
                                         .stream = kStream,
                                         .first_element = first + begin,
                                         .columns = n,
                                         .row_stride = columns}});
        EXPECT_EQ(part.Read(), cut(y)) << n << " of " << columns;
        begin += n;
      }
    }
  }
}

TEST_P(DropoutTest, NoProbabilityChangesNothing) {
  for (const DType dtype : ActivationTypes()) {
    const TestTensor x(device(), {100}, Random(100), dtype);
    const TestTensor y(device(), dtype, {100});
    ApplyDropout(device(), {.x = x, .y = y});
    EXPECT_EQ(x.Read(), y.Read());
  }
}

TROUPE_ON_EACH_DEVICE(DropoutTest);

}  // namespace
}  // namespace troupe
