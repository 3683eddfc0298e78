#include "ops/reduce.h"

#include "tests/ops/devices.h"

namespace troupe {
namespace {

class ReduceTest : public OpTest {};

TEST_P(ReduceTest, SumOfSquares) {
  for (int64_t n : {1, 3, 65, 1023, 1025, 70001, 200003}) {
    const Values x = Random(n);
    double want = 2;
    for (double v : x) want += v * v;
    const TestTensor tx(device(), {n}, x);
    const TestTensor result(device(), {1}, {2}, DType::kF64);
    SumOfSquares(device(), {.x = tx, .result = result});
    EXPECT_NEAR(result.Read()[0] / want, 1, 1e-6) << n;
    const TestTensor again(device(), {1}, {2}, DType::kF64);
    SumOfSquares(device(), {.x = tx, .result = again});
    EXPECT_EQ(result.Read(), again.Read());
  }
}

TEST_P(ReduceTest, SumOfSquaresDoesNotDependOnThreads) {
  const Values x = Random(300007);
  const auto sum = [&](int threads) {
    CpuDeviceOptions options = GetParam().cpu;
    options.threads = threads;
    const std::unique_ptr<Device> other = NewCpuDevice(options);
    const TestTensor tx(*other, {300007}, x);
    const TestTensor result(*other, {1}, {0}, DType::kF64);
    SumOfSquares(*other, {.x = tx, .result = result});
    return result.Read();
  };
  EXPECT_EQ(sum(1), sum(3));
}

TEST_P(ReduceTest, AddScaleFill) {
  for (int64_t n : {1, 17, 50001}) {
    const Values x = Random(n), y = Random(n);
    Values sum(n), scaled(n);
    for (int64_t i = 0; i < n; ++i) {
      sum[i] = y[i] - 0.5 * x[i];
      scaled[i] = 3 * x[i];
    }
    const TestTensor tx(device(), {n}, x), ty(device(), {n}, y);
    Add(device(), {.x = tx, .y = ty, .alpha = -0.5f});
    EXPECT_LT(RelativeError(ty.Read(), sum), 1e-6);
    Scale(device(), {.x = tx, .alpha = 3.0f});
    EXPECT_LT(RelativeError(tx.Read(), scaled), 1e-6);
    Fill(device(), {.x = tx, .value = 1.5f});
    EXPECT_EQ(tx.Read(), Values(n, 1.5));
  }
}

TEST_P(ReduceTest, CopyOfStridedTensors) {
  const TestTensor x(device(), {3, 4, 10}, Random(120));
  const TestTensor y(device(), {3, 5, 6}, Values(90));
  Copy(device(),
       {.x = x.tensor().Slice(2, 1, 7), .y = y.tensor().Slice(1, 1, 5)});
  const Values from = x.Read(), to = y.Read();
  for (int b = 0; b < 3; ++b) {
    for (int r = 0; r < 5; ++r) {
      for (int i = 0; i < 6; ++i) {
        EXPECT_EQ(to[(b * 5 + r) * 6 + i],
                  r == 0 ? 0 : from[(b * 4 + r - 1) * 10 + 1 + i]);
      }
    }
  }
}

TROUPE_ON_EACH_DEVICE(ReduceTest);

}  // namespace
}  // namespace troupe
