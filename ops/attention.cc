#include "ops/attention.h"

#include <algorithm>

#include "ops/check_tensor.h"
#include "ops/device.h"
#include "ops/documents.h"
#include "ops/kernel_table.h"

namespace troupe {
namespace {

// A k, v, o or a gradient of one: [batch, length, heads * head_dim] of q's
// batch and of this dtype.
void CheckOne(const Tensor& t, const char* name, const Tensor& q, DType dtype,
              int64_t length, int64_t columns) {
  CHECK(t.defined() && t.dtype() == dtype && t.rank() == 3 &&
        t.dim(0) == q.dim(0) && t.dim(1) == length && t.dim(2) == columns)
      << name << " is " << t.ShapeString() << ", wants " << DTypeName(dtype)
      << "[" << q.dim(0) << ", " << length << ", " << columns << "]";
}

// The same of a result, which may be f32 too, and of what it is added to.
void CheckResult(const Tensor& t, const Tensor& before, const char* name,
                 const Tensor& q, int64_t length, int64_t columns) {
  const bool f32 = t.defined() && t.dtype() == DType::kF32;
  CheckOne(t, name, q, f32 ? DType::kF32 : q.dtype(), length, columns);
  if (!before.defined()) return;
  CheckOne(before, name, q, DType::kF32, length, columns);
}

void CheckRows(const SequenceRows& rows, const char* name, int64_t count,
               int64_t length) {
  const int64_t first_count = std::min(rows.first_count, count);
  const int64_t first_end = rows.first + first_count;
  CHECK(rows.first >= 0 && first_count >= 0 && first_end <= length)
      << name << " at positions [" << rows.first << ", " << first_end << ") of "
      << length;
  if (first_count == count) return;
  const int64_t end = rows.second + (count - first_count);
  CHECK(rows.second >= first_end && end <= length)
      << name << " at positions [" << rows.first << ", " << first_end
      << ") and [" << rows.second << ", " << end << ") of " << length;
}

// With the positions of a call that has all keys filled in.
AttentionPart Part(const AttentionPart& part, int64_t q_length,
                   int64_t kv_length) {
  if (part.length > 0) {
    CheckRows(part.queries, "queries", q_length, part.length);
    CheckRows(part.keys, "keys", kv_length, part.length);
    return part;
  }
  CHECK_GE(kv_length, q_length) << "queries, and keys of all positions";
  return {.length = kv_length, .queries = {.first = kv_length - q_length}};
}

// Of all heads of values: as many in each as v has.
template <typename Args>
int64_t ValueColumns(const Args& args) {
  CHECK(args.v.defined() && args.v.rank() == 3 && args.v.dim(2) > 0 &&
        args.v.dim(2) % args.kv_heads == 0)
      << "values " << args.v.ShapeString() << " of " << args.kv_heads
      << " heads";
  return args.v.dim(2);
}

// What kernels get: checked, and with all that is left out filled in.
template <typename Args>
Args Checked(const Args& args) {
  CHECK_ACTIVATION(args.q);
  CHECK_EQ(args.q.rank(), 3);
  CHECK(args.k.defined() && args.k.rank() == 3);
  CHECK(args.heads > 0 && args.kv_heads > 0 && args.heads % args.kv_heads == 0)
      << args.heads << " heads, " << args.kv_heads << " kv heads";
  const int64_t kv_length = args.k.dim(1);
  const int64_t columns = args.q.dim(2);
  CHECK_EQ(columns % args.heads, 0) << args.q.ShapeString();
  const int64_t key_columns = columns / args.heads * args.kv_heads;
  CheckOne(args.k, "k", args.q, args.q.dtype(), kv_length, key_columns);
  CheckOne(args.v, "v", args.q, args.q.dtype(), kv_length, ValueColumns(args));
  const AttentionDropout& dropout = args.dropout;
  CHECK(dropout.probability >= 0 && dropout.probability < 1)
      << dropout.probability;
  CHECK(dropout.total_heads == 0 ||
        dropout.first_head + args.heads <= dropout.total_heads)
      << dropout.first_head << " + " << args.heads << " heads of "
      << dropout.total_heads;
  Args checked = args;
  checked.part = Part(args.part, args.q.dim(1), kv_length);
  CheckDocuments(args.documents, args.q.dim(0), checked.part.length);
  return checked;
}

}  // namespace

void Attention(Device& device, const AttentionArgs& args) {
  const AttentionArgs checked = Checked(args);
  const Tensor& q = args.q;
  CheckResult(args.o, args.o_before, "o", q, q.dim(1),
              args.v.dim(2) / args.kv_heads * args.heads);
  if (args.logsumexp.defined() || args.o_before.defined()) {
    CHECK_F32_ELEMENTS(args.logsumexp, q.dim(0) * args.heads * q.dim(1));
  }
  if (q.elements() == 0) return;
  device.kernels().attention(device, checked);
}

void AttentionBackward(Device& device, const AttentionBackwardArgs& args) {
  const AttentionBackwardArgs checked = Checked(args);
  const Tensor& q = args.q;
  const int64_t q_length = q.dim(1), kv_length = args.k.dim(1);
  const int64_t o_columns = args.v.dim(2) / args.kv_heads * args.heads;
  CHECK_F32_ELEMENTS(args.logsumexp, q.dim(0) * args.heads * q_length);
  CheckOne(args.o, "o", q, q.dtype(), q_length, o_columns);
  CheckOne(args.d_o, "d_o", q, q.dtype(), q_length, o_columns);
  CheckResult(args.dq, args.dq_before, "dq", q, q_length, q.dim(2));
  CheckResult(args.dk, args.dk_before, "dk", q, kv_length, args.k.dim(2));
  CheckResult(args.dv, args.dv_before, "dv", q, kv_length, args.v.dim(2));
  device.kernels().attention_backward(device, checked);
}

}  // namespace troupe
