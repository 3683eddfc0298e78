#include "ops/embedding.h"

#include "ops/check_tensor.h"
#include "ops/device.h"
#include "ops/documents.h"
#include "ops/kernel_table.h"

namespace troupe {
namespace {

// Forward and backward name their tensors differently; the rest is the same.
template <typename Args>
void CheckEmbedding(const Args& args, const Tensor& y, const Tensor& wte,
                    const Tensor& wpe) {
  const Tensor& tokens = args.tokens;
  const int64_t first_position = args.first_position;
  CHECK_DTYPE(tokens, DType::kI32);
  CHECK(tokens.rank() == 2 && tokens.dense()) << tokens.ShapeString();
  CHECK_DENSE_ACTIVATION(y);
  CHECK(y.rank() == 3 && y.dim(0) == tokens.dim(0) && y.dim(1) == tokens.dim(1))
      << y.ShapeString() << " for tokens " << tokens.ShapeString();
  if (wte.defined()) {
    CHECK(wte.dense() && wte.rank() == 2 && wte.dim(1) == y.dim(2))
        << wte.ShapeString();
  }
  CHECK(args.first_token >= 0 && args.vocabulary >= 0 &&
        (args.vocabulary > 0 || args.first_token == 0))
      << "rows from token " << args.first_token << " in a vocabulary of "
      << args.vocabulary << "; a part of a table needs all ranks' vocabulary";
  if (wpe.defined()) {
    CHECK(wpe.dense() && wpe.rank() == 2 && wpe.dim(1) == y.dim(2))
        << wpe.ShapeString();
    CHECK(first_position >= 0 && first_position + tokens.dim(1) <= wpe.dim(0))
        << "positions from " << first_position << " for tokens "
        << tokens.ShapeString() << " in " << wpe.ShapeString();
  }
  CheckDocuments(args.documents, tokens.dim(0), first_position + tokens.dim(1));
}

}  // namespace

void Embedding(Device& device, const EmbeddingArgs& args) {
  CHECK_DTYPE(args.wte, args.y.dtype());
  if (args.wpe.defined()) CHECK_DTYPE(args.wpe, args.y.dtype());
  CheckEmbedding(args, args.y, args.wte, args.wpe);
  device.kernels().embedding(device, args);
}

void EmbeddingBackward(Device& device, const EmbeddingBackwardArgs& args) {
  CheckEmbedding(args, args.dy, args.dwte, args.dwpe);
  for (const Tensor& table : {args.dwte, args.dwpe}) {
    if (!table.defined()) continue;
    CHECK_GRADIENT(table, args.dy.dtype(), table.elements());
  }
  device.kernels().embedding_backward(device, args);
}

}  // namespace troupe
