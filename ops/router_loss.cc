#include "ops/router_loss.h"

#include "ops/check_tensor.h"
#include "ops/device.h"
#include "ops/kernel_table.h"

namespace troupe {
namespace {

void CheckLoad(const Tensor& load, const TokenRows& rows,
               const Tensor& scores) {
  CHECK_DENSE_ACTIVATION(load);
  const int64_t n = scores.rows();
  CHECK(load.columns() == scores.columns() &&
        (n == 0 || rows.Of(n - 1) < load.rows()))
      << "load is " << load.ShapeString() << ", of scores "
      << scores.ShapeString();
}

}  // namespace

void RouterLoss(Device& device, const RouterLossArgs& args) {
  CHECK_DENSE_F32(args.scores);
  const int64_t n = args.scores.rows(), e = args.scores.columns();
  CHECK_DTYPE(args.choices, DType::kI32);
  CHECK(args.choices.dense() && args.choices.rows() == n)
      << args.choices.ShapeString();
  if (args.load.defined()) {
    CheckLoad(args.load, args.rows, args.scores);
    CHECK_ELEMENTS(args.balance, DType::kF64, 1);
  }
  if (args.logsumexp.defined()) {
    CHECK_F32_ELEMENTS(args.logsumexp, n);
    CHECK_ELEMENTS(args.z, DType::kF64, 1);
  }
  CHECK_ELEMENTS(args.entropy, DType::kF64, 1);
  CHECK_ELEMENTS(args.rows_counted, DType::kF64, 1);
  CHECK_ELEMENTS(args.tokens, DType::kF64, e);
  device.kernels().router_loss(device, args);
}

void RouterLossBackward(Device& device, const RouterLossBackwardArgs& args) {
  CHECK_DENSE_F32(args.scores);
  if (args.d_scores.defined()) {
    CheckLoad(args.load, args.rows, args.scores);
    CHECK_LIKE(args.d_scores, args.scores);
  }
  if (args.d_logsumexp.defined()) {
    CHECK_F32_ELEMENTS(args.logsumexp, args.scores.rows());
    CHECK_F32_ELEMENTS(args.d_logsumexp, args.scores.rows());
  }
  device.kernels().router_loss_backward(device, args);
}

}  // namespace troupe
