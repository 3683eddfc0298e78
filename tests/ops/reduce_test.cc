#include "ops/reduce.h"

#include <bit>

#include "tests/ops/devices.h"

namespace troupe {
namespace {

class ReduceTest : public OpTest {};

TEST_P(ReduceTest, SumOfSquares) {
  for (int64_t n : {1, 3, 65, 1023, 1025, 70001, 200003}) {
    for (const DType dtype : ActivationTypes()) {
      const Values x = Random(dtype, n);
      double want = 2;
      for (double v : x) want += v * v;
      const TestTensor tx(device(), {n}, x, dtype);
      const TestTensor result(device(), {1}, {2}, DType::kF64);
      SumOfSquares(device(), {.x = tx, .result = result});
      EXPECT_NEAR(result.Read()[0] / want, 1, 1e-6) << n;
      const TestTensor again(device(), {1}, {2}, DType::kF64);
      SumOfSquares(device(), {.x = tx, .result = again});
      EXPECT_EQ(result.Read(), again.Read());
    }
  }
}

TEST_P(ReduceTest, SumOfSquaresDoesNotDependOnThreads) {
  if (device().kind() != DeviceKind::kCpu) {
    GTEST_SKIP() << "the threads of a GPU are not ours to count";
  }
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
    for (const DType dtype : ActivationTypes()) {
      const TestTensor of_type(device(), {n}, x, dtype);
      Values tripled = of_type.Read();
      for (double& value : tripled) value *= 3;
      Scale(device(), {.x = of_type, .alpha = 3.0f});
      EXPECT_EQ(of_type.Read(), AsStored(dtype, tripled));
      const TestTensor filled(device(), dtype, {n});
      Fill(device(), {.x = filled, .value = 1.5f});
      EXPECT_EQ(filled.Read(), Values(n, 1.5));
    }
  }
}

TEST_P(ReduceTest, CopyOfStridedTensors) {
  for (const DType x_type : ActivationTypes()) {
    for (const DType y_type : ActivationTypes()) {
      // Never between bf16 and fp16.
      const bool one_is_f32 = x_type == DType::kF32 || y_type == DType::kF32;
      if (x_type != y_type && !one_is_f32) continue;
      const TestTensor x(device(), {3, 4, 10}, Random(120), x_type);
      const TestTensor y(device(), {3, 5, 6}, Values(90), y_type);
      Copy(device(),
           {.x = x.tensor().Slice(2, 1, 7), .y = y.tensor().Slice(1, 1, 5)});
      const Values from = AsStored(y_type, x.Read()), to = y.Read();
      for (int b = 0; b < 3; ++b) {
        for (int r = 0; r < 5; ++r) {
          for (int i = 0; i < 6; ++i) {
            EXPECT_EQ(to[(b * 5 + r) * 6 + i],
                      r == 0 ? 0 : from[(b * 4 + r - 1) * 10 + 1 + i]);
          }
        }
      }
    }
  }
}

// Rounds f32 numbers to a narrower type and back: what the two casts do.
struct Cast {
  std::vector<uint16_t> narrowed;
  std::vector<uint32_t> widened;
};
Cast CastBothWays(Device& device, DType dtype,
                  const std::vector<float>& numbers) {
  const int64_t n = static_cast<int64_t>(numbers.size());
  const TestTensor wide(device, DType::kF32, {n});
  const TestTensor narrow(device, dtype, {n});
  device.CopyFromHost(wide.tensor().raw(), numbers.data(), 4 * n);
  Copy(device, {.x = wide, .y = narrow});
  Copy(device, {.x = narrow, .y = wide});
  Cast cast = {std::vector<uint16_t>(n), std::vector<uint32_t>(n)};
  device.CopyToHost(cast.narrowed.data(), narrow.tensor().raw(), 2 * n);
  device.CopyToHost(cast.widened.data(), wide.tensor().raw(), 4 * n);
  CHECK_OK(device.Synchronize());
  return cast;
}

// Every bf16 number and what lies between it and the next: the vectors round as
// ToBF16 does, bit for bit, infinities, denormals and NaN among them.
TEST_P(ReduceTest, CastsRoundAsToBF16) {
  std::vector<float> numbers;
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    for (uint32_t lower : {0x0000, 0x0001, 0x7fff, 0x8000, 0x8001, 0xffff}) {
      numbers.push_back(std::bit_cast<float>(bits << 16 | lower));
    }
  }
  numbers.push_back(1.0f);  // a last vector that is not full
  const auto [narrowed, widened] =
      CastBothWays(device(), DType::kBF16, numbers);
  int64_t wrong = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    wrong += narrowed[i] != ToBF16(numbers[i]);
    wrong += widened[i] != uint32_t{narrowed[i]} << 16;
  }
  EXPECT_EQ(wrong, 0);
}

// The same of fp16, between whose numbers lie more bits of an f32.
TEST_P(ReduceTest, CastsRoundAsToFP16) {
  std::vector<float> numbers;
  for (uint32_t bits = 0; bits <= 0x7ffff; ++bits) {
    for (uint32_t lower : {0x0000, 0x0001, 0x0fff, 0x1000, 0x1001, 0x1fff}) {
      numbers.push_back(std::bit_cast<float>(bits << 13 | lower));
    }
  }
  numbers.push_back(1.0f);
  const auto [narrowed, widened] = CastBothWays(device(), DType::kF16, numbers);
  int64_t wrong = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    wrong += narrowed[i] != ToFP16(numbers[i]);
    wrong += widened[i] != std::bit_cast<uint32_t>(FromFP16(narrowed[i]));
  }
  EXPECT_EQ(wrong, 0);
}

TROUPE_ON_EACH_DEVICE(ReduceTest);

}  // namespace
}  // namespace troupe
