// Causal attention in double, forward and backward, straight from the
// definition in ops/attention.h: what the tests of attention hold devices to.
#ifndef TROUPE_TESTS_OPS_ATTENTION_REFERENCE_H_
#define TROUPE_TESTS_OPS_ATTENTION_REFERENCE_H_

#include <cmath>
#include <cstdint>
#include <ostream>

#include "ops/attention.h"
#include "tests/ops/test_tensor.h"

namespace troupe {

struct AttentionCase {
  int64_t batch, q_length, kv_length;
  int heads, kv_heads, head_dim;
  AttentionDropout dropout = {};
  int value_dim = 0;  // 0: head_dim
  Values documents = {};  // [batch, kv_length] (ops/documents.h); empty: none

  // The first key that query i of sample b sees.
  int64_t FirstKey(int64_t b, int64_t i) const {
    if (documents.empty()) return 0;
    return static_cast<int64_t>(
        documents[b * kv_length + i + kv_length - q_length]);
  }
  int values() const { return value_dim > 0 ? value_dim : head_dim; }
  int64_t q_columns() const { return heads * head_dim; }
  int64_t k_columns() const { return kv_heads * head_dim; }
  int64_t v_columns() const { return kv_heads * values(); }
  int64_t o_columns() const { return heads * values(); }
  int64_t q_elements() const { return batch * q_length * q_columns(); }
  int64_t k_elements() const { return batch * kv_length * k_columns(); }
  int64_t v_elements() const { return batch * kv_length * v_columns(); }
  int64_t o_elements() const { return batch * q_length * o_columns(); }
  double scale() const { return 1 / std::sqrt(double(head_dim)); }
};

std::ostream& operator<<(std::ostream& out, const AttentionCase& c);

struct AttentionInputs {
  Values q, k, v, d_o;
};

struct AttentionResults {
  Values o, logsumexp, dq, dk, dv;
};

AttentionResults AttentionReference(const AttentionCase& c,
                                    const AttentionInputs& in);

// The backward reads o as it is stored, rounded, which dq and dk inherit: of
// one query and many keys little is left of the difference that it is part of.
inline double AttentionGradientErrorOf(DType dtype) {
  return dtype == DType::kF32    ? kF32Error
         : dtype == DType::kBF16 ? 2 * kBF16Error
                                 : 3 * kFP16Error;
}

}  // namespace troupe

#endif  // TROUPE_TESTS_OPS_ATTENTION_REFERENCE_H_
