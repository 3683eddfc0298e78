// How fast the grouped products of experts are, beside oneDNN's product of the
// same rows: all of them by one matrix in one call, and those of each expert by
// its matrix, a call for each, which is what a loop over experts would do. The
// last two numbers of a line are the ratios to both.
//
//   bazel run //tests/bench:grouped_bench -- [threads]
//
// 1,024 tokens, whose choices are drawn at random: evenly, and so that half of
// them are the first expert's. In bf16 too; where the processor has no
// instructions for it, oneDNN's rate is that of f32.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ops/cpu/device.h"
#include "ops/cpu/instruction_set.h"
#include "ops/grouped_matmul.h"
#include "ops/matmul.h"
#include "ops/reduce.h"
#include "proto/base/check.h"
#include "proto/base/cores.h"
#include "tests/bench/machine_span.h"

namespace troupe {
namespace {

constexpr int64_t kTokens = 1024;

struct Model {
  int64_t experts, choices, hidden, intermediate;
};

// The fastest of many runs of each, in seconds. They take turns, so that both
// see the same machine.
std::vector<double> Seconds(const std::vector<std::function<void()>>& bodies) {
  using Clock = std::chrono::steady_clock;
  const auto seconds = [](Clock::duration d) {
    return std::chrono::duration<double>(d).count();
  };
  std::vector<double> best(bodies.size(), 1e9);
  for (const auto& body : bodies) body();
  const auto start = Clock::now();
  do {
    for (size_t i = 0; i < bodies.size(); ++i) {
      const auto begin = Clock::now();
      bodies[i]();
      best[i] = std::min(best[i], seconds(Clock::now() - begin));
    }
  } while (seconds(Clock::now() - start) < 1);
  return best;
}

std::vector<int32_t> Offsets(const Model& model, bool even) {
  std::mt19937 generator(1);
  std::uniform_int_distribution<int64_t> uniform(0, model.experts - 1);
  std::vector<int32_t> offsets(model.experts + 1);
  for (int64_t row = 0; row < kTokens * model.choices; ++row) {
    const int64_t expert = even || row % 2 == 0 ? uniform(generator) : 0;
    ++offsets[expert + 1];
  }
  for (int64_t i = 0; i < model.experts; ++i) offsets[i + 1] += offsets[i];
  return offsets;
}

class Bench {
 public:
  explicit Bench(int threads) : device_(NewCpuDevice({.threads = threads})) {}

  void Run() {
    std::printf("%s\n%-42s%10s%10s%10s%8s%8s\n", device_->Describe().c_str(),
                "GFLOP/s", "grouped", "one call", "by turns", "ratios", "");
    for (const Model& model :
         {Model{8, 2, 768, 2048}, Model{64, 8, 768, 1024}}) {
      for (const DType dtype : {DType::kF32, DType::kBF16}) {
        for (const bool even : {true, false}) Experts(model, dtype, even);
      }
    }
  }

 private:
  Tensor New(std::initializer_list<int64_t> dims, DType dtype) {
    int64_t count = 1;
    for (int64_t dim : dims) count *= dim;
    absl::StatusOr<void*> memory = device_->Allocate(count * DTypeBytes(dtype));
    CHECK_OK(memory.status());
    memory_.emplace_back(*memory, [this](void* p) { device_->Free(p); });
    const Tensor tensor(*memory, dtype, dims);
    Fill(*device_, {.x = tensor, .value = 0.1f});
    return tensor;
  }

  void Experts(const Model& model, DType dtype, bool even) {
    std::printf("%ld experts, top %ld, hidden %ld, intermediate %ld, %s, %s\n",
                model.experts, model.choices, model.hidden, model.intermediate,
                DTypeName(dtype), even ? "even" : "half to one");
    offsets_ = Offsets(model, even);
    Products("gate", dtype, model, model.hidden, model.intermediate);
    Products("down", dtype, model, model.intermediate, model.hidden);
  }

  // The three products of a layer with weights [out, in].
  void Products(const std::string& name, DType dtype, const Model& model,
                int64_t in, int64_t out) {
    const int64_t rows = kTokens * model.choices;
    const bool instructions = InstructionSets().back().bf16_products;
    const DType theirs = instructions ? dtype : DType::kF32;
    const auto tensors = [&](DType type) {
      return Layer{New({rows, in}, type), New({rows, out}, type),
                   New({model.experts, out, in}, type),
                   New({model.experts, out, in}, DType::kF32)};
    };
    const Layer own = tensors(dtype), onednn = tensors(theirs);
    const Tensor offsets(offsets_.data(), DType::kI32, {model.experts + 1});
    Line(
        name + ", y = x W^T", own, onednn,
        [&, offsets](const Layer& l) {
          GroupedMatMul(*device_, {.a = l.x,
                                   .b = l.w,
                                   .c = l.y,
                                   .offsets = offsets,
                                   .transpose_b = true});
        },
        [&](const Layer& l) {
          MatMul(*device_, {.a = l.x, .b = l.w, .c = l.y, .transpose_b = true});
        });
    Line(
        name + ", dx = dy W", own, onednn,
        [&, offsets](const Layer& l) {
          GroupedMatMul(*device_,
                        {.a = l.y, .b = l.w, .c = l.x, .offsets = offsets});
        },
        [&](const Layer& l) {
          MatMul(*device_, {.a = l.y, .b = l.w, .c = l.x});
        });
    Line(
        name + ", dW += dy^T x", own, onednn,
        [&, offsets](const Layer& l) {
          GroupedWeightGradient(*device_, {.x = l.x,
                                           .dy = l.y,
                                           .offsets = offsets,
                                           .dw = l.dw,
                                           .accumulate = true});
        },
        [&](const Layer& l) {
          MatMul(*device_, {.a = l.y,
                            .b = l.x,
                            .c = l.dw,
                            .transpose_a = true,
                            .accumulate = true});
        });
    memory_.clear();
  }

  // Rows x and y of a linear layer; its experts' weights, or those of one.
  struct Layer {
    Tensor x, y, w, dw;

    Layer Of(int64_t expert, int64_t begin, int64_t end) const {
      return {x.Slice(0, begin, end), y.Slice(0, begin, end),
              w.Slice(0, expert, expert + 1).Front(),
              dw.Slice(0, expert, expert + 1).Front()};
    }
  };

  void Line(const std::string& name, const Layer& own, const Layer& onednn,
            const std::function<void(const Layer&)>& grouped,
            const std::function<void(const Layer&)>& product) {
    const std::vector<double> seconds =
        Seconds({[&] { grouped(own); },
                 [&] { product(onednn.Of(0, 0, onednn.x.rows())); },
                 [&] {
                   for (size_t i = 0; i + 1 < offsets_.size(); ++i) {
                     if (offsets_[i] == offsets_[i + 1]) continue;
                     product(onednn.Of(static_cast<int64_t>(i), offsets_[i],
                                       offsets_[i + 1]));
                   }
                 }});
    const double gflop = 2e-9 * static_cast<double>(own.x.elements()) *
                         static_cast<double>(own.y.columns());
    std::printf("  %-40s%10.1f%10.1f%10.1f%8.2f%8.2f\n", name.c_str(),
                gflop / seconds[0], gflop / seconds[1], gflop / seconds[2],
                seconds[1] / seconds[0], seconds[2] / seconds[0]);
  }

  std::unique_ptr<Device> device_;
  std::vector<std::unique_ptr<void, std::function<void(void*)>>> memory_;
  std::vector<int32_t> offsets_;
};

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : troupe::UsableCoreCount();
  troupe::MachineSpan machine(threads);
  troupe::Bench(threads).Run();
  std::printf("%s\n", machine.Line().c_str());
}
