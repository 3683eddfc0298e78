#include "ops/cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "ops/cpu/cpu_device.h"
#include "ops/cpu/kernels.h"

namespace troupe::cpu {
namespace {

// Of a row, of all the vocabulary or of the columns here.
struct Softmax {
  float largest;
  double sum;  // of exp(logit - largest)
  double at_target;
};

// Where the row's target is among the columns here, or -1.
template <typename Args>
int64_t TargetColumn(const Args& args, int32_t target) {
  CHECK(target >= -1 && target < args.vocabulary)
      << "target " << target << " of " << args.vocabulary;
  const int64_t at = target - args.first_column;
  return target >= 0 && at >= 0 && at < args.columns ? at : -1;
}

template <typename T>
Softmax OfColumns(const CpuDevice& cpu, const T* logits, int64_t columns,
                  int64_t target) {
  Softmax row;
  row.at_target = target < 0 ? 0 : FromElement(logits[target]);
  cpu.loops<T>().softmax_sum(logits, columns, &row.largest, &row.sum);
  return row;
}

// In the order of the ranks, so that all of them find the same.
Softmax OfParts(const Tensor& parts, int64_t row) {
  const int64_t ranks = parts.dim(0), stride = parts.dim(1) * 3;
  const float* first = parts.data<float>() + row * 3;
  Softmax all{first[0], 0, 0};
  for (int64_t r = 1; r < ranks; ++r) {
    all.largest = std::max(all.largest, first[r * stride]);
  }
  for (int64_t r = 0; r < ranks; ++r) {
    const float* part = first + r * stride;
    all.sum += part[1] * std::exp(double{part[0]} - all.largest);
    all.at_target += part[2];
  }
  return all;
}

// Overwrites the logits of the columns here.
template <typename T>
void Gradient(const CpuDevice& cpu, const CrossEntropyArgs& args,
              const Softmax& row, T* logits, int64_t target) {
  const float at_target = target < 0 ? 0 : FromElement(logits[target]);
  const float scale = static_cast<float>(args.gradient_scale / row.sum);
  cpu.loops<T>().exp_scaled(logits, args.columns, row.largest, scale);
  cpu.loops<T>().fill(logits + args.columns,
                      args.logits.columns() - args.columns, 0.0f);
  if (target < 0) return;
  // Once more in f32, so that the difference is rounded once.
  float probability = at_target;
  cpu.loops<float>().exp_scaled(&probability, 1, row.largest, scale);
  logits[target] = ToElement<T>(probability - args.gradient_scale);
}

// The loss of one row; overwrites it with the gradient if asked.
template <typename T>
double Row(const CpuDevice& cpu, const CrossEntropyArgs& args, int64_t row,
           T* logits, int32_t target) {
  const int64_t at = TargetColumn(args, target);
  if (target == -1) {
    if (args.gradient) {
      cpu.loops<T>().fill(logits, args.logits.columns(), 0.0f);
    }
    return 0;
  }
  const Softmax softmax = args.parts.defined()
                              ? OfParts(args.parts, row)
                              : OfColumns(cpu, logits, args.columns, at);
  if (args.gradient) Gradient(cpu, args, softmax, logits, at);
  return std::log(softmax.sum) + (softmax.largest - softmax.at_target);
}

// Row by row in their order, as the sum of all rows is.
void AddSequences(const CrossEntropyArgs& args, const double* row_losses) {
  if (!args.sequence_losses.defined()) return;
  const int32_t* targets = args.targets.data<int32_t>();
  double* losses = args.sequence_losses.data<double>();
  double* counts = args.sequence_counts.data<double>();
  const int64_t first = args.sequences.Of(0);
  for (int64_t row = 0; row < args.logits.rows(); ++row) {
    if (targets[row] == -1) continue;
    const int64_t sequence = args.sequences.Of(row) - first;
    losses[sequence] += row_losses[row];
    counts[sequence] += 1;
  }
}

}  // namespace

void CrossEntropy(Device& device, const CrossEntropyArgs& args) {
  CpuDevice& cpu = CpuDevice::From(device);
  const int64_t rows = args.logits.rows();
  const int64_t stride = args.logits.RowStride();
  const int32_t* targets = args.targets.data<int32_t>();
  float* losses = DataFrom<float>(args.losses, 0);
  ScratchPool::Block scratch = cpu.scratch().Take(rows * sizeof(double));
  double* row_losses = scratch.as<double>();
  WithActivationType(args.logits.dtype(), [&]<typename T>() {
    T* logits = args.logits.data<T>();
    cpu.ForRows(rows, args.logits.columns(), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        row_losses[row] =
            Row(cpu, args, row, logits + row * stride, targets[row]);
      }
    });
  });
  if (!args.counts) return;
  double sum = 0;
  for (int64_t row = 0; row < rows; ++row) {
    sum += row_losses[row];
    if (losses != nullptr) losses[row] = static_cast<float>(row_losses[row]);
  }
  *args.loss_sum.data<double>() += sum;
  if (args.count.defined()) {
    *args.count.data<double>() +=
        static_cast<double>(rows - std::count(targets, targets + rows, -1));
  }
  AddSequences(args, row_losses);
}

void CrossEntropyParts(Device& device, const CrossEntropyPartsArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  const int64_t stride = args.logits.RowStride();
  const int32_t* targets = args.targets.data<int32_t>();
  float* parts = args.parts.data<float>();
  WithActivationType(args.logits.dtype(), [&]<typename T>() {
    const T* logits = args.logits.data<T>();
    cpu.ForRows(args.logits.rows(), args.logits.columns(),
                [&](int64_t begin, int64_t end) {
                  for (int64_t row = begin; row < end; ++row) {
                    const Softmax mine =
                        OfColumns(cpu, logits + row * stride, args.columns,
                                  TargetColumn(args, targets[row]));
                    parts[row * 3] = mine.largest;
                    parts[row * 3 + 1] = static_cast<float>(mine.sum);
                    parts[row * 3 + 2] = static_cast<float>(mine.at_target);
                  }
                });
  });
}

}  // namespace troupe::cpu
