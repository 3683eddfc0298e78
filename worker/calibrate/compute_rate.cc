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

  // Room for f32, whatever the dtype.
  Tensor Take(std::initializer_list<int64_t> dims, DType dtype = DType::kF32) {
    int64_t elements = 1;
    for (const int64_t dim : dims) elements *= dim;
    float* start = memory_ + used_;
    used_ += (elements + 15) / 16 * 16;
    CHECK_LE(used_, elements_);
    const Tensor tensor(start, dtype, dims);
    if (dtype != DType::kF32) Fill(device_, {.x = tensor, .value = 0.01f});
    return tensor;
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
    return SecondsOf(clock, options.each,
                     [&] {
                       for (int i = 0; i < options.calls_at_once; ++i) work();
                       CHECK_OK(device.Synchronize());
                     }) /
           options.calls_at_once;
  }
};

void MeasureProducts(const Bench& bench, DType dtype) {
  for (const ProductSize& size : kProducts) {
    const int64_t m = size.m / bench.options.shrink;
    const int64_t n = size.n / bench.options.shrink;
    const int64_t k = size.k / bench.options.shrink;
    bench.scratch.Reset();
    const MatMulArgs args = {.a = bench.scratch.Take({m, k}, dtype),
                             .b = bench.scratch.Take({k, n}, dtype),
                             .c = bench.scratch.Take({m, n}, dtype)};
    const double seconds = bench.Seconds([&] { MatMul(bench.device, args); });
    MatmulRate& rate = *bench.calibration.add_matmul();
    rate.set_dtype(dtype == DType::kBF16 ? BF16 : F32);
    rate.set_m(m);
    rate.set_n(n);
    rate.set_k(k);
    rate.set_flops_per_second(2.0 * m * n * k / seconds);
  }
}

// As in a GPT-2: heads of 64 columns.
struct AttentionRates {
  double forward = 0;  // flops a second
  double backward = 0;
};
AttentionRates MeasureAttention(const Bench& bench, DType dtype) {
  constexpr int64_t kBatch = 2;
  constexpr int64_t kHeads = 6;
  constexpr int64_t kWidth = kHeads * 64;
  const int64_t length = 512 / bench.options.shrink;
  bench.scratch.Reset();
  const auto rows = [&](int64_t width) {
    return bench.scratch.Take({kBatch, length, width}, dtype);
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
  return {.forward = 2 * product / forward, .backward = 5 * product / backward};
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
}

// GELUs a second.
double MeasureElementwise(const Bench& bench, DType dtype) {
  const int64_t small = (256 << 10) / bench.options.shrink;
  bench.scratch.Reset();
  const Tensor x = bench.scratch.Take({small}, dtype);
  const Tensor y = bench.scratch.Take({small}, dtype);
  return small / bench.Seconds([&] { Gelu(bench.device, {.x = x, .y = y}); });
}

void MeasurePasses(const Bench& bench) {
  Calibration& calibration = bench.calibration;
  const AttentionRates f32 = MeasureAttention(bench, DType::kF32);
  calibration.set_attention_flops_per_second(f32.forward);
  calibration.set_attention_backward_flops_per_second(f32.backward);
  const AttentionRates bf16 = MeasureAttention(bench, DType::kBF16);
  calibration.set_attention_bf16_flops_per_second(bf16.forward);
  calibration.set_attention_backward_bf16_flops_per_second(bf16.backward);
  calibration.set_elementwise_ops_per_second(
      MeasureElementwise(bench, DType::kF32));
  calibration.set_elementwise_bf16_ops_per_second(
      MeasureElementwise(bench, DType::kBF16));
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
  MeasureProducts(bench, DType::kF32);
  MeasureProducts(bench, DType::kBF16);
  MeasurePasses(bench);
  MeasureMemory(bench);
  return absl::OkStatus();
}

}  // namespace troupe
