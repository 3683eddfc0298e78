#include "ops/embedding.h"

#include "ops/check_tensor.h"
#include "ops/device.h"
#include "ops/kernel_table.h"

namespace troupe {
namespace {

void CheckEmbedding(const Tensor& tokens, const Tensor& y, const Tensor& wte,
                    const Tensor& wpe, DType table_dtype,
                    int64_t first_position) {
  CHECK_DTYPE(tokens, DType::kI32);
  CHECK(tokens.rank() == 2 && tokens.dense()) << tokens.ShapeString();
  CHECK_DENSE_ACTIVATION(y);
  CHECK(y.rank() == 3 && y.dim(0) == tokens.dim(0) && y.dim(1) == tokens.dim(1))
      << y.ShapeString() << " for tokens " << tokens.ShapeString();
  if (wte.defined()) {
    CHECK_DTYPE(wte, table_dtype);
    CHECK(wte.dense() && wte.rank() == 2 && wte.dim(1) == y.dim(2))
        << wte.ShapeString();
  }
  if (wpe.defined()) {
    CHECK_DTYPE(wpe, table_dtype);
    CHECK(wpe.dense() && wpe.rank() == 2 && wpe.dim(1) == y.dim(2))
        << wpe.ShapeString();
    CHECK(first_position >= 0 && first_position + tokens.dim(1) <= wpe.dim(0))
        << "positions from " << first_position << " for tokens "
        << tokens.ShapeString() << " in " << wpe.ShapeString();
  }
}

}  // namespace

void Embedding(Device& device, const EmbeddingArgs& args) {
  CHECK(args.wte.defined());
  CheckEmbedding(args.tokens, args.y, args.wte, args.wpe, args.y.dtype(),
                 args.first_position);
  device.kernels().embedding(device, args);
}

void EmbeddingBackward(Device& device, const EmbeddingBackwardArgs& args) {
  CheckEmbedding(args.tokens, args.dy, args.dwte, args.dwpe, DType::kF32,
                 args.first_position);
  device.kernels().embedding_backward(device, args);
}

}  // namespace troupe
