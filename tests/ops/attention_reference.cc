#include "tests/ops/attention_reference.h"

namespace troupe {
namespace {

double Factor(const AttentionCase& c, int64_t b, int h, int64_t i, int64_t j) {
  if (c.dropout.probability == 0) return 1;
  const int64_t heads =
      c.dropout.total_heads == 0 ? c.heads : c.dropout.total_heads;
  const int64_t length = c.kv_length;
  const uint64_t element =
      (((c.dropout.first_sample + b) * heads + c.dropout.first_head + h) *
           length +
       i + length - c.q_length) *
          length +
      j;
  const float u = PhiloxUniform(PhiloxUint32(c.dropout.stream, element));
  return u >= c.dropout.probability ? 1.0 / (1.0f - c.dropout.probability) : 0;
}

// One query of one head, forward and backward, straight from the definition.
void Query(const AttentionCase& c, const AttentionInputs& in, int64_t b, int h,
           int64_t i, AttentionResults* out) {
  const int64_t q_at = (b * c.q_length + i) * c.q_columns() + h * c.head_dim;
  const int64_t o_at = (b * c.q_length + i) * c.o_columns() + h * c.values();
  const int kv_head = h / (c.heads / c.kv_heads);
  const auto k_at = [&](int64_t j) {
    return (b * c.kv_length + j) * c.k_columns() + kv_head * c.head_dim;
  };
  const auto v_at = [&](int64_t j) {
    return (b * c.kv_length + j) * c.v_columns() + kv_head * c.values();
  };
  const int64_t keys = i + c.kv_length - c.q_length + 1;
  const int64_t first = c.FirstKey(b, i);
  Values p(keys), dp(keys);
  double sum = 0, delta = 0;
  for (int64_t j = first; j < keys; ++j) {
    double score = 0;
    for (int d = 0; d < c.head_dim; ++d) {
      score += in.q[q_at + d] * in.k[k_at(j) + d];
    }
    sum += p[j] = std::exp(c.scale() * score);
  }
  out->logsumexp[(b * c.heads + h) * c.q_length + i] = std::log(sum);
  for (int64_t j = first; j < keys; ++j) {
    p[j] /= sum;
    const double factor = Factor(c, b, h, i, j);
    for (int d = 0; d < c.values(); ++d) {
      out->o[o_at + d] += p[j] * factor * in.v[v_at(j) + d];
      out->dv[v_at(j) + d] += p[j] * factor * in.d_o[o_at + d];
      dp[j] += factor * in.d_o[o_at + d] * in.v[v_at(j) + d];
    }
    delta += p[j] * dp[j];
  }
  for (int64_t j = first; j < keys; ++j) {
    const double ds = p[j] * (dp[j] - delta) * c.scale();
    for (int d = 0; d < c.head_dim; ++d) {
      out->dq[q_at + d] += ds * in.k[k_at(j) + d];
      out->dk[k_at(j) + d] += ds * in.q[q_at + d];
    }
  }
}

}  // namespace

AttentionResults AttentionReference(const AttentionCase& c,
                                    const AttentionInputs& in) {
  AttentionResults out{
      Values(c.o_elements()), Values(c.batch * c.heads * c.q_length),
      Values(c.q_elements()), Values(c.k_elements()), Values(c.v_elements())};
  for (int64_t b = 0; b < c.batch; ++b) {
    for (int h = 0; h < c.heads; ++h) {
      for (int64_t i = 0; i < c.q_length; ++i) Query(c, in, b, h, i, &out);
    }
  }
  return out;
}

std::ostream& operator<<(std::ostream& out, const AttentionCase& c) {
  return out << "batch " << c.batch << ", lengths " << c.q_length << " and "
             << c.kv_length << ", heads " << c.heads << " and " << c.kv_heads
             << " of " << c.head_dim << " and " << c.values()
             << (c.documents.empty() ? "" : ", in documents");
}

}  // namespace troupe
