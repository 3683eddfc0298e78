#include "worker/collective/element.h"

#include "proto/base/check.h"

namespace troupe {

size_t ElementBytes(Element element) {
  switch (element) {
    case Element::kF32:
    case Element::kI32:
      return 4;
    case Element::kF64:
    case Element::kI64:
      return 8;
    case Element::kBF16:
    case Element::kF16:
      return 2;
    case Element::kByte:
      return 1;
  }
  CHECK(false) << "element type " << static_cast<int>(element);
  return 0;
}

const char* ElementName(Element element) {
  switch (element) {
    case Element::kF32:
      return "f32";
    case Element::kF64:
      return "f64";
    case Element::kI32:
      return "i32";
    case Element::kI64:
      return "i64";
    case Element::kBF16:
      return "bf16";
    case Element::kF16:
      return "fp16";
    case Element::kByte:
      return "byte";
  }
  return "unknown";
}

bool IsNarrow(Element element) {
  return element == Element::kBF16 || element == Element::kF16;
}

CommBuffer CommBuffer::Slice(int64_t begin, int64_t end) const {
  CHECK(0 <= begin && begin <= end && end <= elements)
      << "[" << begin << ", " << end << ") of " << elements;
  return {static_cast<char*>(data) + begin * ElementBytes(element), end - begin,
          element};
}

namespace {
template <typename T>
CommBuffer View(absl::Span<T> values, Element element) {
  return {values.data(), static_cast<int64_t>(values.size()), element};
}
}  // namespace

CommBuffer CommBuffer::Of(absl::Span<float> values) {
  return View(values, Element::kF32);
}
CommBuffer CommBuffer::Of(absl::Span<double> values) {
  return View(values, Element::kF64);
}
CommBuffer CommBuffer::Of(absl::Span<int32_t> values) {
  return View(values, Element::kI32);
}
CommBuffer CommBuffer::Of(absl::Span<int64_t> values) {
  return View(values, Element::kI64);
}
CommBuffer CommBuffer::Of(absl::Span<uint16_t> bf16) {
  return View(bf16, Element::kBF16);
}
CommBuffer CommBuffer::Of(absl::Span<char> bytes) {
  return View(bytes, Element::kByte);
}

}  // namespace troupe
