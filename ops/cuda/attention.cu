#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ops/activation_type.h"
#include "ops/attention.h"
#include "ops/cuda/attention_by_cudnn.h"
#include "ops/cuda/attention_kernels.h"
#include "ops/cuda/attention_limits.h"
#include "ops/cuda/cuda_device.h"
#include "ops/cuda/kernels.h"
#include "ops/cuda/scratch.h"

namespace troupe::cuda {
namespace {

// Rows may be copied 16 bytes at a time.
bool Vectors(const Tensor& t, int head_dim) {
  const size_t element = DTypeBytes(t.dtype());
  const auto whole = [](size_t bytes) { return bytes % 16 == 0; };
  return whole(reinterpret_cast<uintptr_t>(t.raw())) &&
         whole(t.stride(0) * element) && whole(t.stride(1) * element) &&
         whole(head_dim * element);
}

template <typename T>
HeadsOf<T> Heads(const Tensor& t, int head_dim) {
  return {.data = t.data<std::remove_const_t<T>>(),
          .sample_stride = t.stride(0),
          .row_stride = t.stride(1),
          .length = static_cast<int>(t.dim(1)),
          .vectors = Vectors(t, head_dim)};
}

template <typename T>
ResultOfHeads<T> Result(const Tensor& t, const Tensor& before, int head_dim) {
  ResultOfHeads<T> result = {};
  if (t.dtype() == DTypeOf<T>::kValue) {
    result.rounded = Heads<T>(t, head_dim);
  } else {
    result.whole = Heads<float>(t, head_dim);
  }
  if (before.defined()) result.before = Heads<const float>(before, head_dim);
  return result;
}

DropoutOfHeads Dropout(const AttentionDropout& dropout, int heads) {
  const int64_t total = dropout.total_heads == 0 ? heads : dropout.total_heads;
  // PhiloxUniform(bits) >= p  <=>  bits >> 8 >= p * 2^24, exactly.
  const double threshold = std::ceil(double{dropout.probability} * 16777216.0);
  return {.stream = dropout.stream,
          .threshold = static_cast<uint32_t>(threshold),
          .keep_scale = 1.0f / (1.0f - dropout.probability),
          .first_head = dropout.first_sample * total + dropout.first_head,
          .total_heads = total};
}

// What forward and backward tell their kernels alike.
template <typename T, typename Args>
RawAttention<T> Common(const Args& args) {
  const int head_dim = static_cast<int>(args.q.dim(2) / args.heads);
  RawAttention<T> raw = {};
  raw.q = Heads<const T>(args.q, head_dim);
  raw.k = Heads<const T>(args.k, head_dim);
  raw.v = Heads<const T>(args.v, head_dim);
  if (args.logsumexp.defined()) {
    raw.logsumexp = args.logsumexp.template data<float>();
  }
  raw.batch = static_cast<int>(args.q.dim(0));
  raw.heads = args.heads;
  raw.kv_heads = args.kv_heads;
  raw.head_dim = head_dim;
  raw.scale = args.scale;
  raw.part = args.part;
  raw.dropout = Dropout(args.dropout, args.heads);
  return raw;
}

// Whether the kernels go so far, on this GPU.
template <typename Args>
bool CheckHeadDim(CudaDevice& cuda, const Args& args) {
  const DType type = args.q.dtype();
  const int64_t head_dim = args.q.dim(2) / args.heads;
  const int64_t value_dim = args.v.dim(2) / args.kv_heads;
  if (value_dim != head_dim) {
    return cuda.Check(absl::UnimplementedError(absl::StrCat(
        "attention on ", cuda.Describe(), " takes values as wide as keys, not ",
        value_dim, " columns beside ", head_dim, "; use workers on CPUs")));
  }
  const int most = AttentionHeadDimMax(type, cuda.shared_bytes_max());
  if (head_dim <= most) return true;
  return cuda.Check(absl::UnimplementedError(
      absl::StrCat("attention in ", DTypeName(type), " on ", cuda.Describe(),
                   " takes heads of up to ", most, " dims, not ", head_dim,
                   "; use more heads, or workers on CPUs")));
}

template <typename T>
size_t SharedBytes(int head_dim) {
  return std::max({SharedBytesOfForward<T>(head_dim),
                   SharedBytesOfPartsForward<T>(head_dim),
                   SharedBytesOfGradientOfQueries<T>(head_dim),
                   SharedBytesOfGradientsOfKeys<T>(head_dim)});
}

template <typename T>
void Forward(CudaDevice& cuda, const AttentionArgs& args) {
  RawAttention<T> raw = Common<T>(args);
  raw.result = Result<T>(args.o, args.o_before, raw.head_dim);
  if (!LaunchPartsForward(cuda, raw)) LaunchForward(cuda, raw);
}

template <typename T>
void Backward(CudaDevice& cuda, const AttentionBackwardArgs& args) {
  RawAttention<T> raw = Common<T>(args);
  raw.o = Heads<const T>(args.o, raw.head_dim);
  raw.d_o = Heads<const T>(args.d_o, raw.head_dim);
  raw.result = Result<T>(args.dq, args.dq_before, raw.head_dim);
  raw.dk = Result<T>(args.dk, args.dk_before, raw.head_dim);
  raw.dv = Result<T>(args.dv, args.dv_before, raw.head_dim);
  Scratch delta(cuda, args.logsumexp.bytes());
  raw.delta = delta.as<float>();
  LaunchDelta(cuda, raw);
  LaunchGradientOfQueries(cuda, raw);
  LaunchGradientsOfKeys(cuda, raw);
}

}  // namespace

size_t AttentionSharedBytes(DType type, int head_dim) {
  size_t bytes = 0;
  WithActivationType(type,
                     [&]<typename T>() { bytes = SharedBytes<T>(head_dim); });
  return bytes;
}

// Heads are padded to a quarter, half or all of the widest; what the wider need
// is not always more.
int AttentionHeadDimMax(DType type, size_t shared_bytes) {
  int most = 0;
  for (int dim = kAttentionHeadDimMax / 4; dim <= kAttentionHeadDimMax;
       dim *= 2) {
    if (AttentionSharedBytes(type, dim) > shared_bytes) break;
    most = dim;
  }
  return most;
}

void Attention(Device& device, const AttentionArgs& args) {
  CudaDevice& cuda = CudaDevice::From(device);
  if (RefusesDocuments(device, args.documents.defined())) return;
  if (!CheckHeadDim(cuda, args)) return;
  if (AttentionByCudnn(cuda, args)) return;
  WithActivationType(args.q.dtype(),
                     [&]<typename T>() { Forward<T>(cuda, args); });
}

void AttentionBackward(Device& device, const AttentionBackwardArgs& args) {
  CudaDevice& cuda = CudaDevice::From(device);
  if (RefusesDocuments(device, args.documents.defined())) return;
  if (!CheckHeadDim(cuda, args)) return;
  if (AttentionBackwardByCudnn(cuda, args)) return;
  WithActivationType(args.q.dtype(),
                     [&]<typename T>() { Backward<T>(cuda, args); });
}

}  // namespace troupe::cuda
