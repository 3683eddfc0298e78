#include "ops/attention.h"

#include <algorithm>

#include "ops/cpu/cpu_device.h"
#include "ops/cpu/kernels.h"

namespace troupe::cpu {
namespace {

// Some neighbouring heads of a sample that read the same kv head.
struct Heads {
  int64_t sample;
  int first;
  int count;
  int kv_head;
};

// Columns of a head of queries and keys, and of one of values.
template <typename Args>
int HeadDim(const Args& args) {
  return static_cast<int>(args.q.dim(2) / args.heads);
}
template <typename Args>
int ValueDim(const Args& args) {
  return static_cast<int>(args.v.dim(2) / args.kv_heads);
}

// Where a column of a sample begins.
template <typename T>
T* At(const Tensor& t, int64_t sample, int64_t column) {
  return t.data<T>() + sample * t.stride(0) + column;
}

// The columns of a result from there on.
template <typename T>
RawResult<T> ResultAt(const Tensor& t, const Tensor& before, int64_t sample,
                      int64_t column) {
  RawResult<T> result = {};
  if (t.dtype() == DTypeOf<T>::kValue) {
    result.rounded = At<T>(t, sample, column);
  } else {
    result.whole = At<float>(t, sample, column);
  }
  result.stride = t.stride(1);
  if (before.defined()) {
    result.before = At<float>(before, sample, column);
    result.before_stride = before.stride(1);
  }
  return result;
}

// What forward and backward tell the loops about the heads.
template <typename T, typename Args>
RawAttention<T> Common(const Args& args, const Heads& at) {
  const int head_dim = HeadDim(args);
  const int value_dim = ValueDim(args);
  const int64_t q_length = args.q.dim(1);
  const AttentionDropout& dropout = args.dropout;
  const int64_t total_heads =
      dropout.total_heads == 0 ? args.heads : dropout.total_heads;
  const int64_t global_head = (dropout.first_sample + at.sample) * total_heads +
                              dropout.first_head + at.first;
  RawAttention<T> raw = {};
  raw.q = At<T>(args.q, at.sample, at.first * head_dim);
  raw.k = At<T>(args.k, at.sample, at.kv_head * head_dim);
  raw.v = At<T>(args.v, at.sample, at.kv_head * value_dim);
  raw.q_stride = args.q.stride(1);
  raw.k_stride = args.k.stride(1);
  raw.v_stride = args.v.stride(1);
  if (args.logsumexp.defined()) {
    raw.logsumexp = args.logsumexp.template data<float>() +
                    (at.sample * args.heads + at.first) * q_length;
  }
  raw.q_length = q_length;
  raw.kv_length = args.k.dim(1);
  raw.part = args.part;
  if (args.documents.defined()) {
    raw.documents = args.documents.template data<int32_t>() +
                    at.sample * args.documents.stride(0);
  }
  raw.heads = at.count;
  raw.head_dim = head_dim;
  raw.value_dim = value_dim;
  raw.scale = args.scale;
  raw.dropout = ToRaw(
      dropout.probability, dropout.stream,
      static_cast<uint64_t>(global_head) * args.part.length * args.part.length);
  return raw;
}

// Into how many ranges the queries of a head are cut, so that few tasks still
// keep all threads busy. Each range packs the head's keys anew.
int64_t QueryRanges(int64_t tasks, int threads, int64_t q_length) {
  constexpr int64_t kQueriesMin = 128;
  if (tasks >= 2 * threads || tasks % threads == 0) return 1;
  const int64_t wanted = (2 * threads + tasks - 1) / tasks;
  return std::clamp<int64_t>(q_length / kQueriesMin, 1, wanted);
}

template <typename T>
void Forward(CpuDevice& cpu, const AttentionArgs& args) {
  const int64_t batch = args.q.dim(0);
  const int64_t q_length = args.q.dim(1);
  const int group = args.heads / args.kv_heads;
  // Heads of a group share the packed keys and values, unless that would leave
  // threads without work.
  const int together = batch * args.kv_heads >= cpu.threads() ? group : 1;
  const int pieces = args.heads / together;  // of a sample
  const int64_t tasks = batch * pieces;
  const int64_t ranges = QueryRanges(tasks, cpu.threads(), q_length);
  const int value_dim = ValueDim(args);
  const int64_t scratch_bytes =
      sizeof(float) * cpu.simd().attention_scratch(q_length, args.k.dim(1),
                                                   HeadDim(args), value_dim,
                                                   /*backward=*/false);
  ParallelTasks(cpu.threads(), tasks * ranges, [&](int64_t task) {
    // The last ranges of a causal mask are the longest: they come first.
    const int64_t range = ranges - 1 - task / tasks;
    const int first = static_cast<int>(task % tasks % pieces) * together;
    RawAttention<T> raw = Common<T>(args, {.sample = task % tasks / pieces,
                                           .first = first,
                                           .count = together,
                                           .kv_head = first / group});
    raw.result = ResultAt<T>(args.o, args.o_before, task % tasks / pieces,
                             first * value_dim);
    ScratchPool::Block scratch = cpu.scratch().Take(scratch_bytes);
    raw.scratch = scratch.as<float>();
    raw.q_begin = q_length * range / ranges;
    raw.q_end = q_length * (range + 1) / ranges;
    cpu.loops<T>().attention(raw);
  });
}

// Sums [rows, padded] of a gradient of keys, from what earlier calls have
// found.
template <typename T>
void BeginSums(const RawResult<T>& result, int64_t rows, int head_dim,
               int padded, float* sums) {
  if (!result.before) {
    std::fill(sums, sums + rows * padded, 0.0f);
    return;
  }
  for (int64_t row = 0; row < rows; ++row) {
    const float* before = result.before + row * result.before_stride;
    float* const to = std::copy(before, before + head_dim, sums + row * padded);
    std::fill(to, sums + (row + 1) * padded, 0.0f);
  }
}

template <typename T>
void StoreSums(const ActivationLoops<T>& loops, const RawResult<T>& result,
               int64_t rows, int head_dim, int padded, const float* sums) {
  for (int64_t row = 0; row < rows; ++row, sums += padded) {
    const int64_t at = row * result.stride;
    if (result.whole) {
      std::copy(sums, sums + head_dim, result.whole + at);
    } else {
      loops.from_f32(sums, result.rounded + at, head_dim);
    }
  }
}

// One kv head of one sample, with all the heads that read it, in order: the sum
// over them has one owner, and needs no second pass.
template <typename T>
void BackwardOfKvHead(CpuDevice& cpu, const AttentionBackwardArgs& args,
                      int64_t sample, int kv_head) {
  const int64_t kv_length = args.k.dim(1);
  const int head_dim = HeadDim(args), value_dim = ValueDim(args);
  const int padded = cpu.simd().padded_head_dim(head_dim);
  const int padded_v = cpu.simd().padded_head_dim(value_dim);
  const int group = args.heads / args.kv_heads;
  ScratchPool::Block scratch = cpu.scratch().Take(
      sizeof(float) *
      (kv_length * (padded + padded_v) +
       cpu.simd().attention_scratch(args.q.dim(1), kv_length, head_dim,
                                    value_dim, /*backward=*/true)));
  float* dk_sum = scratch.as<float>();
  float* dv_sum = dk_sum + kv_length * padded;
  const RawResult<T> dk =
      ResultAt<T>(args.dk, args.dk_before, sample, kv_head * head_dim);
  const RawResult<T> dv =
      ResultAt<T>(args.dv, args.dv_before, sample, kv_head * value_dim);
  BeginSums(dk, kv_length, head_dim, padded, dk_sum);
  BeginSums(dv, kv_length, value_dim, padded_v, dv_sum);
  for (int head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    RawAttention<T> raw = Common<T>(
        args,
        {.sample = sample, .first = head, .count = 1, .kv_head = kv_head});
    raw.o = At<T>(args.o, sample, head * value_dim);
    raw.o_stride = args.o.stride(1);
    raw.d_o = At<T>(args.d_o, sample, head * value_dim);
    raw.d_o_stride = args.d_o.stride(1);
    raw.result = ResultAt<T>(args.dq, args.dq_before, sample, head * head_dim);
    raw.dk_sum = dk_sum;
    raw.dv_sum = dv_sum;
    raw.scratch = dv_sum + kv_length * padded_v;
    cpu.loops<T>().attention_backward(raw);
  }
  StoreSums(cpu.loops<T>(), dk, kv_length, head_dim, padded, dk_sum);
  StoreSums(cpu.loops<T>(), dv, kv_length, value_dim, padded_v, dv_sum);
}

template <typename T>
void Backward(CpuDevice& cpu, const AttentionBackwardArgs& args) {
  ParallelTasks(cpu.threads(), args.q.dim(0) * args.kv_heads,
                [&](int64_t task) {
                  BackwardOfKvHead<T>(cpu, args, task / args.kv_heads,
                                      static_cast<int>(task % args.kv_heads));
                });
}

}  // namespace

void Attention(Device& device, const AttentionArgs& args) {
  CpuDevice& cpu = CpuDevice::From(device);
  WithActivationType(args.q.dtype(),
                     [&]<typename T>() { Forward<T>(cpu, args); });
}

void AttentionBackward(Device& device, const AttentionBackwardArgs& args) {
  CpuDevice& cpu = CpuDevice::From(device);
  WithActivationType(args.q.dtype(),
                     [&]<typename T>() { Backward<T>(cpu, args); });
}

}  // namespace troupe::cpu
