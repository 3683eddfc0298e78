#include "ops/tensor.h"

#include "absl/strings/str_cat.h"

namespace troupe {

Tensor::Tensor(void* data, DType dtype, std::initializer_list<int64_t> dims)
    : data_(data), dtype_(dtype), rank_(static_cast<int>(dims.size())) {
  CHECK(rank_ >= 1 && rank_ <= kRankMax) << "rank " << rank_;
  int i = 0;
  for (int64_t dim : dims) {
    CHECK_GE(dim, 0);
    dims_[i++] = dim;
  }
  int64_t stride = 1;
  for (i = rank_ - 1; i >= 0; --i) {
    strides_[i] = stride;
    stride *= dims_[i];
  }
  CHECK(data != nullptr || stride == 0) << ShapeString() << " at null";
}

int Tensor::Index(int index) const {
  const int i = index < 0 ? index + rank_ : index;
  CHECK(i >= 0 && i < rank_) << "dim " << index << " of " << ShapeString();
  return i;
}

int64_t Tensor::dim(int index) const { return dims_[Index(index)]; }

int64_t Tensor::stride(int index) const { return strides_[Index(index)]; }

int64_t Tensor::elements() const {
  if (rank_ == 0) return 0;
  int64_t count = 1;
  for (int i = 0; i < rank_; ++i) count *= dims_[i];
  return count;
}

bool Tensor::dense() const {
  int64_t expected = 1;
  for (int i = rank_ - 1; i >= 0; --i) {
    if (dims_[i] != 1 && strides_[i] != expected) return false;
    expected *= dims_[i];
  }
  return true;
}

int64_t Tensor::rows() const {
  const int64_t last = columns();
  if (last != 0) return elements() / last;
  int64_t count = 1;
  for (int i = 0; i < rank_ - 1; ++i) count *= dims_[i];
  return count;
}

int64_t Tensor::RowStride() const {
  int64_t stride = 0;  // of the last leading dim that is longer than 1
  int64_t merged = 1;  // how many rows those dims make
  for (int i = rank_ - 2; i >= 0; --i) {
    if (dims_[i] == 1) continue;
    if (stride == 0) stride = strides_[i];
    CHECK_EQ(strides_[i], stride * merged)
        << "the leading dims of " << ShapeString() << " do not merge";
    merged *= dims_[i];
  }
  return stride == 0 ? columns() : stride;
}

Tensor Tensor::Slice(int dim, int64_t begin, int64_t end) const {
  const int i = Index(dim);
  CHECK(0 <= begin && begin <= end && end <= dims_[i])
      << "[" << begin << ", " << end << ") in dim " << dim << " of "
      << ShapeString();
  Tensor slice = *this;
  slice.dims_[i] = end - begin;
  slice.data_ = static_cast<char*>(data_) +
                begin * strides_[i] * static_cast<int64_t>(DTypeBytes(dtype_));
  return slice;
}

Tensor Tensor::Front() const {
  CHECK(rank_ >= 2 && dims_[0] > 0) << ShapeString();
  Tensor front = *this;
  front.rank_ = rank_ - 1;
  for (int i = 0; i < front.rank_; ++i) {
    front.dims_[i] = dims_[i + 1];
    front.strides_[i] = strides_[i + 1];
  }
  return front;
}

Tensor Tensor::View(std::initializer_list<int64_t> dims) const {
  CHECK(dense()) << "a view of " << ShapeString() << ", which is not dense";
  const Tensor view(data_, dtype_, dims);
  CHECK_EQ(view.elements(), elements())
      << view.ShapeString() << " of " << ShapeString();
  return view;
}

Tensor Tensor::At(void* data) const {
  Tensor there = *this;
  there.data_ = data;
  return there;
}

bool Tensor::SameShape(const Tensor& other) const {
  if (rank_ != other.rank_) return false;
  for (int i = 0; i < rank_; ++i) {
    if (dims_[i] != other.dims_[i]) return false;
  }
  return true;
}

std::string Tensor::ShapeString() const {
  std::string text = absl::StrCat(DTypeName(dtype_), "[");
  for (int i = 0; i < rank_; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", dims_[i]);
  }
  return text + "]";
}

}  // namespace troupe
