// Causal self-attention of queries, keys and values, which lie side by side.
// Decoding appends the new keys and values to the cache, [1, positions, keys |
// values], and attends to all that it holds.
#include "ops/attention.h"

#include "ops/reduce.h"
#include "proto/base/check.h"
#include "proto/plan/tensor_spec.h"
#include "worker/layers/element_dtype.h"
#include "worker/layers/kinds.h"

namespace troupe {
namespace {

constexpr int kColumns = 2;  // of [batch, sequence, columns]

class AttentionLayer final : public Layer {
 public:
  explicit AttentionLayer(const OpBinding& op)
      : qkv_(op.Input("qkv")),
        y_(op.Output("y")),
        logsumexp_(op.Output("logsumexp")),
        d_qkv_(op.InputGradient("qkv")),
        dy_(op.OutputGradient("y")),
        documents_(op.DocumentsHere()),
        mask_(op.OwnMask()) {
    const TensorSpec& qkv = op.view().input("qkv");
    CHECK_EQ(qkv.dims(kColumns).sections_size(), 3) << "queries, keys, values";
    const Dim::Section& queries = qkv.dims(kColumns).sections(0);
    const Dim::Section& keys = qkv.dims(kColumns).sections(1);
    heads_ = static_cast<int>(queries.count());
    kv_heads_ = static_cast<int>(keys.count());
    q_width_ = SectionSize(queries);
    k_width_ = SectionSize(keys);
    v_width_ = SectionSize(qkv.dims(kColumns).sections(2));
    scale_ = static_cast<float>(AttentionScale(op.view()));
    dtype_ = DTypeOfElement(qkv.dtype());
  }

  void Forward(const LayerCall& call) const override {
    if (call.decoding.count > 0) {
      Decode(call);
      return;
    }
    const Tensor qkv = qkv_.In(call);
    Attention(call.device, {.q = Queries(qkv),
                            .k = Keys(qkv),
                            .v = Values(qkv),
                            .o = y_.In(call),
                            .logsumexp = logsumexp_.In(call),
                            .heads = heads_,
                            .kv_heads = kv_heads_,
                            .scale = scale_,
                            .documents = documents_.In(call),
                            .dropout = mask_.OfProbabilities(call)});
  }

  void BackwardInput(const LayerCall& call) const override {
    const Tensor qkv = qkv_.In(call);
    const Tensor gradient = d_qkv_.In(call);
    AttentionBackward(call.device, {.q = Queries(qkv),
                                    .k = Keys(qkv),
                                    .v = Values(qkv),
                                    .o = y_.In(call),
                                    .logsumexp = logsumexp_.In(call),
                                    .d_o = dy_.In(call),
                                    .dq = Queries(gradient),
                                    .dk = Keys(gradient),
                                    .dv = Values(gradient),
                                    .heads = heads_,
                                    .kv_heads = kv_heads_,
                                    .scale = scale_,
                                    .documents = documents_.In(call),
                                    .dropout = mask_.OfProbabilities(call)});
  }

  int64_t CacheBytes(int64_t positions) const override {
    return positions * (k_width_ + v_width_) *
           static_cast<int64_t>(DTypeBytes(dtype_));
  }

 private:
  Tensor Queries(const Tensor& qkv) const {
    return qkv.Slice(kColumns, 0, q_width_);
  }
  Tensor Keys(const Tensor& qkv) const {
    return qkv.Slice(kColumns, q_width_, q_width_ + k_width_);
  }
  Tensor Values(const Tensor& qkv) const {
    return qkv.Slice(kColumns, q_width_ + k_width_,
                     q_width_ + k_width_ + v_width_);
  }

  void Decode(const LayerCall& call) const {
    const DecodingCall& decoding = call.decoding;
    const int64_t end = decoding.first_position + decoding.count;
    const Tensor qkv = qkv_.In(call);
    const Tensor cache(decoding.cache, dtype_,
                       {1, decoding.cache_positions, k_width_ + v_width_});
    Copy(call.device,
         {.x = qkv.Slice(kColumns, q_width_, q_width_ + k_width_ + v_width_),
          .y = cache.Slice(1, decoding.first_position, end)});
    const Tensor seen = cache.Slice(1, 0, end);
    Attention(call.device,
              {.q = Queries(qkv),
               .k = seen.Slice(kColumns, 0, k_width_),
               .v = seen.Slice(kColumns, k_width_, k_width_ + v_width_),
               .o = y_.In(call),
               .heads = heads_,
               .kv_heads = kv_heads_,
               .scale = scale_});
  }

  const OperandPlace qkv_;
  const OperandPlace y_;
  const OperandPlace logsumexp_;
  const OperandPlace d_qkv_;
  const OperandPlace dy_;
  const Documents documents_;
  const MaskSource mask_;
  int heads_ = 0;
  int kv_heads_ = 0;
  int64_t q_width_ = 0;
  int64_t k_width_ = 0;
  int64_t v_width_ = 0;
  float scale_ = 0;
  DType dtype_ = DType::kF32;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewAttention(const OpBinding& op) {
  return std::make_unique<AttentionLayer>(op);
}

}  // namespace troupe
