// How fast the ops are, beside what this machine can do, in one run: products
// and attention against oneDNN's rate on a large product, passes over memory
// against a copy. The shapes are those of GPT-2 124M (12 heads, width 768,
// sequence 1,024, vocabulary 50,257) with one sample.
//
//   bazel run //tests/bench:ops_bench -- [threads]
//
// Products and attention come in f32 and in bf16, beside a product of the same.
//
// Attention counts half of the products (the causal half; all of them for keys
// that are earlier than the queries), forward 2 and backward 5 of them, as
// flash attention needs.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ops/attention.h"
#include "ops/bias_gradient.h"
#include "ops/cpu/device.h"
#include "ops/cross_entropy.h"
#include "ops/dropout.h"
#include "ops/gelu.h"
#include "ops/layer_norm.h"
#include "ops/matmul.h"
#include "ops/optimizer.h"
#include "ops/random.h"
#include "ops/reduce.h"
#include "proto/base/check.h"
#include "proto/base/cores.h"
#include "tests/bench/machine_span.h"

namespace troupe {
namespace {

constexpr int64_t kTime = 1024, kWidth = 768, kHidden = 3072;
constexpr int64_t kVocabulary = 50257;
constexpr int kHeads = 12;

// The fastest of many runs, in seconds.
double Seconds(const std::function<void()>& body) {
  using Clock = std::chrono::steady_clock;
  const auto seconds = [](Clock::duration d) {
    return std::chrono::duration<double>(d).count();
  };
  body();
  double best = 1e9;
  const auto start = Clock::now();
  do {
    const auto begin = Clock::now();
    body();
    best = std::min(best, seconds(Clock::now() - begin));
  } while (seconds(Clock::now() - start) < 0.4);
  return best;
}

class Bench {
 public:
  explicit Bench(int threads) : device_(NewCpuDevice({.threads = threads})) {}

  void Run() {
    std::printf("%s\n", device_->Describe().c_str());
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      Products(dtype);
      AttentionOps(dtype);
      AttentionHops(dtype);
    }
    const Tensor from = New({1 << 25});
    const Tensor to = New({1 << 25});
    copy_rate_ = 2.0 * from.bytes() /
                 Seconds([&] { Copy(*device_, {.x = from, .y = to}); });
    std::printf("copy of 128 MiB%31.1f GB/s\n", copy_rate_ * 1e-9);
    Norms();
    Activations();
    Losses();
    Optimizers();
  }

 private:
  Tensor New(std::initializer_list<int64_t> dims, DType dtype = DType::kF32) {
    int64_t count = 1;
    for (int64_t dim : dims) count *= dim;
    absl::StatusOr<void*> memory = device_->Allocate(count * DTypeBytes(dtype));
    CHECK_OK(memory.status());
    const auto free = [this](void* p) { device_->Free(p); };
    memory_.emplace_back(*memory, free);
    const Tensor tensor(*memory, dtype, dims);
    device_->Zero(tensor.raw(), tensor.bytes());
    if (dtype == DType::kF32) {
      FillNormal(*device_, {.x = tensor, .standard_deviation = 0.1f});
    }
    if (dtype == DType::kBF16) Fill(*device_, {.x = tensor, .value = 0.1f});
    return tensor;
  }

  void Compute(const std::string& name, double flops,
               const std::function<void()>& body) {
    const double seconds = Seconds(body);
    if (product_rate_ == 0) product_rate_ = flops / seconds;
    std::printf("%-36s%8.2f ms%8.1f GFLOP/s  %.2f of the large product\n",
                name.c_str(), seconds * 1e3, flops / seconds * 1e-9,
                flops / seconds / product_rate_);
  }

  void Memory(const char* name, double bytes,
              const std::function<void()>& body) {
    const double seconds = Seconds(body);
    std::printf("%-36s%8.2f ms%8.1f GB/s     %.2f of the copy\n", name,
                seconds * 1e3, bytes / seconds * 1e-9,
                bytes / seconds / copy_rate_);
  }

  struct Transposes {
    bool a = false, b = false;
  };

  // Gradients of weights (a transposed) add up in f32.
  void Product(const char* name, DType dtype, int64_t m, int64_t n, int64_t k,
               Transposes transpose) {
    const Tensor a = New({transpose.a ? k : m, transpose.a ? m : k}, dtype);
    const Tensor b = New({transpose.b ? n : k, transpose.b ? k : n}, dtype);
    const Tensor c = New({m, n}, transpose.a ? DType::kF32 : dtype);
    Compute(name, 2.0 * m * n * k, [&] {
      MatMul(*device_, {.a = a,
                        .b = b,
                        .c = c,
                        .transpose_a = transpose.a,
                        .transpose_b = transpose.b,
                        .accumulate = transpose.a});
    });
    memory_.resize(memory_.size() - 3);
  }

  void Products(DType dtype) {
    std::printf("%s\n", DTypeName(dtype));
    product_rate_ = 0;  // the next product sets it
    Product("product 2048^3", dtype, 2048, 2048, 2048, {});
    Product("y = x W, qkv", dtype, kTime, 3 * kWidth, kWidth, {});
    Product("dx = dy W^T, qkv", dtype, kTime, kWidth, 3 * kWidth, {.b = true});
    Product("dW += x^T dy, qkv", dtype, kWidth, 3 * kWidth, kTime, {.a = true});
    Product("y = x W, hidden", dtype, kTime, kHidden, kWidth, {});
    Product("dx = dy W^T, hidden", dtype, kTime, kWidth, kHidden, {.b = true});
    Product("dW += x^T dy, hidden", dtype, kWidth, kHidden, kTime, {.a = true});
    Product("logits = x wte^T", dtype, kTime, kVocabulary, kWidth, {.b = true});
    Product("dx = dlogits wte", dtype, kTime, kWidth, kVocabulary, {});
    Product("dwte += dlogits^T x", dtype, kVocabulary, kWidth, kTime,
            {.a = true});
    Product("logits, one row", dtype, 1, kVocabulary, kWidth, {.b = true});
  }

  void AttentionOps(DType dtype) {
    const Tensor qkv = New({1, kTime, 3 * kWidth}, dtype);
    const Tensor gradient = New({1, kTime, 3 * kWidth}, dtype);
    const Tensor o = New({1, kTime, kWidth}, dtype);
    const Tensor d_o = New({1, kTime, kWidth}, dtype);
    const Tensor logsumexp = New({1, kHeads, kTime});
    const auto part = [](const Tensor& t, int i) {
      return t.Slice(2, i * kWidth, (i + 1) * kWidth);
    };
    const double product = 2.0 * kTime * kTime * kWidth / 2;
    for (const float probability : {0.0f, 0.1f}) {
      const AttentionDropout dropout{.probability = probability};
      Compute(probability == 0 ? "attention" : "attention, dropout",
              2 * product, [&] {
                Attention(*device_, {.q = part(qkv, 0),
                                     .k = part(qkv, 1),
                                     .v = part(qkv, 2),
                                     .o = o,
                                     .logsumexp = logsumexp,
                                     .heads = kHeads,
                                     .kv_heads = kHeads,
                                     .scale = 0.125f,
                                     .dropout = dropout});
              });
      Compute(probability == 0 ? "attention backward"
                               : "attention backward, dropout",
              5 * product, [&] {
                AttentionBackward(*device_, {.q = part(qkv, 0),
                                             .k = part(qkv, 1),
                                             .v = part(qkv, 2),
                                             .o = o,
                                             .logsumexp = logsumexp,
                                             .d_o = d_o,
                                             .dq = part(gradient, 0),
                                             .dk = part(gradient, 1),
                                             .dv = part(gradient, 2),
                                             .heads = kHeads,
                                             .kv_heads = kHeads,
                                             .scale = 0.125f,
                                             .dropout = dropout});
              });
    }
  }

  // The hops of ring attention over two ranks, in zigzag order: to the rank's
  // own keys; to those of the next, which the later half of the queries sees;
  // to those of the one before, of which all see the earlier half. What is
  // found is added to what earlier hops have found.
  void AttentionHops(DType dtype) {
    constexpr int64_t kHalf = kTime / 2;
    const SequenceRows first = {
        .first = 0, .first_count = kHalf, .second = 3 * kHalf};
    const SequenceRows second = {
        .first = kHalf, .first_count = kHalf, .second = 2 * kHalf};
    AttentionHop("own keys", dtype, {2 * kTime, first, first});
    AttentionHop("keys of the next", dtype, {2 * kTime, first, second});
    AttentionHop("keys of the one before", dtype, {2 * kTime, second, first});
  }

  void AttentionHop(const std::string& keys, DType dtype,
                    const AttentionPart& part) {
    const Tensor q = New({1, kTime, kWidth}, dtype);
    const Tensor k = New({1, kTime, kWidth}, dtype);
    const Tensor v = New({1, kTime, kWidth}, dtype);
    const Tensor o = New({1, kTime, kWidth}, dtype);
    const Tensor d_o = New({1, kTime, kWidth}, dtype);
    const Tensor sum = New({1, kTime, kWidth});
    const Tensor dq = New({1, kTime, kWidth});
    const Tensor dk = New({1, kTime, kWidth}, dtype);
    const Tensor dv = New({1, kTime, kWidth}, dtype);
    const Tensor logsumexp = New({1, kHeads, kTime});
    double seen = 0;
    for (int64_t i = 0; i < kTime; ++i) seen += KeysSeen(part, kTime, i);
    const double product = 2.0 * seen * kWidth;
    Compute("attention to " + keys, 2 * product, [&] {
      Attention(*device_, {.q = q,
                           .k = k,
                           .v = v,
                           .o = sum,
                           .o_before = sum,
                           .logsumexp = logsumexp,
                           .heads = kHeads,
                           .kv_heads = kHeads,
                           .scale = 0.125f,
                           .part = part});
    });
    Compute("backward", 5 * product, [&] {
      AttentionBackward(*device_, {.q = q,
                                   .k = k,
                                   .v = v,
                                   .o = o,
                                   .logsumexp = logsumexp,
                                   .d_o = d_o,
                                   .dq = dq,
                                   .dk = dk,
                                   .dv = dv,
                                   .dq_before = dq,
                                   .heads = kHeads,
                                   .kv_heads = kHeads,
                                   .scale = 0.125f,
                                   .part = part});
    });
  }

  void Norms() {
    const Tensor x = New({kTime, kWidth}), residual = New({kTime, kWidth});
    const Tensor sum = New({kTime, kWidth}), y = New({kTime, kWidth});
    const Tensor gamma = New({kWidth}), beta = New({kWidth});
    const Tensor mean = New({kTime}), rstd = New({kTime});
    const double bytes = static_cast<double>(x.bytes());
    Memory("residual + layer norm", 4 * bytes, [&] {
      LayerNorm(*device_, {.x = x,
                           .residual = residual,
                           .sum = sum,
                           .gamma = gamma,
                           .beta = beta,
                           .y = y,
                           .mean = mean,
                           .rstd = rstd});
    });
    Memory("dropout + residual + layer norm", 4 * bytes, [&] {
      LayerNorm(*device_, {.x = x,
                           .residual = residual,
                           .sum = sum,
                           .dropout = {.probability = 0.1f},
                           .gamma = gamma,
                           .beta = beta,
                           .y = y,
                           .mean = mean,
                           .rstd = rstd});
    });
    Memory("layer norm backward input", 4 * bytes, [&] {
      LayerNormBackwardInput(*device_, {.dy = x,
                                        .s = sum,
                                        .gamma = gamma,
                                        .mean = mean,
                                        .rstd = rstd,
                                        .residual_gradient = residual,
                                        .dx = y});
    });
    Memory("layer norm backward weight", 2 * bytes, [&] {
      LayerNormBackwardWeight(*device_, {.dy = x,
                                         .s = sum,
                                         .mean = mean,
                                         .rstd = rstd,
                                         .dgamma = gamma,
                                         .dbeta = beta});
    });
    Memory("dropout", 2 * bytes, [&] {
      ApplyDropout(*device_, {.x = x, .y = y, .mask = {.probability = 0.1f}});
    });
  }

  void Activations() {
    const Tensor x = New({kTime, kHidden}), y = New({kTime, kHidden});
    const Tensor bias = New({kHidden});
    const double bytes = static_cast<double>(x.bytes());
    Memory("gelu", 2 * bytes, [&] { Gelu(*device_, {.x = x, .y = y}); });
    Memory("gelu backward", 3 * bytes,
           [&] { GeluBackward(*device_, {.x = x, .dy = y, .dx = y}); });
    Memory("bias gradient", bytes,
           [&] { BiasGradient(*device_, {.dy = x, .db = bias}); });
  }

  void Losses() {
    const Tensor logits = New({kTime, kVocabulary});
    const Tensor targets = New({kTime}, DType::kI32);
    const Tensor loss = New({1}, DType::kF64);
    Memory("cross entropy and gradient",
           3.0 * static_cast<double>(logits.bytes()), [&] {
             CrossEntropy(*device_, {.logits = logits,
                                     .targets = targets,
                                     .loss_sum = loss,
                                     .gradient = true});
           });
  }

  void Optimizers() {
    const int64_t n = 1 << 24;
    const Tensor w = New({n}), g = New({n}), m = New({n}), v = New({n});
    Fill(*device_, {.x = v, .value = 1.0f});
    const Tensor norm = New({1}, DType::kF64);
    const double bytes = static_cast<double>(w.bytes());
    Memory("adamw, zeroing gradients", 8 * bytes, [&] {
      AdamW(*device_, {.weights = w,
                       .gradients = g,
                       .first_moment = m,
                       .second_moment = v,
                       .learning_rate = 1e-3f,
                       .zero_gradients = true});
    });
    Memory("sum of squares", bytes,
           [&] { SumOfSquares(*device_, {.x = w, .result = norm}); });
    Memory("add", 3 * bytes, [&] { Add(*device_, {.x = w, .y = g}); });
  }

  std::unique_ptr<Device> device_;
  std::vector<std::unique_ptr<void, std::function<void(void*)>>> memory_;
  double product_rate_ = 0;
  double copy_rate_ = 0;
};

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : troupe::UsableCoreCount();
  troupe::MachineSpan machine(threads);
  troupe::Bench(threads).Run();
  std::printf("%s\n", machine.Line().c_str());
}
