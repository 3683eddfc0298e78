// Documents that lie one after the other in a sequence, as ops that know
// positions are told of them: i32 [batch, positions], for each position of a
// sequence the position of the first token of its document. They never fall
// along a sequence, and none is past its own position.
#ifndef TROUPE_OPS_DOCUMENTS_H_
#define TROUPE_OPS_DOCUMENTS_H_

#include <cstdint>

#include "ops/tensor.h"

namespace troupe {

// CHECKs the shape of documents, where there are any: of `batch` sequences, and
// of no fewer than `positions` positions.
void CheckDocuments(const Tensor& documents, int64_t batch, int64_t positions);

}  // namespace troupe

#endif  // TROUPE_OPS_DOCUMENTS_H_
