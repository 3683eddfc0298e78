#include "worker/collective/comm_buffer.h"

#include "proto/base/check.h"

namespace troupe {

CommBuffer CommBuffer::Slice(int64_t begin, int64_t end) const {
  CHECK(0 <= begin && begin <= end && end <= elements)
      << "[" << begin << ", " << end << ") of " << elements;
  return {static_cast<char*>(data) + begin * DTypeBytes(element), end - begin,
          element};
}

namespace {
template <typename T>
CommBuffer View(absl::Span<T> values, DType element) {
  return {values.data(), static_cast<int64_t>(values.size()), element};
}
}  // namespace

CommBuffer CommBuffer::Of(absl::Span<float> values) {
  return View(values, DType::kF32);
}
CommBuffer CommBuffer::Of(absl::Span<double> values) {
  return View(values, DType::kF64);
}
CommBuffer CommBuffer::Of(absl::Span<int32_t> values) {
  return View(values, DType::kI32);
}
CommBuffer CommBuffer::Of(absl::Span<int64_t> values) {
  return View(values, DType::kI64);
}
CommBuffer CommBuffer::Of(absl::Span<uint16_t> bf16) {
  return View(bf16, DType::kBF16);
}
CommBuffer CommBuffer::Of(absl::Span<char> bytes) {
  return View(bytes, DType::kU8);
}

}  // namespace troupe
