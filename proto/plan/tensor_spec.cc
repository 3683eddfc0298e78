#include "proto/plan/tensor_spec.h"

#include <algorithm>

#include "proto/plan/precision.h"

namespace troupe {

Dim DimOf(std::initializer_list<DimSection> sections) {
  Dim dim;
  for (const DimSection& section : sections) {
    Dim::Section& added = *dim.add_sections();
    added.set_kind(section.kind);
    added.set_count(section.count);
    added.set_width(section.width);
  }
  return dim;
}

int64_t SectionSize(const Dim::Section& section) {
  return section.count() * section.width();
}

int64_t DimSize(const Dim& dim) {
  int64_t size = 0;
  for (const Dim::Section& section : dim.sections()) {
    size += SectionSize(section);
  }
  return size;
}

std::vector<int64_t> DimsOf(const TensorSpec& tensor) {
  std::vector<int64_t> dims;
  for (const Dim& dim : tensor.dims()) dims.push_back(DimSize(dim));
  return dims;
}

int64_t ColumnsOf(const TensorSpec& tensor) {
  return DimSize(tensor.dims(tensor.dims_size() - 1));
}

int64_t RowsOf(const TensorSpec& tensor) {
  int64_t rows = 1;
  for (int i = 0; i + 1 < tensor.dims_size(); ++i) {
    rows *= DimSize(tensor.dims(i));
  }
  return rows;
}

int64_t ElementsOf(const TensorSpec& tensor) {
  return RowsOf(tensor) * ColumnsOf(tensor);
}

int64_t RowStrideOf(const TensorSpec& tensor) {
  const int64_t alignment = std::max<int64_t>(1, tensor.row_alignment());
  return (ColumnsOf(tensor) + alignment - 1) / alignment * alignment;
}

int64_t BytesOf(const TensorSpec& tensor) {
  return RowsOf(tensor) * RowStrideOf(tensor) * BytesOfElement(tensor.dtype());
}

}  // namespace troupe
