#include "proto/plan/check_units.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/check_edges.h"
#include "proto/plan/check_low_rank.h"
#include "proto/plan/exchange_places.h"
#include "proto/plan/index.h"
#include "proto/plan/ops/op_rules.h"
#include "proto/plan/place_unit.h"
#include "proto/plan/ports.h"
#include "proto/plan/precision.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {
namespace {

// So that no sum of bytes overflows.
constexpr int64_t kElementsMax = int64_t{1} << 48;

absl::Status Fault(absl::string_view what) {
  return absl::FailedPreconditionError(what);
}

// One table: each tensor has a size and one maker, which comes before its
// readers.
class UnitTableCheck {
 public:
  UnitTableCheck(const UnitTable& table, int index)
      : table_(table),
        index_(index),
        made_(static_cast<size_t>(table.tensors_size()), false),
        read_(made_) {}

  absl::Status Run() {
    for (int t = 0; t < table_.tensors_size(); ++t) {
      const TensorSpec& tensor = table_.tensors(t);
      RETURN_IF_ERROR(CheckTensor(tensor));
      made_[t] = tensor.home() == TensorSpec::INPUT ||
                 tensor.home() == TensorSpec::BATCH;
    }
    for (int op = 0; op < table_.ops_size(); ++op) {
      RETURN_IF_ERROR(CheckOp(op));
    }
    RETURN_IF_ERROR(CheckPorts());
    for (int op = 0; op < table_.ops_size(); ++op) {
      for (const Op::Operand& input : table_.ops(op).backward_inputs()) {
        if (IsIndexIn(input.tensor(), table_.tensors_size()) &&
            made_[input.tensor()]) {
          continue;
        }
        return At(op, absl::StrCat("reads tensor ", input.tensor(),
                                   " backward, which no op makes"));
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status CheckTensor(const TensorSpec& tensor) const {
    const bool computes = IsComputeType(tensor.dtype()) ||
                          tensor.dtype() == I32 || tensor.dtype() == F64;
    if (!computes || tensor.dims().empty() || tensor.dims_size() > 4) {
      return Of(tensor, "has no type or not 1 to 4 dims");
    }
    int64_t elements = 1;
    for (const Dim& dim : tensor.dims()) {
      if (dim.sections().empty()) return Of(tensor, "has a dim without size");
      int64_t size = 0;
      for (const Dim::Section& section : dim.sections()) {
        if (section.count() < 1 || section.width() < 1 ||
            section.count() > kElementsMax / section.width()) {
          return Of(tensor, absl::StrCat("has a dim of ", section.count(),
                                         " times ", section.width()));
        }
        size = std::min(kElementsMax, size + SectionSize(section));
      }
      elements =
          size > kElementsMax / elements ? kElementsMax : elements * size;
    }
    if (elements >= kElementsMax || tensor.row_alignment() < 0 ||
        tensor.row_alignment() > kElementsMax / elements) {
      return Of(tensor, "is too large");
    }
    return absl::OkStatus();
  }

  // An output is made here, and what comes from others is read.
  absl::Status CheckPorts() const {
    int inputs = 0;
    int outputs = 0;
    for (int t = 0; t < table_.tensors_size(); ++t) {
      const TensorSpec& tensor = table_.tensors(t);
      if (tensor.home() == TensorSpec::OUTPUT) {
        ++outputs;
        if (!made_[t]) return Of(tensor, "is an output, which no op makes");
        if (table_.tensors(SameAs(table_, t)).home() == TensorSpec::INPUT) {
          return Of(tensor,
                    "is an output that is an input: its readers are to read "
                    "the unit that makes it");
        }
      }
      if (tensor.home() != TensorSpec::INPUT) continue;
      ++inputs;
      if (!read_[t]) return Of(tensor, "is an input, which no op reads");
    }
    const size_t of_batch = TensorsOfHome(table_, TensorSpec::BATCH).size();
    if (inputs <= kPortsMax && outputs <= kPortsMax && of_batch <= kPortsMax) {
      return absl::OkStatus();
    }
    return Fault(absl::StrCat("table ", index_, ": has ", inputs, " inputs, ",
                              outputs, " outputs and ", of_batch,
                              " tensors of the batch, more than ", kPortsMax));
  }

  absl::Status CheckOp(int index) {
    const Op& op = table_.ops(index);
    if (op.kind() == Op::KIND_UNSPECIFIED || !Op::Kind_IsValid(op.kind())) {
      return At(index, "has no kind");
    }
    RETURN_IF_ERROR(CheckOperands(index));
    RETURN_IF_ERROR(CheckRound(index));
    for (const Op::Operand& input : op.inputs()) {
      if (!IsIndexIn(input.tensor(), table_.tensors_size())) {
        return At(index, absl::StrCat("reads tensor ", input.tensor(), " of ",
                                      table_.tensors_size()));
      }
      read_[input.tensor()] = true;
      if (made_[input.tensor()]) continue;
      return At(index,
                absl::StrCat("reads ", table_.tensors(input.tensor()).name(),
                             ", which no op before it makes"));
    }
    for (const Op::Operand& output : op.outputs()) {
      if (!IsIndexIn(output.tensor(), table_.tensors_size())) {
        return At(index, absl::StrCat("makes tensor ", output.tensor(), " of ",
                                      table_.tensors_size()));
      }
      if (made_[output.tensor()]) {
        return At(index,
                  absl::StrCat("makes ", table_.tensors(output.tensor()).name(),
                               ", which is there already"));
      }
      made_[output.tensor()] = true;
    }
    if (op.kind() != Op::LOW_RANK) return absl::OkStatus();
    const std::string fault = LowRankFault({table_, op});
    return fault.empty() ? absl::OkStatus() : At(index, fault);
  }

  // The operands are those of its kind, of tensors that fit.
  absl::Status CheckOperands(int index) const {
    const Op& op = table_.ops(index);
    const std::vector<OperandRule> rules = OperandsOf(op.kind());
    int known = 0;
    for (const OperandRule& rule : rules) {
      int found = 0;
      for (const Op::Operand& operand : rule.backward ? op.backward_inputs()
                                        : rule.output ? op.outputs()
                                                      : op.inputs()) {
        if (operand.name() != rule.name) continue;
        ++found;
        if (!IsIndexIn(operand.tensor(), table_.tensors_size())) continue;
        const TensorSpec& tensor = table_.tensors(operand.tensor());
        const Dim& columns = tensor.dims(tensor.dims_size() - 1);
        if ((rule.dims > 0 && tensor.dims_size() != rule.dims) ||
            (rule.sections > 0 && columns.sections_size() != rule.sections)) {
          return At(index, absl::StrCat(rule.name, " has ", tensor.dims_size(),
                                        " dims, the last of ",
                                        columns.sections_size(), " sections"));
        }
      }
      if (found > 1 || (found == 0 && !rule.optional)) {
        return At(index, absl::StrCat("has ", found, " operands ", rule.name));
      }
      known += found;
    }
    const int given =
        op.inputs_size() + op.outputs_size() + op.backward_inputs_size();
    if (known == given) return absl::OkStatus();
    return At(index, "has operands that its kind has not");
  }

  // Of rows that ranks exchange: a table of all ranks' offsets, and rows of one
  // length. What is no tensor of the table is refused elsewhere.
  absl::Status CheckRound(int index) const {
    const Op& op = table_.ops(index);
    const bool regroups = op.kind() == Op::REGROUP || op.kind() == Op::UNGROUP;
    if (!regroups && !(op.kind() == Op::EXCHANGE && op.has_round())) {
      return absl::OkStatus();
    }
    const OpView view(table_, op);
    const int offsets = view.Input("offsets");
    const int x = view.Input("x");
    const int y = view.Output(op.kind() == Op::REGROUP ? "rows" : "y");
    for (const int tensor : {offsets, x, y}) {
      if (!IsIndexIn(tensor, table_.tensors_size())) {
        return At(index, "is of a round, but lacks offsets or rows");
      }
    }
    const TensorSpec& table = table_.tensors(offsets);
    const int ranks = op.round().ranks();
    const int64_t experts = ColumnsOf(table) - 1;
    if (table.dtype() != I32 || ranks < 1 || RowsOf(table) != ranks ||
        experts < 1 || experts % ranks != 0 || op.round().number() < 0) {
      return At(index, absl::StrCat("is of a round of ", ranks,
                                    " ranks, but offsets are [", RowsOf(table),
                                    ", ", ColumnsOf(table), "]"));
    }
    const TensorSpec& from = table_.tensors(x);
    const TensorSpec& to = table_.tensors(y);
    if (from.dtype() == to.dtype() && from.dims_size() == to.dims_size() &&
        ExchangedColumns(from) == ExchangedColumns(to)) {
      return absl::OkStatus();
    }
    return At(index, absl::StrCat("makes ", to.name(), " of ", from.name(),
                                  ", whose rows are others"));
  }

  absl::Status Of(const TensorSpec& tensor, absl::string_view what) const {
    return Fault(
        absl::StrCat("table ", index_, ", tensor ", tensor.name(), ": ", what));
  }
  absl::Status At(int op, absl::string_view what) const {
    return Fault(absl::StrCat("table ", index_, ", op ", op, " ",
                              Op::Kind_Name(table_.ops(op).kind()), ": ",
                              what));
  }

  const UnitTable& table_;
  const int index_;
  std::vector<bool> made_;
  std::vector<bool> read_;
};

bool HasParameter(const Unit& unit, const std::string& name) {
  for (const Parameter& parameter : unit.parameters()) {
    if (parameter.name() == name) return true;
  }
  return false;
}

absl::Status CheckUnitParameters(const Plan& plan, int index) {
  const Unit& unit = plan.units(index);
  const std::string where = absl::StrCat("unit ", index, ": ");
  for (const Parameter& parameter : unit.parameters()) {
    int64_t elements = 1;
    for (const Dim& of : parameter.dims()) {
      const int64_t dim = DimSize(of);
      if (dim < 1 || elements > unit.flat_elements() / dim) elements = -1;
      if (elements < 0) break;
      elements *= dim;
    }
    if (elements < 0 || parameter.offset() < 0 ||
        parameter.offset() + elements > unit.flat_elements()) {
      return Fault(absl::StrCat(where, parameter.name(),
                                " does not lie within ", unit.flat_elements(),
                                " elements"));
    }
  }
  for (const Unit::Tied& tied : unit.tied()) {
    if (IsIndexIn(tied.unit(), plan.units_size()) &&
        HasParameter(plan.units(tied.unit()), tied.parameter())) {
      continue;
    }
    return Fault(absl::StrCat(where, "is tied to ", tied.parameter(),
                              " of unit ", tied.unit(),
                              ", which the plan does not have"));
  }
  return absl::OkStatus();
}

struct NamedBytes {
  const char* name;
  int64_t plan;
  int64_t ops;
};

absl::Status CheckUnit(const Plan& plan, int index,
                       const std::vector<UnitPlaces>& places) {
  const Unit& unit = plan.units(index);
  const std::string where = absl::StrCat("unit ", index, ": ");
  RETURN_IF_ERROR(CheckUnitParameters(plan, index));
  if (unit.kind() == Unit::SYNTHETIC) return absl::OkStatus();
  if (!unit.has_table() || !IsIndexIn(unit.table(), plan.tables_size())) {
    return Fault(absl::StrCat(where, "its table is not in the plan"));
  }
  for (const Op& op : plan.tables(unit.table()).ops()) {
    for (const int parameter : op.parameters()) {
      if (IsIndexIn(parameter, unit.parameters_size() + unit.tied_size())) {
        continue;
      }
      return Fault(absl::StrCat(where, Op::Kind_Name(op.kind()),
                                " uses parameter ", parameter, " of ",
                                unit.parameters_size() + unit.tied_size()));
    }
  }
  const UnitPlaces& needs = places[unit.table()];
  for (const NamedBytes& bytes :
       {NamedBytes{"activation", unit.activation_bytes(),
                   needs.activation_bytes},
        NamedBytes{"stash", unit.stash_bytes(), needs.stash_bytes},
        NamedBytes{"weight stash", unit.weight_stash_bytes(),
                   needs.weight_stash_bytes},
        NamedBytes{"workspace", unit.workspace_bytes(), needs.workspace_bytes},
        NamedBytes{"segment", unit.segment_bytes(), needs.segment_bytes},
        NamedBytes{"segment gradient", unit.segment_gradient_bytes(),
                   needs.segment_gradient_bytes},
        NamedBytes{"recomputed", unit.recomputed_bytes(),
                   needs.recomputed_bytes}}) {
    if (bytes.plan == bytes.ops) continue;
    return Fault(absl::StrCat(where, "its ", bytes.name, " has ", bytes.plan,
                              " bytes in the plan, but its ops need ",
                              bytes.ops));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckUnits(const Plan& plan) {
  std::vector<UnitPlaces> places;
  for (int t = 0; t < plan.tables_size(); ++t) {
    RETURN_IF_ERROR(UnitTableCheck(plan.tables(t), t).Run());
    absl::StatusOr<UnitPlaces> placed =
        TryPlaceUnit(plan.tables(t), UnitUse::kTraining);
    if (!placed.ok()) {
      return Fault(absl::StrCat("table ", t, ", ", placed.status().message()));
    }
    places.push_back(*std::move(placed));
  }
  for (int u = 0; u < plan.units_size(); ++u) {
    RETURN_IF_ERROR(CheckUnit(plan, u, places));
  }
  return CheckEdges(plan);
}

}  // namespace troupe
