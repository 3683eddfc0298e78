#include "ops/cuda/attention_by_cudnn.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <vector>

#include "ops/cuda/cudnn_attention.h"
#include "ops/cuda/scratch.h"
#include "proto/base/gpu_limits.h"

namespace troupe::cuda {
namespace {

using Ids = CudnnAttentionIds;
using Strides = CudnnAttentionShape::Strides;

template <typename Args>
int64_t HeadDimOf(const Args& args) {
  return args.q.dim(2) / args.heads;
}

// Whether rows begin at 16 bytes, as the graph says of all memory.
bool Aligned(std::initializer_list<const Tensor*> tensors) {
  constexpr int64_t kBytes = 16;
  return std::all_of(tensors.begin(), tensors.end(), [](const Tensor* t) {
    const auto element = static_cast<int64_t>(DTypeBytes(t->dtype()));
    return reinterpret_cast<uintptr_t>(t->raw()) % kBytes == 0 &&
           t->stride(0) * element % kBytes == 0 &&
           t->stride(1) * element % kBytes == 0;
  });
}

// All keys of a sequence, and its last queries.
bool IsWhole(const AttentionPart& part, int64_t q_length, int64_t kv_length) {
  return part.length == kv_length && part.keys.first == 0 &&
         part.keys.first_count >= kv_length &&
         part.queries.first == kv_length - q_length &&
         part.queries.first_count >= q_length;
}

// What both directions ask alike. Text that is generated keeps no logsumexp,
// and has another number of keys for each token: plans would be made for each.
template <typename Args>
bool Suits(const Args& args) {
  const int64_t q_length = args.q.dim(1), kv_length = args.k.dim(1);
  return args.q.dtype() != DType::kF32 && args.dropout.probability == 0 &&
         args.logsumexp.defined() && args.q.dim(0) > 0 &&
         CudnnTakesHeads(q_length, HeadDimOf(args)) &&
         IsWhole(args.part, q_length, kv_length) &&
         Aligned({&args.q, &args.k, &args.v, &args.o});
}

Strides StridesOf(const Tensor& t) {
  return {.sample = t.stride(0), .row = t.stride(1)};
}

template <typename Args>
CudnnAttentionShape ShapeOf(const Args& args) {
  return {.type = args.q.dtype(),
          .batch = args.q.dim(0),
          .heads = args.heads,
          .kv_heads = args.kv_heads,
          .q_length = args.q.dim(1),
          .kv_length = args.k.dim(1),
          .head_dim = HeadDimOf(args),
          .q = StridesOf(args.q),
          .k = StridesOf(args.k),
          .v = StridesOf(args.v),
          .o = StridesOf(args.o)};
}

// The numbers of a run, which its bindings point to.
struct Numbers {
  float scale = 1;
  float masked = -std::numeric_limits<float>::infinity();
  float one = 1;
  int32_t q_length = 0, kv_length = 0;
};

template <typename Args>
Numbers NumbersOf(const Args& args) {
  return {.scale = args.scale,
          .q_length = static_cast<int32_t>(args.q.dim(1)),
          .kv_length = static_cast<int32_t>(args.k.dim(1))};
}

// What both directions are given alike.
template <typename Args>
std::vector<CudnnBinding> BindingsOf(const Args& args, const Numbers& numbers) {
  std::vector<CudnnBinding> bindings = {{Ids::kQ, args.q.raw()},
                                        {Ids::kK, args.k.raw()},
                                        {Ids::kV, args.v.raw()},
                                        {Ids::kO, args.o.raw()},
                                        {Ids::kLogsumexp, args.logsumexp.raw()},
                                        {Ids::kScale, &numbers.scale},
                                        {Ids::kMasked, &numbers.masked}};
  if (numbers.q_length != numbers.kv_length) {
    bindings.push_back({Ids::kQLength, &numbers.q_length});
    bindings.push_back({Ids::kKvLength, &numbers.kv_length});
  }
  return bindings;
}

void Enqueue(CudaDevice& cuda, const CudnnPlan& plan,
             const std::vector<CudnnBinding>& bindings) {
  const Scratch workspace(cuda, plan.workspace_bytes);
  if (cuda.failed()) return;
  cuda.Check(cuda.cudnn_attention()->Enqueue(
      plan, bindings, workspace.as<void>(), cuda.stream()));
}

// Null: our own kernels do it.
const CudnnPlan* Plan(CudaDevice& cuda, const CudnnAttentionShape& shape) {
  return cuda.MakeCurrent() ? cuda.cudnn_attention()->Find(shape) : nullptr;
}

GpuAttentionShape WorkOf(const AttentionBackwardArgs& args) {
  return {.samples = args.q.dim(0),
          .heads = args.heads,
          .kv_heads = args.kv_heads,
          .q_length = args.q.dim(1),
          .kv_length = args.k.dim(1),
          .head_dim = HeadDimOf(args)};
}

// Of the sums of rows, which lie beside cuDNN's workspace.
int64_t DeltaBytes(const GpuAttentionShape& call) {
  return call.samples * call.heads * call.q_length *
         static_cast<int64_t>(sizeof(float));
}

// The samples from `sample` on, and of each the heads that read the keys from
// `kv_head` on.
AttentionBackwardArgs PartOf(const AttentionBackwardArgs& args,
                             const GpuAttentionShape& call, int64_t sample,
                             int64_t kv_head) {
  const int64_t head_dim = HeadDimOf(args);
  const int64_t sharing = args.heads / args.kv_heads;
  const auto slice = [&](const Tensor& t, int64_t columns) {
    return t.Slice(0, sample, sample + call.samples)
        .Slice(2, kv_head * columns, (kv_head + call.kv_heads) * columns);
  };
  const auto queries = [&](const Tensor& t) {
    return slice(t, sharing * head_dim);
  };
  const auto keys = [&](const Tensor& t) { return slice(t, head_dim); };
  AttentionBackwardArgs part = args;
  part.q = queries(args.q);
  part.o = queries(args.o);
  part.d_o = queries(args.d_o);
  part.dq = queries(args.dq);
  part.k = keys(args.k);
  part.v = keys(args.v);
  part.dk = keys(args.dk);
  part.dv = keys(args.dv);
  part.logsumexp =
      args.logsumexp.Slice(0, sample, sample + call.samples)
          .Slice(1, kv_head * sharing, (kv_head + call.kv_heads) * sharing);
  part.heads = static_cast<int>(call.heads);
  part.kv_heads = static_cast<int>(call.kv_heads);
  return part;
}

CudnnAttentionShape BackwardShapeOf(const AttentionBackwardArgs& args) {
  CudnnAttentionShape shape = ShapeOf(args);
  shape.backward = true;
  shape.d_o = StridesOf(args.d_o);
  shape.dq = StridesOf(args.dq);
  shape.dk = StridesOf(args.dk);
  shape.dv = StridesOf(args.dv);
  return shape;
}

void EnqueueBackward(CudaDevice& cuda, const CudnnPlan& plan,
                     const AttentionBackwardArgs& args) {
  const Numbers numbers = NumbersOf(args);
  const Scratch delta(cuda, args.logsumexp.elements() * sizeof(float));
  std::vector<CudnnBinding> bindings = BindingsOf(args, numbers);
  bindings.insert(bindings.end(), {{Ids::kDO, args.d_o.raw()},
                                   {Ids::kDQ, args.dq.raw()},
                                   {Ids::kDK, args.dk.raw()},
                                   {Ids::kDV, args.dv.raw()},
                                   {Ids::kDelta, delta.as<void>()},
                                   {Ids::kOne, &numbers.one}});
  Enqueue(cuda, plan, bindings);
}

bool InTypeOfQueries(const Tensor& q,
                     std::initializer_list<const Tensor*> results) {
  return std::all_of(results.begin(), results.end(), [&](const Tensor* result) {
    return result->dtype() == q.dtype();
  });
}

}  // namespace

bool AttentionByCudnn(CudaDevice& cuda, const AttentionArgs& args) {
  if (cuda.cudnn_attention() == nullptr || !Suits(args)) return false;
  if (args.o_before.defined() || !InTypeOfQueries(args.q, {&args.o})) {
    return false;
  }
  const CudnnPlan* const plan = Plan(cuda, ShapeOf(args));
  if (plan == nullptr) return false;
  const Numbers numbers = NumbersOf(args);
  Enqueue(cuda, *plan, BindingsOf(args, numbers));
  return true;
}

bool AttentionBackwardByCudnn(CudaDevice& cuda,
                              const AttentionBackwardArgs& args) {
  if (cuda.cudnn_attention() == nullptr || !Suits(args)) return false;
  if (args.dq_before.defined() || args.dk_before.defined() ||
      args.dv_before.defined() ||
      !InTypeOfQueries(args.q, {&args.dq, &args.dk, &args.dv}) ||
      !Aligned({&args.d_o, &args.dq, &args.dk, &args.dv})) {
    return false;
  }
  const GpuAttentionShape call = GpuAttentionCall(WorkOf(args));
  if (call.samples == 0) return false;
  const CudnnPlan* const plan =
      Plan(cuda, BackwardShapeOf(PartOf(args, call, 0, 0)));
  if (plan == nullptr ||
      plan->workspace_bytes + DeltaBytes(call) > GpuAttentionWorkBytes(call)) {
    return false;
  }
  for (int64_t sample = 0; sample < args.q.dim(0); sample += call.samples) {
    for (int64_t head = 0; head < args.kv_heads; head += call.kv_heads) {
      EnqueueBackward(cuda, *plan, PartOf(args, call, sample, head));
    }
  }
  return true;
}

}  // namespace troupe::cuda
