#include "ops/causal_softmax.h"

#include "ops/check_tensor.h"
#include "ops/device.h"
#include "ops/documents.h"
#include "ops/kernel_table.h"

namespace troupe {
namespace {

template <typename Args>
void CheckPlace(const Args& args) {
  const Tensor& y = args.y;
  const int64_t first_position = args.first_position;
  CHECK_DENSE_ACTIVATION(y);
  CHECK(y.rank() >= 2 && first_position >= 0 &&
        first_position + y.dim(y.rank() - 2) <= y.dim(y.rank() - 1))
      << y.ShapeString() << " from position " << first_position;
  CHECK_GT(args.scale, 0);
  if (!args.documents.defined()) return;
  const int64_t matrices = y.rows() / y.dim(y.rank() - 2);
  CheckDocuments(args.documents, args.documents.dim(0), y.columns());
  CHECK(args.documents.dim(0) > 0 && matrices % args.documents.dim(0) == 0)
      << args.documents.ShapeString() << " for " << y.ShapeString();
}

}  // namespace

void CausalSoftmax(Device& device, const CausalSoftmaxArgs& args) {
  CheckPlace(args);
  CHECK_STRIDED_LIKE(args.x, args.y);
  CHECK(args.x.dense()) << args.x.ShapeString() << " with gaps";
  device.kernels().causal_softmax(device, args);
}

void CausalSoftmaxBackward(Device& device,
                           const CausalSoftmaxBackwardArgs& args) {
  CheckPlace(args);
  for (const Tensor& gradient : {args.dy, args.dx}) {
    CHECK_STRIDED_LIKE(gradient, args.y);
    CHECK(gradient.dense()) << gradient.ShapeString() << " with gaps";
  }
  device.kernels().causal_softmax_backward(device, args);
}

}  // namespace troupe
