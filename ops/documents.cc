#include "ops/documents.h"

#include "ops/check_tensor.h"

namespace troupe {

void CheckDocuments(const Tensor& documents, int64_t batch, int64_t positions) {
  if (!documents.defined()) return;
  CHECK_DTYPE(documents, DType::kI32);
  CHECK(documents.rank() == 2 && documents.dense() &&
        documents.dim(0) == batch && documents.dim(1) >= positions)
      << "documents " << documents.ShapeString() << " of " << batch
      << " sequences of " << positions << " positions";
}

}  // namespace troupe
