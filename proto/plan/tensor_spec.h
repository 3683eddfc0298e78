// Sizes of a unit's tensors.
#ifndef TROUPE_PROTO_PLAN_TENSOR_SPEC_H_
#define TROUPE_PROTO_PLAN_TENSOR_SPEC_H_

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "proto/unit.pb.h"

namespace troupe {

// A dim of sections: {{Dim::HEADS, 12, 64}, {Dim::KEY_VALUE_HEADS, 4, 64}}.
struct DimSection {
  Dim::Kind kind;
  int64_t count = 0;
  int64_t width = 1;
};
Dim DimOf(std::initializer_list<DimSection> sections);

// Elements of a section, and of all of them.
int64_t SectionSize(const Dim::Section& section);
int64_t DimSize(const Dim& dim);

std::vector<int64_t> DimsOf(const TensorSpec& tensor);

// Elements of the last dim, of all others together, and of all.
int64_t ColumnsOf(const TensorSpec& tensor);
int64_t RowsOf(const TensorSpec& tensor);
int64_t ElementsOf(const TensorSpec& tensor);

// Elements from one row to the next, gaps included.
int64_t RowStrideOf(const TensorSpec& tensor);

// Of memory, the gaps behind rows included.
int64_t BytesOf(const TensorSpec& tensor);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_TENSOR_SPEC_H_
