#include "worker/calibrate/compute_rate.h"

#include <algorithm>
#include <cmath>

#include "ops/attention.h"
#include "ops/gelu.h"
#include "ops/matmul.h"
#include "ops/optimizer.h"
#include "ops/reduce.h"
#include "ops/tensor.h"
#include "proto/base/check.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

// Memory of a device that lasts as long as a measurement.
class Scratch {
 public:
  static absl::StatusOr<std::unique_ptr<Scratch>> Create(Device& device,
                                                         int64_t elements) {
    ASSIGN_OR_RETURN(void* memory, device.Allocate(elements * sizeof(float)));
    auto scratch = std::unique_ptr<Scratch>(
        new Scratch(device, static_cast<float*>(memory), elements));
    // Touched before it is timed; not zero, since zeros may be fast.
    Fill(device, {.x = scratch->Take({elements}), .value = 0.01f});
    scratch->used_ = 0;
    return scratch;
  }
  ~Scratch() { device_.Free(memory_); }

  Tensor Take(std::initializer_list<int64_t> dims) {
    int64_t elements = 1;
    for (const int64_t dim : dims) elements *= dim;
    float* start = memory_ + used_;
    used_ += (elements + 15) / 16 * 16;
    CHECK_LE(used_, elements_);
    return Tensor(start, DType::kF32, dims);
  }
  void Reset() { used_ = 0; }

 private:
  Scratch(Device& device, float* memory, int64_t elements)
      : device_(device), memory_(memory), elements_(elements) {}
  Device& device_;
  float* const memory_;
  const int64_t elements_;
  int64_t used_ = 0;
};

struct ProductSize {
  int64_t m, n, k;
};

// Of small and of large models, so that the planner can interpolate.
constexpr ProductSize kProducts[] = {
    {128, 128, 128},  {256, 384, 384},   {1024, 384, 384},   {1024, 1536, 384},
    {1024, 768, 768}, {1024, 3072, 768}, {2048, 2048, 2048},
};

struct Bench {
  Device& device;
  const Clock& clock;
  const ComputeRateOptions& options;
  Scratch& scratch;
  Calibration& calibration;

  double Seconds(const std::function<void()>& work) const {
    return SecondsOf(clock, options.each, [&] {
      work();
      CHECK_OK(device.Synchronize());
    });
  }
};

void MeasureProducts(const Bench& bench) {
  for (const ProductSize& size : kProducts) {
    const int64_t m = size.m / bench.options.shrink;
    const int64_t n = size.n / bench.options.shrink;
    const int64_t k = size.k / bench.options.shrink;
    bench.scratch.Reset();
    const MatMulArgs args = {.a = bench.scratch.Take({m, k}),
                             .b = bench.scratch.Take({k, n}),
                             .c = bench.scratch.Take({m, n})};
    const double seconds = bench.Seconds([&] { MatMul(bench.device, args); });
    MatmulRate& rate = *bench.calibration.add_matmul();
    rate.set_dtype(F32);
    rate.set_m(m);
    rate.set_n(n);
    rate.set_k(k);
    rate.set_flops_per_second(2.0 * m * n * k / seconds);
  }
}

// As in a GPT-2: heads of 64 columns.
void MeasureAttention(const Bench& bench) {
  constexpr int64_t kBatch = 2;
  constexpr int64_t kHeads = 6;
  constexpr int64_t kWidth = kHeads * 64;
  const int64_t length = 512 / bench.options.shrink;
  bench.scratch.Reset();
  const auto rows = [&](int64_t width) {
    return bench.scratch.Take({kBatch, length, width});
  };
  const Tensor qkv = rows(3 * kWidth);
  const Tensor d_qkv = rows(3 * kWidth);
  const Tensor o = rows(kWidth);
  const Tensor d_o = rows(kWidth);
  const Tensor logsumexp = bench.scratch.Take({kBatch, kHeads, length});
  const auto part = [](const Tensor& x, int index) {
    return x.Slice(2, index * kWidth, (index + 1) * kWidth);
  };
  const double forward = bench.Seconds([&] {
    Attention(bench.device, {.q = part(qkv, 0),
                             .k = part(qkv, 1),
                             .v = part(qkv, 2),
                             .o = o,
                             .logsumexp = logsumexp,
                             .heads = kHeads,
                             .kv_heads = kHeads,
                             .scale = 0.125f});
  });
  const double backward = bench.Seconds([&] {
    AttentionBackward(bench.device, {.q = part(qkv, 0),
                                     .k = part(qkv, 1),
                                     .v = part(qkv, 2),
                                     .o = o,
                                     .logsumexp = logsumexp,
                                     .d_o = d_o,
                                     .dq = part(d_qkv, 0),
                                     .dk = part(d_qkv, 1),
                                     .dv = part(d_qkv, 2),
                                     .heads = kHeads,
                                     .kv_heads = kHeads,
                                     .scale = 0.125f});
  });
  // Two products forward and five backward, the masked half included.
  const double product = 2.0 * kBatch * length * length * kWidth;
  bench.calibration.set_attention_flops_per_second(2 * product / forward);
  bench.calibration.set_attention_backward_flops_per_second(5 * product /
                                                            backward);
}

void MeasureMemory(const Bench& bench) {
  // Past the caches: 32 MiB for each tensor.
  const int64_t large = (8 << 20) / bench.options.shrink;
  bench.scratch.Reset();
  const Tensor x = bench.scratch.Take({large});
  const Tensor y = bench.scratch.Take({large});
  const double copy =
      bench.Seconds([&] { Copy(bench.device, {.x = x, .y = y}); });
  bench.calibration.set_memory_bytes_per_second(8.0 * large / copy);

  const AdamWArgs adamw = {.weights = x,
                           .gradients = y,
                           .first_moment = bench.scratch.Take({large}),
                           .second_moment = bench.scratch.Take({large}),
                           .learning_rate = 1e-6f,
                           .zero_gradients = true};
  const double step = bench.Seconds([&] { AdamW(bench.device, adamw); });
  // Weights, gradients and two moments, each read and written.
  bench.calibration.set_optimizer_bytes_per_second(8.0 * 4.0 * large / step);

  const int64_t small = (256 << 10) / bench.options.shrink;
  const double gelu = bench.Seconds([&] {
    Gelu(bench.device, {.x = x.Slice(0, 0, small), .y = y.Slice(0, 0, small)});
  });
  bench.calibration.set_elementwise_ops_per_second(small / gelu);
}

}  // namespace

double SecondsOf(const Clock& clock, absl::Duration at_least,
                 const std::function<void()>& work) {
  const int64_t least_ns = absl::ToInt64Nanoseconds(at_least);
  const int64_t begin = clock.MonotonicNanos();
  work();
  int64_t now = clock.MonotonicNanos();
  const int64_t first_ns = std::max<int64_t>(now - begin, 1);
  // Batches long enough for the clock, short enough for several.
  const int64_t calls = std::clamp<int64_t>(least_ns / 8 / first_ns, 1, 10000);
  double best = INFINITY;
  const int64_t end = now + least_ns;
  do {
    const int64_t start = now;
    for (int64_t i = 0; i < calls; ++i) work();
    now = clock.MonotonicNanos();
    best = std::min(best, std::max<int64_t>(now - start, 1) * 1e-9 / calls);
  } while (now < end && now > begin);
  return best;
}

absl::Status MeasureComputeRates(Device& device, const Clock& clock,
                                 const ComputeRateOptions& options,
                                 Calibration& calibration) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Scratch> scratch,
                   Scratch::Create(device, (40 << 20) / options.shrink));
  calibration.clear_matmul();
  const Bench bench = {device, clock, options, *scratch, calibration};
  MeasureProducts(bench);
  MeasureAttention(bench);
  MeasureMemory(bench);
  return absl::OkStatus();
}

}  // namespace troupe
