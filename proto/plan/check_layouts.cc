#include "proto/plan/check_layouts.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/ops/op_rules.h"
#include "proto/plan/segments.h"
#include "proto/plan/slices.h"

namespace troupe {
namespace {

AxisCut CutAlong(const Layout& layout, const std::string& axis) {
  for (const Layout::AxisLayout& of : layout.axes()) {
    if (of.axis() != axis) continue;
    const bool shard = of.placement() == Layout::SHARD;
    return {.placement = of.placement(),
            .dim = shard || of.has_panel() ? of.dim() : 0,
            .shift = shard ? of.shift() : 0,
            .panel = of.has_panel() ? of.panel() : -1};
  }
  return {};
}

std::string Text(const AxisCut& cut) {
  if (cut.panel >= 0) {
    return absl::StrCat(Layout::Placement_Name(cut.placement), "(", cut.dim,
                        ") of place ", cut.panel);
  }
  if (cut.placement != Layout::SHARD) {
    return Layout::Placement_Name(cut.placement);
  }
  return absl::StrCat(
      "SHARD(", cut.dim, ")",
      cut.shift == 0 ? "" : absl::StrCat(" of ", cut.shift, " ranks before"));
}

// Neither cut nor differentiated with the op: tokens, and what a softmax is put
// together from.
bool IsAside(const TensorSpec& tensor) {
  return tensor.dtype() == I32 ||
         tensor.dims(tensor.dims_size() - 1).sections(0).kind() ==
             Dim::STATISTICS;
}

// One table along one axis.
class TableCheck {
 public:
  TableCheck(const UnitTable& table, int index, const Axis& axis,
             const std::vector<Dim::Kind>& kinds)
      : table_(table), index_(index), axis_(axis) {
    wishes_.kinds = kinds;
    for (const TensorSpec& tensor : table.tensors()) {
      AxisCut wish = CutAlong(tensor.layout(), axis.name());
      if (wish.placement == Layout::PARTIAL) wish = {};
      wishes_.tensors.push_back(wish);
      wishes_.gradients.push_back(GradientWish(tensor, wish, kinds));
    }
  }

  absl::Status Run() const {
    for (int t = 0; t < table_.tensors_size(); ++t) {
      RETURN_IF_ERROR(CheckSections(t));
    }
    for (int op = 0; op < table_.ops_size(); ++op) {
      if (IsExchange(table_.ops(op).kind())) {
        RETURN_IF_ERROR(table_.ops(op).exchange().axis() == axis_.name()
                            ? CheckExchange(op)
                            : CheckExchangeAlongAnother(op));
      } else {
        RETURN_IF_ERROR(CheckOp(op));
      }
    }
    return absl::OkStatus();
  }

 private:
  TensorCut CutOfTensor(int tensor) const {
    const TensorSpec& spec = table_.tensors(tensor);
    return {CutAlong(spec.layout(), axis_.name()),
            CutAlong(spec.gradient_layout(), axis_.name())};
  }

  // A dim is cut where the layout says so, and nowhere else.
  absl::Status CheckSections(int index) const {
    const TensorSpec& tensor = table_.tensors(index);
    const AxisCut cut = CutOfTensor(index).value;
    for (int d = 0; d < tensor.dims_size(); ++d) {
      const bool wanted = cut.placement == Layout::SHARD && cut.dim == d;
      // Parts of all ranks lie behind one another in the first dim.
      if (IsAside(tensor)) continue;
      for (const Dim::Section& section : tensor.dims(d).sections()) {
        if ((CutBy(section, axis_.name()) != nullptr) == wanted) continue;
        return Fault(absl::StrCat("tensor ", tensor.name(), " is ", Text(cut),
                                  ", but its dim ", d, " is ",
                                  wanted ? "whole" : "cut"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckOp(int index) const {
    const Op& op = table_.ops(index);
    const OpCut cut = CutOf({table_, op}, wishes_);
    std::set<Layout::Placement> placements;
    for (int i = 0; i < op.inputs_size(); ++i) {
      RETURN_IF_ERROR(CheckOperand(index, "reads", op.inputs(i).tensor(),
                                   cut.inputs[i], placements));
    }
    for (int i = 0; i < op.outputs_size(); ++i) {
      RETURN_IF_ERROR(CheckOperand(index, "makes", op.outputs(i).tensor(),
                                   cut.outputs[i], placements));
    }
    // Products and tables turn one into the other, or have whole weights for
    // some rows, and norms of cut rows have moments of whole ones; all else
    // computes on one slice of everything.
    const bool turns = op.kind() == Op::LINEAR || op.kind() == Op::EMBED ||
                       op.kind() == Op::MOMENTS ||
                       op.kind() == Op::SPLIT_NORM || op.kind() == Op::PRODUCT;
    if (turns || placements.size() <= 1) return absl::OkStatus();
    return At(index, "reads and makes some tensors whole and others in slices");
  }

  absl::Status CheckOperand(int op, absl::string_view verb, int tensor,
                            const TensorCut& needed,
                            std::set<Layout::Placement>& placements) const {
    const TensorSpec& spec = table_.tensors(tensor);
    if (IsAside(spec)) return absl::OkStatus();
    const TensorCut lies = CutOfTensor(tensor);
    placements.insert(lies.value.placement);
    if (!(lies.value == needed.value)) {
      return At(op,
                absl::StrCat(verb, " ", spec.name(), " as ", Text(needed.value),
                             ", but it is ", Text(lies.value)));
    }
    if (lies.gradient == needed.gradient) return absl::OkStatus();
    return At(op, absl::StrCat(verb, " ", spec.name(), ", whose gradient is ",
                               Text(needed.gradient), " here, but ",
                               Text(lies.gradient), " elsewhere"));
  }

  // An all-to-all is between blocks: what is sent is packed along the dim that
  // is cut behind it, what is received unpacked along the one before.
  absl::Status CheckBlocks(int index, const AxisCut& from,
                           const AxisCut& to) const {
    const auto fits = [&](const Op& op, Op::Kind kind, int dim) {
      return op.kind() == kind && op.pack().dim() == dim &&
             op.pack().blocks() == axis_.size();
    };
    const Op& exchange = table_.ops(index);
    bool packed = false;
    bool unpacked = true;
    for (const Op& op : table_.ops()) {
      for (const Op::Operand& made : op.outputs()) {
        if (made.tensor() != exchange.inputs(0).tensor()) continue;
        packed = fits(op, Op::PACK, to.dim);
      }
      for (const Op::Operand& read : op.inputs()) {
        if (read.tensor() != exchange.outputs(0).tensor()) continue;
        unpacked = unpacked && fits(op, Op::UNPACK, from.dim);
      }
    }
    if (packed && unpacked) return absl::OkStatus();
    return At(index,
              absl::StrCat("moves what is not ", packed ? "unpacked" : "packed",
                           " in ", axis_.size(), " blocks of dim ",
                           packed ? from.dim : to.dim));
  }

  absl::Status CheckReturn(int index) const {
    const Op& op = table_.ops(index);
    const TensorCut x = CutOfTensor(op.inputs(0).tensor());
    const TensorCut y = CutOfTensor(op.inputs(1).tensor());
    const Collective back = op.exchange().backward();
    const bool shifts = back == SHIFT && TurnOf(x.value, y.value) == SHIFT;
    const bool sends = back == BROADCAST &&
                       TurnOf(y.value, x.value) == BROADCAST &&
                       op.exchange().root() == x.value.panel;
    if (op.exchange().forward() == COLLECTIVE_UNSPECIFIED &&
        (shifts || sends)) {
      return absl::OkStatus();
    }
    return At(index, absl::StrCat(
                         "brings back ", Text(x.value), " from ", Text(y.value),
                         " by ", Collective_Name(back),
                         back == BROADCAST
                             ? absl::StrCat(" of place ", op.exchange().root())
                             : ""));
  }

  // What moves between the ranks of one axis lies along others as it did.
  absl::Status CheckExchangeAlongAnother(int index) const {
    const Op& op = table_.ops(index);
    const int x = op.inputs(0).tensor();
    const int y = op.kind() == Op::RETURN ? op.inputs(1).tensor()
                                          : op.outputs(0).tensor();
    if (IsAside(table_.tensors(x))) return absl::OkStatus();
    const TensorCut from = CutOfTensor(x);
    const TensorCut to = CutOfTensor(y);
    for (const auto& [before, behind] :
         {std::pair(from.value, to.value), {from.gradient, to.gradient}}) {
      if (before == behind) continue;
      return At(index, absl::StrCat("is along ", op.exchange().axis(),
                                    ", and does not make ", Text(behind),
                                    " of ", Text(before)));
    }
    return absl::OkStatus();
  }

  absl::Status CheckExchange(int index) const {
    const Op& op = table_.ops(index);
    if (op.kind() == Op::RETURN) return CheckReturn(index);
    const TensorCut from = CutOfTensor(op.inputs(0).tensor());
    const TensorCut to = CutOfTensor(op.outputs(0).tensor());
    const auto forward = TurnOf(from.value, to.value);
    // A shift goes back the way that it came; what has no gradient, not at all.
    const auto backward = table_.tensors(op.inputs(0).tensor()).no_gradient()
                              ? absl::make_optional(COLLECTIVE_UNSPECIFIED)
                          : forward == SHIFT
                              ? TurnOf(from.gradient, to.gradient)
                              : TurnOf(to.gradient, from.gradient);
    const bool aside = IsAside(table_.tensors(op.inputs(0).tensor()));
    if (forward != op.exchange().forward() ||
        (!aside && backward != op.exchange().backward())) {
      return At(index,
                absl::StrCat("does ", Collective_Name(op.exchange().forward()),
                             " and ", Collective_Name(op.exchange().backward()),
                             " in backward, which does not make ",
                             Text(to.value), " of ", Text(from.value), ", and ",
                             Text(from.gradient), " of ", Text(to.gradient)));
    }
    if (forward == ALL_TO_ALL) return CheckBlocks(index, from.value, to.value);
    if (forward == BROADCAST && op.exchange().root() != to.value.panel) {
      return At(index, absl::StrCat("makes ", Text(to.value), " of what place ",
                                    op.exchange().root(), " has"));
    }
    return absl::OkStatus();
  }

  absl::Status Fault(absl::string_view what) const {
    return absl::FailedPreconditionError(
        absl::StrCat("table ", index_, ": along ", axis_.name(), ", ", what));
  }
  absl::Status At(int op, absl::string_view what) const {
    return Fault(absl::StrCat("op ", op, " ",
                              Op::Kind_Name(table_.ops(op).kind()), " ", what));
  }

  const UnitTable& table_;
  const int index_;
  const Axis& axis_;
  Wishes wishes_;
};

// The kinds of dims that an axis cuts anywhere in the plan.
std::vector<Dim::Kind> KindsCutBy(const Plan& plan, const std::string& axis) {
  std::set<Dim::Kind> kinds;
  const auto look_at = [&](const auto& dims) {
    for (const Dim& dim : dims) {
      for (const Dim::Section& section : dim.sections()) {
        if (CutBy(section, axis) != nullptr) kinds.insert(section.kind());
      }
    }
  };
  for (const UnitTable& table : plan.tables()) {
    for (const TensorSpec& tensor : table.tensors()) look_at(tensor.dims());
  }
  for (const Unit& unit : plan.units()) {
    for (const Parameter& parameter : unit.parameters()) {
      look_at(parameter.dims());
    }
  }
  return {kinds.begin(), kinds.end()};
}

}  // namespace

absl::Status CheckLayouts(const Plan& plan) {
  for (const Axis& axis : plan.mesh().axes()) {
    const std::vector<Dim::Kind> kinds = KindsCutBy(plan, axis.name());
    for (int t = 0; t < plan.tables_size(); ++t) {
      RETURN_IF_ERROR(TableCheck(plan.tables(t), t, axis, kinds).Run());
    }
  }
  return absl::OkStatus();
}

}  // namespace troupe
