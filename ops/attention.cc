#include "ops/attention.h"

#include "ops/check_tensor.h"
#include "ops/device.h"
#include "ops/kernel_table.h"

namespace troupe {
namespace {

// A k, v, o or a gradient of one: [batch, length, heads * head_dim] of q's
// batch and dtype.
void CheckOne(const Tensor& t, const char* name, const Tensor& q,
              int64_t length, int64_t columns) {
  CHECK(t.defined() && t.dtype() == q.dtype() && t.rank() == 3 &&
        t.dim(0) == q.dim(0) && t.dim(1) == length && t.dim(2) == columns)
      << name << " is " << t.ShapeString() << ", wants " << DTypeName(q.dtype())
      << "[" << q.dim(0) << ", " << length << ", " << columns << "]";
}

template <typename Args>
void CheckAttention(const Args& args) {
  CHECK_ACTIVATION(args.q);
  CHECK_EQ(args.q.rank(), 3);
  CHECK(args.k.defined() && args.k.rank() == 3);
  CHECK(args.heads > 0 && args.kv_heads > 0 && args.heads % args.kv_heads == 0)
      << args.heads << " heads, " << args.kv_heads << " kv heads";
  const int64_t q_length = args.q.dim(1);
  const int64_t kv_length = args.k.dim(1);
  const int64_t columns = args.q.dim(2);
  CHECK_EQ(columns % args.heads, 0) << args.q.ShapeString();
  const int64_t kv_columns = columns / args.heads * args.kv_heads;
  CheckOne(args.k, "k", args.q, kv_length, kv_columns);
  CheckOne(args.v, "v", args.q, kv_length, kv_columns);
  CheckOne(args.o, "o", args.q, q_length, columns);
  CHECK_GE(kv_length, q_length);
  const AttentionDropout& dropout = args.dropout;
  CHECK(dropout.probability >= 0 && dropout.probability < 1)
      << dropout.probability;
  if (dropout.probability > 0) CHECK_EQ(q_length, kv_length);
  CHECK(dropout.total_heads == 0 ||
        dropout.first_head + args.heads <= dropout.total_heads)
      << dropout.first_head << " + " << args.heads << " heads of "
      << dropout.total_heads;
}

}  // namespace

void Attention(Device& device, const AttentionArgs& args) {
  CheckAttention(args);
  if (args.logsumexp.defined()) {
    CHECK_F32_ELEMENTS(args.logsumexp,
                       args.q.dim(0) * args.heads * args.q.dim(1));
  }
  if (args.q.elements() == 0) return;
  device.kernels().attention(device, args);
}

void AttentionBackward(Device& device, const AttentionBackwardArgs& args) {
  CheckAttention(args);
  CHECK_F32_ELEMENTS(args.logsumexp,
                     args.q.dim(0) * args.heads * args.q.dim(1));
  const int64_t q_length = args.q.dim(1), columns = args.q.dim(2);
  const int64_t kv_length = args.k.dim(1), kv_columns = args.k.dim(2);
  CheckOne(args.d_o, "d_o", args.q, q_length, columns);
  CheckOne(args.dq, "dq", args.q, q_length, columns);
  CheckOne(args.dk, "dk", args.q, kv_length, kv_columns);
  CheckOne(args.dv, "dv", args.q, kv_length, kv_columns);
  device.kernels().attention_backward(device, args);
}

}  // namespace troupe
