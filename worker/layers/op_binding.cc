#include "worker/layers/op_binding.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/check.h"
#include "proto/plan/ops/op_rules.h"
#include "proto/plan/parameter_of.h"
#include "proto/plan/precision.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {
namespace {

// The place of the operand of this name; nowhere where there is none. Where it
// lies in the bytes of another tensor, it has its own shape.
template <typename Operands>
TensorPlace PlaceOf(const Operands& operands,
                    const std::vector<TensorPlace>& places,
                    absl::string_view name) {
  for (int i = 0; i < operands.size(); ++i) {
    if (operands.Get(i).name() != name) continue;
    TensorPlace place = places[i];
    place.tensor = operands.Get(i).tensor();
    return place;
  }
  return {};
}

bool Fits(const Parameter& parameter, const std::vector<int64_t>& shape) {
  if (!IsComputeType(parameter.dtype())) return false;
  const std::vector<int64_t> local = LocalShape(parameter);
  if (local.size() != shape.size()) return false;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (local[i] < 1 || (shape[i] >= 0 && local[i] != shape[i])) return false;
  }
  return true;
}

// Whether the axis cuts or lays any tensor of the unit: along others, ranks do
// the same for other micro-batches, or hold other units.
bool IsAxisOf(const UnitTable& table, const std::string& axis) {
  for (const TensorSpec& tensor : table.tensors()) {
    for (const Layout* const layout :
         {&tensor.layout(), &tensor.gradient_layout()}) {
      for (const Layout::AxisLayout& of : layout->axes()) {
        if (of.axis() == axis) return true;
      }
    }
    for (const Dim& dim : tensor.dims()) {
      for (const Dim::Section& section : dim.sections()) {
        if (CutBy(section, axis) != nullptr) return true;
      }
    }
  }
  return false;
}

bool CutsRows(const TensorSpec& tensor, const std::string& axis) {
  for (int d = 0; d + 1 < tensor.dims_size(); ++d) {
    for (const Dim::Section& section : tensor.dims(d).sections()) {
      if (CutBy(section, axis) != nullptr) return true;
    }
  }
  return false;
}

}  // namespace

Tensor SumTarget::In(const LayerCall& call) const {
  CHECK(call.scalars != nullptr && place_.elements > 0)
      << "an op adds to a sum that its plan lacks";
  return Tensor(call.scalars + place_.first, DType::kF64, {place_.elements});
}

OperandPlace OpBinding::Input(absl::string_view name) const {
  return At(PlaceOf(op().inputs(), places().inputs, name));
}

OperandPlace OpBinding::Output(absl::string_view name) const {
  return At(PlaceOf(op().outputs(), places().outputs, name));
}

OperandPlace OpBinding::InputGradient(absl::string_view name) const {
  return GradientAt(PlaceOf(op().inputs(), places().input_gradients, name));
}

OperandPlace OpBinding::AddedGradient(absl::string_view name) const {
  return GradientAt(PlaceOf(op().inputs(), places().added_gradients, name));
}

OperandPlace OpBinding::OutputGradient(absl::string_view name) const {
  return GradientAt(PlaceOf(op().outputs(), places().output_gradients, name));
}

OperandPlace OpBinding::BackwardInput(absl::string_view name) const {
  return At(PlaceOf(op().backward_inputs(), places().backward_inputs, name));
}

OperandPlace OpBinding::BackwardInputGradient(absl::string_view name) const {
  return GradientAt(
      PlaceOf(op().backward_inputs(), places().backward_input_gradients, name));
}

absl::optional<OpBinding> OpBinding::FusedMaker(absl::string_view input,
                                                Op::Kind kind) const {
  const int maker = MakerOf(unit_.table, view().Input(input));
  if (maker < 0) return absl::nullopt;
  const Op& op = unit_.table.ops(maker);
  if (op.kind() != kind || !op.fused()) return absl::nullopt;
  return OpBinding(unit_, maker);
}

absl::optional<OpBinding> OpBinding::FusedReader(absl::string_view output,
                                                 Op::Kind kind) const {
  const int tensor = view().Output(output);
  for (int i = 0; i < unit_.table.ops_size(); ++i) {
    const Op& op = unit_.table.ops(i);
    if (op.kind() != kind || !op.fused()) continue;
    for (const Op::Operand& read : op.inputs()) {
      if (read.tensor() == tensor) return OpBinding(unit_, i);
    }
  }
  return absl::nullopt;
}

absl::StatusOr<ParameterPlace> OpBinding::Parameter(
    int index, const std::vector<int64_t>& shape) const {
  if (index >= op().parameters_size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("op ", index_, ", ", Op::Kind_Name(op().kind()), ", has ",
                     op().parameters_size(),
                     " parameters, but needs more; "
                     "scheduler and worker must be of one build"));
  }
  const int number = op().parameters(index);
  const troupe::Parameter& parameter =
      ParameterOf(unit_.units, unit_.unit, number);
  if (!Fits(parameter, shape)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "parameter ", parameter.name(), " is ",
        ElementType_Name(parameter.dtype()), "[",
        absl::StrJoin(LocalShape(parameter), ", "), "] in the plan, but op ",
        index_, ", ", Op::Kind_Name(op().kind()), ", needs F32, BF16 or F16 [",
        absl::StrJoin(shape, ", "), "] (-1: any size)"));
  }
  return ParameterPlace(parameter, IsTied(unit_.unit, number));
}

std::vector<SliceRun> OpBinding::Positions(absl::string_view input) const {
  std::vector<SliceRun> runs;
  int64_t local = 0;
  for (const Range& run :
       SectionRuns(view().input(input).dims(1).sections(0), unit_.place)) {
    runs.push_back({.whole = run.begin, .local = local, .count = run.size()});
    local += run.size();
  }
  return runs;
}

TokenRows OpBinding::RowsOfSequences(absl::string_view input) const {
  const TensorSpec& spec = view().input(input);
  const Dim::Section& positions = spec.dims(1).sections(0);
  for (const Dim::Section::Cut& cut : positions.cuts()) {
    if (!cut.rows()) continue;
    const int64_t rows = DimSize(spec.dims(0)) * positions.count();
    return {.first = place().On(cut.axis()).index * rows,
            .tokens = cut.whole()};
  }
  return {.first = 0, .tokens = positions.count()};
}

int OpBinding::RankAlong(const std::vector<std::string>& axes) const {
  int rank = 0;
  for (const std::string& axis : axes) {
    const troupe::Piece place = unit_.place.On(axis);
    rank = rank * place.count + place.index;
  }
  return rank;
}

Range OpBinding::SamplesOf(absl::string_view batch) const {
  const std::string name = RulesOf(view()).batch_rows;
  const TensorSpec& rows =
      view().HasInput(name) ? view().input(name) : view().output(name);
  const Range here = Piece(rows.dims(0).sections(0));
  const Range loaded = Piece(view().input(batch).dims(0).sections(0));
  return {here.begin - loaded.begin, here.end - loaded.begin};
}

Documents OpBinding::DocumentsHere() const {
  if (!view().HasInput("documents")) return Documents();
  return Documents(Input("documents"), SamplesOf("documents"));
}

bool OpBinding::AddsOnce(absl::string_view output) const {
  for (const Layout::AxisLayout& axis : view().output(output).layout().axes()) {
    if (axis.placement() != Layout::PARTIAL) continue;
    if (unit_.place.On(axis.axis()).index > 0) return false;
  }
  return true;
}

bool OpBinding::AddsForRowsOf(absl::string_view input) const {
  if (unit_.place.mesh == nullptr) return true;
  const TensorSpec& rows = view().input(input);
  for (const Axis& axis : unit_.place.mesh->axes()) {
    if (unit_.place.On(axis.name()).index == 0) continue;
    if (IsAxisOf(unit_.table, axis.name()) && !CutsRows(rows, axis.name())) {
      return false;
    }
  }
  return true;
}

SumTarget OpBinding::Sum(absl::string_view name) const {
  for (const SumRule& rule : RulesOf(view()).sums) {
    if (rule.name != name) continue;
    if (unit_.sums == nullptr) return {};
    const absl::optional<SumPlace> place =
        FindSum(*unit_.sums, name,
                rule.own ? absl::optional<int>(unit_.index) : absl::nullopt);
    return SumTarget(place.value_or(SumPlace()), AddsForRowsOf(rule.rows_of));
  }
  CHECK(false) << Op::Kind_Name(op().kind()) << " declares no sum " << name;
  return {};
}

MaskSource OpBinding::OwnMask() const {
  if (!op().has_mask()) return MaskSource();
  const TensorSpec& masked = unit_.table.tensors(op().inputs(0).tensor());
  MaskSource::Options options = {
      .seed = unit_.seed,
      .layer = unit_.unit.layer(),
      .first_sample = Piece(masked.dims(0).sections(0)).begin};
  const Dim::Section& second = masked.dims(1).sections(0);
  const bool are_scores = second.kind() == Dim::HEADS;
  const Dim::Section& heads = are_scores ? second : masked.dims(2).sections(0);
  options.first_head = Piece(heads).begin;
  options.heads = WholeCount(heads);
  if (are_scores) return MaskSource(op().mask(), options);
  // Columns that are cut are of one kind.
  const Dim::Section& columns = masked.dims(2).sections(0);
  const Range own = Piece(columns);
  options.columns = ColumnsOf(masked);
  options.own_columns = {0, options.columns};
  if (!columns.cuts().empty()) {
    options.columns = WholeCount(columns) * columns.width();
    options.own_columns = {own.begin * columns.width(),
                           own.end * columns.width()};
  }
  options.rows_per_sample = WholeCount(second);
  options.rows = RowsOn(masked, unit_.place);
  return MaskSource(op().mask(), options);
}

MaskSource OpBinding::MaskOf(absl::string_view input) const {
  const absl::optional<OpBinding> dropout = FusedMaker(input, Op::DROPOUT);
  return dropout.has_value() ? dropout->OwnMask() : MaskSource();
}

}  // namespace troupe
