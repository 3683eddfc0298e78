// The C++ type of a tensor of activations or parameters, found out once for
// each call of an op; the kernels are templates on it.
#ifndef TROUPE_OPS_ACTIVATION_TYPE_H_
#define TROUPE_OPS_ACTIVATION_TYPE_H_

#include <cstdint>
#include <utility>

#include "ops/tensor.h"
#include "proto/base/bf16.h"
#include "proto/base/check.h"
#include "proto/base/fp16.h"

namespace troupe {

// run.operator()<T>() with T the type of f32, bf16 or fp16 elements:
//
//   WithActivationType(args.x.dtype(), [&]<typename T>() {
//     cpu.loops<T>().gelu(args.x.data<T>(), args.y.data<T>(), n);
//   });
template <typename Run>
void WithActivationType(DType dtype, Run&& run) {
  switch (dtype) {
    case DType::kF32:
      return std::forward<Run>(run).template operator()<float>();
    case DType::kBF16:
      return std::forward<Run>(run).template operator()<uint16_t>();
    case DType::kF16:
      return std::forward<Run>(run).template operator()<Fp16>();
    default:
      CHECK(false) << "activations of " << DTypeName(dtype);
  }
}

// run.operator()<T, G>(): T the type of parameters, f32 where they are left
// out, and G that of their gradients, f32 or T.
template <typename Run>
void WithTypes(const Tensor& parameters, const Tensor& gradients,
               const Run& run) {
  const DType type = parameters.defined() ? parameters.dtype() : DType::kF32;
  WithActivationType(type, [&]<typename T>() {
    if (gradients.dtype() == DType::kF32) {
      run.template operator()<T, float>();
    } else {
      run.template operator()<T, T>();
    }
  });
}

// The number that an element holds, and the element that holds a number.
constexpr float FromElement(float x) { return x; }
constexpr float FromElement(uint16_t bits) { return FromBF16(bits); }
constexpr float FromElement(Fp16 x) { return FromFP16(x.bits); }
template <typename T>
constexpr T ToElement(float x);
template <>
constexpr float ToElement<float>(float x) {
  return x;
}
template <>
constexpr uint16_t ToElement<uint16_t>(float x) {
  return ToBF16(x);
}
template <>
constexpr Fp16 ToElement<Fp16>(float x) {
  return {ToFP16(x)};
}

// Where the elements of a tensor begin that may be left out, or null.
template <typename T>
T* DataFrom(const Tensor& t, int64_t begin) {
  return t.defined() ? t.data<T>() + begin : nullptr;
}

}  // namespace troupe

#endif  // TROUPE_OPS_ACTIVATION_TYPE_H_
