// What communicators move: typed views of memory. A CommBuffer is a pointer, a
// count and a type; it owns nothing.
//
//   communicator.AllReduce(CommBuffer::Of(absl::MakeSpan(gradients)), ...);
#ifndef TROUPE_WORKER_COLLECTIVE_COMM_BUFFER_H_
#define TROUPE_WORKER_COLLECTIVE_COMM_BUFFER_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "ops/dtype.h"

namespace troupe {

// A span of uint16_t is of bf16.
struct CommBuffer {
  void* data = nullptr;
  int64_t elements = 0;
  DType element = DType::kU8;

  size_t bytes() const { return elements * DTypeBytes(element); }
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

#endif  // TROUPE_WORKER_COLLECTIVE_COMM_BUFFER_H_
