#include "ops/attention.h"

#include <algorithm>

#include "ops/cpu/cpu_device.h"
#include "ops/cpu/kernels.h"

namespace troupe::cpu {
namespace {

struct Head {
  int64_t sample;
  int head;
  int kv_head;
};

// Where column `head * head_dim` of a sample begins.
float* At(const Tensor& t, int64_t sample, int64_t column) {
  return t.data<float>() + sample * t.stride(0) + column;
}

// What forward and backward tell the loops about one head.
template <typename Args>
RawAttention Common(const Args& args, const Head& at) {
  const int head_dim = static_cast<int>(args.q.dim(2) / args.heads);
  const int64_t q_length = args.q.dim(1);
  const int64_t kv_length = args.k.dim(1);
  const AttentionDropout& dropout = args.dropout;
  const int64_t total_heads =
      dropout.total_heads == 0 ? args.heads : dropout.total_heads;
  const int64_t global_head = (dropout.first_sample + at.sample) * total_heads +
                              dropout.first_head + at.head;
  RawAttention raw = {};
  raw.q = At(args.q, at.sample, at.head * head_dim);
  raw.k = At(args.k, at.sample, at.kv_head * head_dim);
  raw.v = At(args.v, at.sample, at.kv_head * head_dim);
  raw.o = At(args.o, at.sample, at.head * head_dim);
  raw.q_stride = args.q.stride(1);
  raw.k_stride = args.k.stride(1);
  raw.v_stride = args.v.stride(1);
  raw.o_stride = args.o.stride(1);
  if (args.logsumexp.defined()) {
    raw.logsumexp = args.logsumexp.template data<float>() +
                    (at.sample * args.heads + at.head) * q_length;
  }
  raw.q_length = q_length;
  raw.kv_length = kv_length;
  raw.head_dim = head_dim;
  raw.scale = args.scale;
  raw.dropout =
      ToRaw(dropout.probability, dropout.stream,
            static_cast<uint64_t>(global_head) * q_length * kv_length);
  return raw;
}

// Into how many ranges the queries of a head are cut, so that few heads still
// keep all threads busy. Each range packs the head's keys anew.
int64_t QueryRanges(int64_t heads, int threads, int64_t q_length) {
  constexpr int64_t kQueriesMin = 128;
  if (heads >= 2 * threads || heads % threads == 0) return 1;
  const int64_t wanted = (2 * threads + heads - 1) / heads;
  return std::clamp<int64_t>(q_length / kQueriesMin, 1, wanted);
}

}  // namespace

void Attention(Device& device, const AttentionArgs& args) {
  CpuDevice& cpu = CpuDevice::From(device);
  const int64_t q_length = args.q.dim(1);
  const int64_t heads = args.q.dim(0) * args.heads;
  const int64_t ranges = QueryRanges(heads, cpu.threads(), q_length);
  const int head_dim = static_cast<int>(args.q.dim(2) / args.heads);
  const int64_t scratch_bytes =
      sizeof(float) *
      cpu.simd().attention_scratch(q_length, args.k.dim(1), head_dim, false);
  ParallelTasks(cpu.threads(), heads * ranges, [&](int64_t task) {
    // The last ranges of a causal mask are the longest: they come first.
    const int64_t range = ranges - 1 - task / heads;
    const int head = static_cast<int>(task % heads % args.heads);
    RawAttention raw =
        Common(args, {.sample = task % heads / args.heads,
                      .head = head,
                      .kv_head = head / (args.heads / args.kv_heads)});
    ScratchPool::Block scratch = cpu.scratch().Take(scratch_bytes);
    raw.scratch = scratch.as<float>();
    raw.q_begin = q_length * range / ranges;
    raw.q_end = q_length * (range + 1) / ranges;
    cpu.simd().attention(raw);
  });
}

void AttentionBackward(Device& device, const AttentionBackwardArgs& args) {
  CpuDevice& cpu = CpuDevice::From(device);
  const int64_t kv_length = args.k.dim(1);
  const int head_dim = static_cast<int>(args.q.dim(2) / args.heads);
  const int padded = cpu.simd().padded_head_dim(head_dim);
  const int group = args.heads / args.kv_heads;
  const int64_t sum_elements = kv_length * padded;
  const int64_t scratch_elements =
      2 * sum_elements +
      cpu.simd().attention_scratch(args.q.dim(1), kv_length, head_dim, true);
  // A task is a kv head, with all the heads that read it, in order.
  ParallelTasks(
      cpu.threads(), args.q.dim(0) * args.kv_heads, [&](int64_t task) {
        const int64_t sample = task / args.kv_heads;
        const int kv_head = static_cast<int>(task % args.kv_heads);
        ScratchPool::Block scratch =
            cpu.scratch().Take(scratch_elements * sizeof(float));
        float* dk_sum = scratch.as<float>();
        float* dv_sum = dk_sum + sum_elements;
        std::fill(dk_sum, dv_sum + sum_elements, 0.0f);
        for (int head = kv_head * group; head < (kv_head + 1) * group; ++head) {
          RawAttention raw = Common(
              args, {.sample = sample, .head = head, .kv_head = kv_head});
          raw.d_o = At(args.d_o, sample, head * head_dim);
          raw.d_o_stride = args.d_o.stride(1);
          raw.dq = At(args.dq, sample, head * head_dim);
          raw.dq_stride = args.dq.stride(1);
          raw.dk_sum = dk_sum;
          raw.dv_sum = dv_sum;
          raw.scratch = dv_sum + sum_elements;
          cpu.simd().attention_backward(raw);
        }
        float* dk = At(args.dk, sample, kv_head * head_dim);
        float* dv = At(args.dv, sample, kv_head * head_dim);
        for (int64_t key = 0; key < kv_length; ++key) {
          std::copy_n(dk_sum + key * padded, head_dim,
                      dk + key * args.dk.stride(1));
          std::copy_n(dv_sum + key * padded, head_dim,
                      dv + key * args.dv.stride(1));
        }
      });
}

}  // namespace troupe::cpu
