// What communicators move: typed views of memory. A CommBuffer is a pointer, a
// count and a type; it owns nothing.
//
//   communicator.AllReduce(CommBuffer::Of(absl::MakeSpan(gradients)), ...);
#ifndef TROUPE_WORKER_COLLECTIVE_ELEMENT_H_
#define TROUPE_WORKER_COLLECTIVE_ELEMENT_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace troupe {

enum class Element : uint8_t { kF32, kF64, kI32, kI64, kBF16, kF16, kByte };

size_t ElementBytes(Element element);
const char* ElementName(Element element);  // "f32", ..., "byte"

// Whether its sums are taken in f32 and rounded once: bf16, fp16.
bool IsNarrow(Element element);

// A span of uint16_t is of bf16.
struct CommBuffer {
  void* data = nullptr;
  int64_t elements = 0;
  Element element = Element::kByte;

  size_t bytes() const { return elements * ElementBytes(element); }
  // Elements [begin, end).
  CommBuffer Slice(int64_t begin, int64_t end) const;

  static CommBuffer Of(absl::Span<float> values);
  static CommBuffer Of(absl::Span<double> values);
  static CommBuffer Of(absl::Span<int32_t> values);
  static CommBuffer Of(absl::Span<int64_t> values);
  static CommBuffer Of(absl::Span<uint16_t> bf16);
  static CommBuffer Of(absl::Span<char> bytes);
};

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_ELEMENT_H_
