#include "ops/cuda/cudnn_attention_graph.h"

#include "proto/base/check.h"

namespace troupe::cuda {
namespace {

using Ids = CudnnAttentionIds;
using Strides = CudnnAttentionShape::Strides;

constexpr int64_t kQueryAxis = 2, kKeyAxis = 3;

cudnnDataType_t DataTypeOf(DType type) {
  CHECK(type == DType::kBF16 || type == DType::kF16) << DTypeName(type);
  return type == DType::kBF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF;
}

// What both directions begin with, and where things lie.
class Builder {
 public:
  Builder(CudnnGraph& graph, const CudnnAttentionShape& shape)
      : graph_(graph), shape_(shape), type_(DataTypeOf(shape.type)) {}

  void Forward();
  void Backward();

 private:
  CudnnLayout OfQueries(const Strides& strides) const {
    return {
        .dims = {shape_.batch, shape_.heads, shape_.q_length, shape_.head_dim},
        .strides = {strides.sample, shape_.head_dim, strides.row, 1}};
  }
  CudnnLayout OfKeys(const Strides& strides) const {
    return {.dims = {shape_.batch, shape_.kv_heads, shape_.kv_length,
                     shape_.head_dim},
            .strides = {strides.sample, shape_.head_dim, strides.row, 1}};
  }
  CudnnLayout Square() const {
    return CudnnLayout::Dense(
        {shape_.batch, shape_.heads, shape_.q_length, shape_.kv_length});
  }
  CudnnLayout Rows() const {
    return CudnnLayout::Dense({shape_.batch, shape_.heads, shape_.q_length, 1});
  }

  CudnnTensor Scores(cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    return graph_.Between(type, Square());
  }
  CudnnTensor OfRow() { return graph_.Between(CUDNN_DATA_FLOAT, Rows()); }

  // y = mode(x), or mode(x, b), as scores.
  CudnnTensor Apply(cudnnPointwiseMode_t mode, const CudnnTensor& x) {
    const CudnnTensor y = Scores();
    graph_.Apply(mode, x, y);
    return y;
  }
  CudnnTensor Apply(cudnnPointwiseMode_t mode, const CudnnTensor& x,
                    const CudnnTensor& b,
                    cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    const CudnnTensor y = Scores(type);
    graph_.Apply(mode, x, b, y);
    return y;
  }

  CudnnTensor ScaledScores(const CudnnTensor& q, const CudnnTensor& k);
  CudnnTensor Masked(const CudnnTensor& scores);
  // The transpose, rounded to what is multiplied.
  CudnnTensor Turned(const CudnnTensor& scores);
  // gradient = weights^T rows, summed over the heads that share their keys.
  void GradientOfKeys(const CudnnTensor& turned, const CudnnTensor& rows,
                      int64_t id, const Strides& strides);

  CudnnGraph& graph_;
  const CudnnAttentionShape& shape_;
  const cudnnDataType_t type_;
  CudnnTensor scale_;
};

CudnnTensor Builder::ScaledScores(const CudnnTensor& q, const CudnnTensor& k) {
  const CudnnTensor scores = Scores();
  graph_.MatMul(q, k, scores);
  scale_ = graph_.Number(Ids::kScale, CUDNN_DATA_FLOAT);
  return Apply(CUDNN_POINTWISE_MUL, scores, scale_);
}

// Query i of q_length is the one at i + kv_length - q_length, and sees the keys
// up to there.
CudnnTensor Builder::Masked(const CudnnTensor& scores) {
  const auto index = [&](int64_t axis) {
    const CudnnTensor place = Scores(CUDNN_DATA_INT32);
    graph_.Index(axis, scores, place);
    return place;
  };
  CudnnTensor query = index(kQueryAxis);
  const CudnnTensor key = index(kKeyAxis);
  if (shape_.q_length != shape_.kv_length) {
    query = Apply(CUDNN_POINTWISE_ADD, query,
                  graph_.Number(Ids::kKvLength, CUDNN_DATA_INT32),
                  CUDNN_DATA_INT32);
    query =
        Apply(CUDNN_POINTWISE_SUB, query,
              graph_.Number(Ids::kQLength, CUDNN_DATA_INT32), CUDNN_DATA_INT32);
  }
  const CudnnTensor seen =
      Apply(CUDNN_POINTWISE_CMP_GE, query, key, CUDNN_DATA_BOOLEAN);
  const CudnnTensor masked = Scores();
  graph_.Select(seen, scores, graph_.Number(Ids::kMasked, CUDNN_DATA_FLOAT),
                masked);
  return masked;
}

void Builder::Forward() {
  const CudnnTensor q = graph_.Memory(Ids::kQ, type_, OfQueries(shape_.q));
  const CudnnTensor k =
      graph_.Memory(Ids::kK, type_, OfKeys(shape_.k).Transposed());
  const CudnnTensor v = graph_.Memory(Ids::kV, type_, OfKeys(shape_.v));
  const CudnnTensor o = graph_.Memory(Ids::kO, type_, OfQueries(shape_.o));
  const CudnnTensor logsumexp =
      graph_.Memory(Ids::kLogsumexp, CUDNN_DATA_FLOAT, Rows());
  const CudnnTensor scores = Masked(ScaledScores(q, k));
  const CudnnTensor largest = OfRow(), sum = OfRow(), log_sum = OfRow();
  graph_.Reduce(CUDNN_REDUCE_TENSOR_MAX, scores, largest);
  const CudnnTensor weights =
      Apply(CUDNN_POINTWISE_EXP, Apply(CUDNN_POINTWISE_SUB, scores, largest));
  graph_.Reduce(CUDNN_REDUCE_TENSOR_ADD, weights, sum);
  graph_.Apply(CUDNN_POINTWISE_LOG, sum, log_sum);
  graph_.Apply(CUDNN_POINTWISE_ADD, largest, log_sum, logsumexp);
  graph_.MatMul(Apply(CUDNN_POINTWISE_DIV, weights, sum, type_), v, o);
}

CudnnTensor Builder::Turned(const CudnnTensor& scores) {
  const CudnnTensor turned = graph_.Between(type_, Square().Transposed());
  graph_.Reshape(scores, turned);
  return turned;
}

void Builder::GradientOfKeys(const CudnnTensor& turned, const CudnnTensor& rows,
                             int64_t id, const Strides& strides) {
  const CudnnTensor gradient = graph_.Memory(id, type_, OfKeys(strides));
  if (shape_.heads == shape_.kv_heads) {
    return graph_.MatMul(turned, rows, gradient);
  }
  const CudnnTensor of_heads = graph_.Between(
      type_, CudnnLayout::Dense({shape_.batch, shape_.heads, shape_.kv_length,
                                 shape_.head_dim}));
  graph_.MatMul(turned, rows, of_heads);
  graph_.Reduce(CUDNN_REDUCE_TENSOR_ADD, of_heads, gradient);
}

void Builder::Backward() {
  const CudnnLayout turned_keys = OfKeys(shape_.k).Transposed();
  const CudnnTensor q = graph_.Memory(Ids::kQ, type_, OfQueries(shape_.q));
  const CudnnTensor k = graph_.Memory(Ids::kK, type_, turned_keys);
  const CudnnTensor v =
      graph_.Memory(Ids::kV, type_, OfKeys(shape_.v).Transposed());
  const CudnnTensor o = graph_.Memory(Ids::kO, type_, OfQueries(shape_.o));
  const CudnnTensor d_o = graph_.Memory(Ids::kDO, type_, OfQueries(shape_.d_o));
  const CudnnTensor logsumexp =
      graph_.Memory(Ids::kLogsumexp, CUDNN_DATA_FLOAT, Rows());
  const CudnnTensor delta =
      graph_.Memory(Ids::kDelta, CUDNN_DATA_FLOAT, Rows());

  const CudnnTensor products =
      graph_.Between(CUDNN_DATA_FLOAT, OfQueries(shape_.o));
  graph_.Apply(CUDNN_POINTWISE_MUL, d_o, o, products);
  const CudnnTensor sum = OfRow();
  graph_.Reduce(CUDNN_REDUCE_TENSOR_ADD, products, sum);
  // With dropout, which we do not ask for, the factor of what is kept.
  graph_.Apply(CUDNN_POINTWISE_MUL, sum,
               graph_.Number(Ids::kOne, CUDNN_DATA_FLOAT), delta);

  const CudnnTensor weights =
      Apply(CUDNN_POINTWISE_EXP,
            Masked(Apply(CUDNN_POINTWISE_SUB, ScaledScores(q, k), logsumexp)));
  GradientOfKeys(Turned(weights), d_o, Ids::kDV, shape_.dv);

  const CudnnTensor of_weights = Scores();
  graph_.MatMul(d_o, v, of_weights);
  const CudnnTensor of_scores =
      Apply(CUDNN_POINTWISE_MUL,
            Apply(CUDNN_POINTWISE_MUL,
                  Apply(CUDNN_POINTWISE_SUB, of_weights, delta), weights),
            scale_);
  GradientOfKeys(Turned(of_scores), q, Ids::kDK, shape_.dk);

  const CudnnTensor keys =
      graph_.Between(CUDNN_DATA_FLOAT, turned_keys.Transposed());
  graph_.Reshape(k, keys);
  graph_.MatMul(of_scores, keys,
                graph_.Memory(Ids::kDQ, type_, OfQueries(shape_.dq)));
}

}  // namespace

CudnnGraph CudnnAttentionGraph(const CudnnLibrary& library,
                               const CudnnAttentionShape& shape) {
  CudnnGraph graph(library);
  Builder builder(graph, shape);
  if (shape.backward) {
    builder.Backward();
  } else {
    builder.Forward();
  }
  return graph;
}

}  // namespace troupe::cuda
