// y = rows of the token table, and where there is one, of the position table.
#include <utility>

#include "ops/embedding.h"
#include "proto/base/status.h"
#include "proto/plan/tensor_spec.h"
#include "worker/layers/kinds.h"

namespace troupe {
namespace {

class EmbedLayer final : public Layer {
 public:
  EmbedLayer(const OpBinding& op, ParameterPlace tokens,
             ParameterPlace positions)
      : tokens_(op.Input("tokens")),
        y_(op.Output("y")),
        dy_(op.OutputGradient("y")),
        token_table_(std::move(tokens)),
        position_table_(std::move(positions)) {}

  void Forward(const LayerCall& call) const override {
    Embedding(call.device, {.tokens = tokens_.In(call),
                            .wte = token_table_.Values(call),
                            .wpe = position_table_.Values(call),
                            .y = y_.In(call),
                            .first_position = call.decoding.first_position});
  }

  void BackwardWeight(const LayerCall& call) const override {
    EmbeddingBackward(call.device, {.tokens = tokens_.In(call),
                                    .dy = dy_.In(call),
                                    .dwte = token_table_.Gradient(call),
                                    .dwpe = position_table_.Gradient(call)});
  }

 private:
  const OperandPlace tokens_;
  const OperandPlace y_;
  const OperandPlace dy_;
  const ParameterPlace token_table_;     // [vocabulary, hidden]
  const ParameterPlace position_table_;  // [positions, hidden], optional
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewEmbed(const OpBinding& op) {
  const int64_t width = ColumnsOf(op.view().output("y"));
  ASSIGN_OR_RETURN(ParameterPlace tokens, op.Parameter(0, {-1, width}));
  ParameterPlace positions;
  if (op.op().parameters_size() > 1) {
    ASSIGN_OR_RETURN(positions, op.Parameter(1, {-1, width}));
  }
  return std::make_unique<EmbedLayer>(op, std::move(tokens),
                                      std::move(positions));
}

}  // namespace troupe
