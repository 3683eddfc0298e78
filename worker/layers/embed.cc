// y = rows of the token table, and where there is one, of the position table.
#include <utility>
#include <vector>

#include "ops/embedding.h"
#include "proto/base/status.h"
#include "proto/plan/tensor_spec.h"
#include "worker/layers/kinds.h"

namespace troupe {
namespace {

class EmbedLayer final : public Layer {
 public:
  // Rows of the token table, less what is padding.
  struct Tokens {
    ParameterPlace table;
    Range range;
    int64_t vocabulary = 0;  // of all ranks; 0: this one has it all
  };
  EmbedLayer(const OpBinding& op, Tokens tokens, ParameterPlace positions)
      : tokens_(op.Input("tokens")),
        y_(op.Output("y")),
        dy_(op.OutputGradient("y")),
        token_table_(std::move(tokens.table)),
        token_range_(tokens.range),
        vocabulary_(tokens.vocabulary),
        position_table_(std::move(positions)),
        samples_(op.SamplesOf("tokens")),
        documents_(op.DocumentsHere()),
        adds_positions_(op.AddsOnce("y")),
        rows_(RowsOf(op)) {}

  void Forward(const LayerCall& call) const override {
    const Tensor tokens = TokensIn(call);
    const Tensor y = y_.In(call);
    const Tensor documents = documents_.In(call);
    for (const Rows& rows : rows_) {
      Embedding(
          call.device,
          {.tokens = rows.Of(tokens),
           .wte = TableRows(token_table_.Values(call)),
           .wpe = adds_positions_ ? position_table_.Values(call) : Tensor(),
           .y = rows.Of(y),
           .first_position = rows.first_position + call.decoding.first_position,
           .documents = rows.OfSequences(documents),
           .first_token = token_range_.begin,
           .vocabulary = vocabulary_});
    }
  }

  void BackwardWeight(const LayerCall& call) const override {
    const Tensor tokens = TokensIn(call);
    const Tensor dy = dy_.In(call);
    const Tensor documents = documents_.In(call);
    for (const Rows& rows : rows_) {
      EmbeddingBackward(call.device,
                        {.tokens = rows.Of(tokens),
                         .dy = rows.Of(dy),
                         .dwte = TableRows(token_table_.Gradient(call)),
                         .dwpe = position_table_.Gradient(call),
                         .first_position = rows.first_position,
                         .documents = rows.OfSequences(documents),
                         .first_token = token_range_.begin,
                         .vocabulary = vocabulary_});
    }
  }

 private:
  // What lies at positions one behind the other.
  struct Rows {
    int64_t first_position = 0;
    int64_t sample = -1;  // -1: all of them
    SliceRun run;

    Tensor Of(const Tensor& tensor) const {
      if (sample < 0) return tensor;
      return tensor.Slice(0, sample, sample + 1)
          .Slice(1, run.local, run.local + run.count);
    }
    // Of what whole sequences have, where there is any.
    Tensor OfSequences(const Tensor& tensor) const {
      if (sample < 0 || !tensor.defined()) return tensor;
      return tensor.Slice(0, sample, sample + 1);
    }
  };
  Tensor TokensIn(const LayerCall& call) const {
    return tokens_.In(call).Slice(0, samples_.begin, samples_.end);
  }

  // Only a table of positions asks where they are.
  std::vector<Rows> RowsOf(const OpBinding& op) const {
    const std::vector<SliceRun> positions = op.Positions("tokens");
    if (positions.size() == 1 || !position_table_.exists()) {
      return {{.first_position = positions.front().whole}};
    }
    const int64_t samples = DimSize(op.view().output("y").dims(0));
    std::vector<Rows> rows;
    for (int64_t sample = 0; sample < samples; ++sample) {
      for (const SliceRun& run : positions) {
        rows.push_back(
            {.first_position = run.whole, .sample = sample, .run = run});
      }
    }
    return rows;
  }

  Tensor TableRows(const Tensor& table) const {
    if (!table.defined()) return table;
    return table.Slice(0, 0, token_range_.size());
  }

  const OperandPlace tokens_;
  const OperandPlace y_;
  const OperandPlace dy_;
  const ParameterPlace token_table_;  // [vocabulary, hidden]
  const Range token_range_;
  const int64_t vocabulary_;
  const ParameterPlace position_table_;  // [positions, hidden], optional
  const Range samples_;                  // of the tokens
  const Documents documents_;
  const bool adds_positions_;
  const std::vector<Rows> rows_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewEmbed(const OpBinding& op) {
  const int64_t width = ColumnsOf(op.view().output("y"));
  ASSIGN_OR_RETURN(ParameterPlace tokens, op.Parameter(0, {-1, width}));
  const Dim::Section& vocabulary = op.ParameterSpec(0).dims(0).sections(0);
  ParameterPlace positions;
  if (op.op().parameters_size() > 1) {
    ASSIGN_OR_RETURN(positions, op.Parameter(1, {-1, width}));
  }
  return std::make_unique<EmbedLayer>(
      op,
      EmbedLayer::Tokens{
          std::move(tokens), op.Piece(vocabulary),
          vocabulary.cuts().empty() ? 0 : WholeCount(vocabulary)},
      std::move(positions));
}

}  // namespace troupe
