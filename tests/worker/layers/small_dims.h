// The tensors of the table of kinds: two sequences of five positions.
#ifndef TROUPE_TESTS_WORKER_LAYERS_SMALL_DIMS_H_
#define TROUPE_TESTS_WORKER_LAYERS_SMALL_DIMS_H_

#include <cstdint>
#include <vector>

#include "proto/plan/tensor_spec.h"
#include "proto/unit.pb.h"

namespace troupe {

inline constexpr int64_t kBatch = 2;
inline constexpr int64_t kLength = 5;
inline constexpr int64_t kHidden = 7;

inline std::vector<Dim> Rows() {
  return {DimOf({{Dim::BATCH, kBatch}}), DimOf({{Dim::SEQUENCE, kLength}})};
}

inline std::vector<Dim> With(const Dim& columns) {
  std::vector<Dim> dims = Rows();
  dims.push_back(columns);
  return dims;
}

inline std::vector<Dim> Columns(int64_t columns) {
  return With(DimOf({{Dim::HIDDEN, columns}}));
}

inline Op OfKind(Op::Kind kind) {
  Op op;
  op.set_kind(kind);
  return op;
}

}  // namespace troupe

#endif  // TROUPE_TESTS_WORKER_LAYERS_SMALL_DIMS_H_
