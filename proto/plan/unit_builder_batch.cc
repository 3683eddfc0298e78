// The ops of a unit that read the batch: what all others are made of, and the
// loss.
#include "proto/plan/batch_sources.h"
#include "proto/plan/operands.h"
#include "proto/plan/ops/op_view.h"
#include "proto/plan/ports.h"
#include "proto/plan/precision.h"
#include "proto/plan/tensor_spec.h"
#include "proto/plan/unit_builder.h"

namespace troupe {

int UnitBuilder::Batch(const BatchTensor& tensor) {
  const std::string& name = tensor.tensor().name();
  for (const int t : TensorsOfHome(table_, TensorSpec::BATCH)) {
    if (table_.tensors(t).name() == name) return t;
  }
  read_.push_back(tensor);
  TensorSpec& read = *table_.add_tensors();
  read = tensor.tensor();
  read.set_home(TensorSpec::BATCH);
  // Nothing lies before it that is trained.
  read.set_no_gradient(IsComputeType(read.dtype()));
  return table_.tensors_size() - 1;
}

void UnitBuilder::AddDocuments(Op& op) {
  if (!options_.shape.isolates_documents) return;
  AddInput(op, "documents",
           Batch(BatchTensorOf(kBatchDocuments, kDocumentStartsSource,
                               options_.shape)));
}

int UnitBuilder::TableOf(const EmbedArgs& args) {
  for (int p = 0; p < unit_.parameters_size(); ++p) {
    if (unit_.parameters(p).name() == args.tokens) return p;
  }
  return Parameter(args.tokens,
                   {DimOf({{Dim::VOCABULARY, args.vocabulary}}), args.hidden},
                   troupe::Parameter::NORMAL, args.init_std);
}

int UnitBuilder::Embed(const EmbedArgs& args) {
  const int ids =
      Batch(args.ids != nullptr
                ? *args.ids
                : BatchTensorOf(kBatchTokens, kTokensSource, options_.shape));
  const int y = Tensor("embedded", {batch_, sequence_, args.hidden},
                       options_.shape.dtype);
  Op& op = NewOp(Op::EMBED);
  AddInput(op, "tokens", ids);
  if (!args.positions.empty()) AddDocuments(op);
  AddOutput(op, "y", y);
  op.add_parameters(TableOf(args));
  if (!args.positions.empty()) {
    op.add_parameters(
        Parameter(args.positions,
                  {DimOf({{Dim::POSITIONS, args.positions_max}}), args.hidden},
                  troupe::Parameter::NORMAL, args.init_std));
  }
  return y;
}

void UnitBuilder::Loss(const LossArgs& args) {
  const Dim vocabulary = DimOf({{Dim::VOCABULARY, args.vocabulary}});
  const int logits =
      Tensor("logits", {batch_, sequence_, vocabulary}, options_.shape.dtype);
  table_.mutable_tensors(logits)->set_row_alignment(kFlatAlignment);
  const int targets = Batch(
      args.targets != nullptr
          ? *args.targets
          : BatchTensorOf(kBatchTargets, kNextTokensSource, options_.shape));
  const Dim width = ColumnDimOf(table_.tensors(args.x));
  int weight = 0;
  if (args.tied_to.empty()) {
    weight = Parameter(args.weight, {vocabulary, width},
                       troupe::Parameter::NORMAL, args.init_std);
  } else {
    Unit::Tied& tied = *unit_.add_tied();
    tied.set_unit(args.tied_unit);
    tied.set_parameter(args.tied_to);
    weight = unit_.parameters_size() + unit_.tied_size() - 1;
  }
  Op& projection = NewOp(Op::LINEAR);
  projection.mutable_linear();
  AddInput(projection, "x", args.x);
  AddOutput(projection, "y", logits);
  projection.add_parameters(weight);
  Op& loss = NewOp(Op::CROSS_ENTROPY);
  loss.set_added_weight(args.added_weight);
  if (args.added_weight == 0) {
    loss.set_step_sequences(options_.shape.step_sequences);
  }
  AddInput(loss, "logits", logits);
  AddInput(loss, "targets", targets);
}

}  // namespace troupe
