#include "worker/collective/reduce.h"

#include <algorithm>

#include "proto/base/bf16.h"
#include "proto/base/check.h"
#include "proto/base/fp16.h"

namespace troupe {
namespace {

// Tiles that stay in the first cache while rows are added to them.
constexpr int64_t kTile = 2048;

// Their bits, apart from numbers.
struct BF16 {
  uint16_t bits;
};
struct FP16 {
  uint16_t bits;
};

float Load(BF16 value) { return FromBF16(value.bits); }
float Load(FP16 value) { return FromFP16(value.bits); }

void Store(float value, BF16& out) { out.bits = ToBF16(value); }
void Store(float value, FP16& out) { out.bits = ToFP16(value); }

template <typename T>
T Load(T value) {
  return value;
}
template <typename T>
void Store(T value, T& out) {
  out = value;
}

template <typename T>
struct Accumulator {
  using Type = T;
};
template <>
struct Accumulator<BF16> {
  using Type = float;
};
template <>
struct Accumulator<FP16> {
  using Type = float;
};

template <typename A>
A Larger(A a, A b) {
  return (b > a || b != b) ? b : a;
}

template <typename T, typename A>
void Accumulate(ReduceOp op, A* __restrict into, const T* __restrict from,
                int64_t count) {
  if (op == ReduceOp::kSum) {
    for (int64_t i = 0; i < count; ++i) into[i] = into[i] + Load(from[i]);
  } else {
    for (int64_t i = 0; i < count; ++i) {
      into[i] = Larger<A>(into[i], Load(from[i]));
    }
  }
}

template <typename T>
const T* At(CommBuffer buffer) {
  return static_cast<const T*>(buffer.data);
}

template <typename T>
void Rows(ReduceOp op, CommBuffer out, absl::Span<const CommBuffer> rows) {
  typename Accumulator<T>::Type tile[kTile];
  T* const result = static_cast<T*>(out.data);
  for (int64_t begin = 0; begin < out.elements; begin += kTile) {
    const int64_t count = std::min(kTile, out.elements - begin);
    const T* const first = At<T>(rows[0]) + begin;
    for (int64_t i = 0; i < count; ++i) tile[i] = Load(first[i]);
    for (const CommBuffer& row : rows.subspan(1)) {
      Accumulate(op, tile, At<T>(row) + begin, count);
    }
    for (int64_t i = 0; i < count; ++i) Store(tile[i], result[begin + i]);
  }
}

template <typename T>
void Into(ReduceOp op, CommBuffer into, CommBuffer from) {
  Accumulate(op, static_cast<T*>(into.data), At<T>(from), into.elements);
}

}  // namespace

void ReduceInto(ReduceOp op, CommBuffer into, CommBuffer from) {
  CHECK(into.element == from.element && into.elements == from.elements);
  switch (into.element) {
    case DType::kF32:
      return Into<float>(op, into, from);
    case DType::kF64:
      return Into<double>(op, into, from);
    case DType::kI32:
      return Into<int32_t>(op, into, from);
    case DType::kI64:
      return Into<int64_t>(op, into, from);
    case DType::kBF16:
    case DType::kF16:
      return ReduceRows(op, into, {into, from});
    case DType::kU8:
      CHECK(false) << "bytes cannot be reduced";
  }
}

void ReduceRows(ReduceOp op, CommBuffer out,
                absl::Span<const CommBuffer> rows) {
  CHECK(!rows.empty());
  for (const CommBuffer& row : rows) {
    CHECK(row.element == out.element && row.elements == out.elements);
  }
  switch (out.element) {
    case DType::kF32:
      return Rows<float>(op, out, rows);
    case DType::kF64:
      return Rows<double>(op, out, rows);
    case DType::kI32:
      return Rows<int32_t>(op, out, rows);
    case DType::kI64:
      return Rows<int64_t>(op, out, rows);
    case DType::kBF16:
      return Rows<BF16>(op, out, rows);
    case DType::kF16:
      return Rows<FP16>(op, out, rows);
    case DType::kU8:
      CHECK(false) << "bytes cannot be reduced";
  }
}

}  // namespace troupe
