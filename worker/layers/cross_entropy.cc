// The loss of logits. In training the forward pass overwrites them with their
// gradient, so that nothing is left for the backward ones. Where ranks have
// some columns of the vocabulary each, what they put together are parts of a
// row's softmax; the first one counts the loss.
#include "ops/cross_entropy.h"

#include "proto/plan/sum_names.h"
#include "worker/layers/kinds.h"

namespace troupe {
namespace {

const Dim::Section& SectionOf(const OpBinding& op) {
  const TensorSpec& logits = op.view().input("logits");
  return logits.dims(logits.dims_size() - 1).sections(0);
}

// The columns of all ranks; 0: this one has them all.
int64_t WholeOf(const Dim::Section& section) {
  return section.cuts().empty() ? 0 : WholeCount(section);
}

// Which of the targets are those of the logits: rows of [batch, sequence].
class TargetRows {
 public:
  explicit TargetRows(const OpBinding& op)
      : targets_(op.Input("targets")),
        samples_(op.SamplesOf("targets")),
        chunk_(op.op().chunk()) {}

  Tensor In(const LayerCall& call) const {
    const Tensor all = targets_.In(call);
    if (chunk_.rows() == 0) return all.Slice(0, samples_.begin, samples_.end);
    const int64_t first = samples_.begin * all.dim(1) + chunk_.first_row();
    return all.Flat().Slice(0, first, first + chunk_.rows());
  }
  // Which of the sequences here, counted from the first, each row is of.
  TokenRows SequencesIn(const LayerCall& call) const {
    return {.first = chunk_.first_row(), .tokens = targets_.In(call).dim(1)};
  }

 private:
  const OperandPlace targets_;
  const Range samples_;
  const Op::Chunk chunk_;
};

// The sums of each sequence of the step (Op.step_sequences).
class SequenceSums {
 public:
  explicit SequenceSums(const OpBinding& op)
      : rows_(op),
        first_(op.Piece(op.view().input("logits").dims(0).sections(0)).begin) {
    if (op.op().step_sequences() == 0) return;
    losses_ = op.Sum(kSequenceLossesSum);
    counts_ = op.Sum(kSequenceTokensSum);
    exist_ = true;
  }

  void AddTo(const LayerCall& call, CrossEntropyArgs& args) const {
    if (!exist_) return;
    args.sequences = rows_.SequencesIn(call);
    const int64_t sample = call.context.first_sample + first_;
    const int64_t rows = args.targets.elements();
    const int64_t begin = sample + args.sequences.Of(0);
    const int64_t end = sample + args.sequences.Of(rows - 1) + 1;
    args.sequence_losses = losses_.In(call).Slice(0, begin, end);
    args.sequence_counts = counts_.In(call).Slice(0, begin, end);
  }

 private:
  const TargetRows rows_;
  const int64_t first_;  // of the micro-batch's sequences, the first one here
  SumTarget losses_;
  SumTarget counts_;
  bool exist_ = false;
};

constexpr int64_t kParts = 3;

// Of all ranks, `rows` rows each.
Tensor PartsOfAll(const Tensor& parts, int64_t rows) {
  if (parts.raw() == nullptr) return parts;
  return parts.View({parts.elements() / (rows * kParts), rows, kParts});
}

class CrossEntropyLayer final : public Layer {
 public:
  explicit CrossEntropyLayer(const OpBinding& op)
      : logits_(op.Input("logits")),
        targets_(op),
        parts_(op.Input("parts")),
        columns_(op.Piece(SectionOf(op))),
        vocabulary_(WholeOf(SectionOf(op))),
        added_weight_(op.op().added_weight()),
        loss_(op.Sum(is_added() ? kAddedLossSum : kLossSum)),
        sequences_(op) {
    if (!is_added()) tokens_ = op.Sum(kTokensSum);
  }

  void Forward(const LayerCall& call) const override {
    CrossEntropyArgs args = ArgsOf(call);
    args.loss_sum = loss_.In(call);
    if (!is_added()) args.count = tokens_.In(call);
    args.counts = loss_.adds();
    sequences_.AddTo(call, args);
    CrossEntropy(call.device, args);
  }

  // The loss is counted already.
  void Recompute(const LayerCall& call) const override {
    CrossEntropy(call.device, ArgsOf(call));
  }

 private:
  // To the model's loss.
  bool is_added() const { return added_weight_ > 0; }

  CrossEntropyArgs ArgsOf(const LayerCall& call) const {
    const Tensor targets = targets_.In(call);
    const double weight = is_added() ? added_weight_ : 1;
    return {.logits = logits_.In(call),
            .targets = targets,
            .gradient = call.context.training,
            .gradient_scale =
                static_cast<float>(weight * call.context.gradient_scale),
            .parts = PartsOfAll(parts_.In(call), targets.elements()),
            .first_column = columns_.begin,
            .columns = vocabulary_ > 0 ? columns_.size() : -1,
            .vocabulary = vocabulary_,
            .counts = false};
  }

  const OperandPlace logits_;
  const TargetRows targets_;
  const OperandPlace parts_;
  const Range columns_;  // that this rank has
  const int64_t vocabulary_;
  const double added_weight_;
  const SumTarget loss_;
  SumTarget tokens_;
  const SequenceSums sequences_;
};

class CrossEntropyPartsLayer final : public Layer {
 public:
  explicit CrossEntropyPartsLayer(const OpBinding& op)
      : logits_(op.Input("logits")),
        targets_(op),
        parts_(op.Output("parts")),
        columns_(op.Piece(SectionOf(op))),
        vocabulary_(WholeOf(SectionOf(op))) {}

  void Forward(const LayerCall& call) const override {
    const Tensor targets = targets_.In(call);
    CrossEntropyParts(
        call.device,
        {.logits = logits_.In(call),
         .targets = targets,
         .parts = parts_.In(call).View({targets.elements(), kParts}),
         .first_column = columns_.begin,
         .columns = columns_.size(),
         .vocabulary = vocabulary_});
  }

 private:
  const OperandPlace logits_;
  const TargetRows targets_;
  const OperandPlace parts_;
  const Range columns_;  // that this rank has
  const int64_t vocabulary_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewCrossEntropy(const OpBinding& op) {
  return std::make_unique<CrossEntropyLayer>(op);
}

absl::StatusOr<std::unique_ptr<Layer>> NewCrossEntropyParts(
    const OpBinding& op) {
  return std::make_unique<CrossEntropyPartsLayer>(op);
}

}  // namespace troupe
