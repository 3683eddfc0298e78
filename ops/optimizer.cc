#include "ops/optimizer.h"

#include <algorithm>

#include "ops/check_tensor.h"
#include "ops/device.h"
#include "ops/kernel_table.h"

namespace troupe {
namespace {

void CheckCopy(const Tensor& parameters, int64_t count) {
  if (!parameters.defined()) return;
  CHECK_DENSE_ACTIVATION(parameters);
  CHECK_EQ(parameters.elements(), count);
}

void CheckGradients(const Tensor& gradients, const Tensor& parameters,
                    int64_t count) {
  CHECK_GRADIENT(gradients,
                 parameters.defined() ? parameters.dtype() : DType::kF32,
                 count);
}

void CheckTurns(const std::vector<int64_t>& turns, int64_t count) {
  CHECK_LE(turns.size(), static_cast<size_t>(kDecayTurnsMax));
  CHECK(std::is_sorted(turns.begin(), turns.end()));
  CHECK(turns.empty() || (turns.front() >= 0 && turns.back() <= count))
      << turns.front() << " to " << turns.back() << " of " << count;
}

}  // namespace

void AdamW(Device& device, const AdamWArgs& args) {
  CHECK_DENSE_F32(args.weights);
  const int64_t n = args.weights.elements();
  CheckGradients(args.gradients, args.parameters, n);
  CHECK_F32_ELEMENTS(args.first_moment, n);
  CHECK_F32_ELEMENTS(args.second_moment, n);
  CheckCopy(args.parameters, n);
  CHECK_GE(args.step, 1);
  CheckTurns(args.decay_turns, n);
  device.kernels().adamw(device, args);
}

void Lion(Device& device, const LionArgs& args) {
  CHECK_DENSE_F32(args.weights);
  const int64_t n = args.weights.elements();
  CheckGradients(args.gradients, args.parameters, n);
  CHECK_F32_ELEMENTS(args.moment, n);
  CheckCopy(args.parameters, n);
  CheckTurns(args.decay_turns, n);
  device.kernels().lion(device, args);
}

void Sgd(Device& device, const SgdArgs& args) {
  CHECK_DENSE_F32(args.weights);
  const int64_t n = args.weights.elements();
  CheckGradients(args.gradients, args.parameters, n);
  CHECK_EQ(args.momentum_buffer.defined(), args.momentum != 0);
  if (args.momentum != 0) CHECK_F32_ELEMENTS(args.momentum_buffer, n);
  CheckCopy(args.parameters, n);
  CheckTurns(args.decay_turns, n);
  device.kernels().sgd(device, args);
}

}  // namespace troupe
