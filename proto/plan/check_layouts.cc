#include "proto/plan/check_layouts.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/status.h"
#include "proto/plan/edges.h"
#include "proto/plan/ops/op_rules.h"
#include "proto/plan/ports.h"
#include "proto/plan/segments.h"
#include "proto/plan/slices.h"
#include "proto/plan/statistics.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {
namespace {

// Of a value, or a gradient, of the tensor.
AxisCut CutAlong(const TensorSpec& tensor, const Layout& layout,
                 const std::string& axis) {
  for (const Layout::AxisLayout& of : layout.axes()) {
    if (of.axis() != axis) continue;
    const bool shard = of.placement() == Layout::SHARD;
    const Dim::Section::Cut* const cut =
        shard && of.dim() < tensor.dims_size()
            ? CutBy(tensor.dims(of.dim()).sections(0), axis)
            : nullptr;
    return {.placement = of.placement(),
            .dim = shard || of.has_panel() ? of.dim() : 0,
            .shift = shard ? of.shift() : 0,
            .panel = of.has_panel() ? of.panel() : -1,
            .rows = cut != nullptr && cut->rows()};
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
      "SHARD(", cut.dim, ")", cut.rows ? " of all samples' rows" : "",
      cut.shift == 0 ? "" : absl::StrCat(" of ", cut.shift, " ranks before"));
}

// One table along one axis.
class LayoutCheck {
 public:
  LayoutCheck(const UnitTable& table, int index, const Axis& axis,
              const std::vector<Dim::Kind>& kinds)
      : table_(table), index_(index), axis_(axis) {
    wishes_.kinds = kinds;
    for (const TensorSpec& tensor : table.tensors()) {
      AxisCut wish = CutAlong(tensor, tensor.layout(), axis.name());
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
        RETURN_IF_ERROR(IsAmong(table_.ops(op).exchange().axes())
                            ? CheckExchange(op)
                            : CheckExchangeAlongAnother(op));
      } else {
        RETURN_IF_ERROR(CheckOp(op));
      }
    }
    return absl::OkStatus();
  }

 private:
  using Names = google::protobuf::RepeatedPtrField<std::string>;
  bool IsAmong(const Names& axes) const {
    return std::count(axes.begin(), axes.end(), axis_.name()) > 0;
  }
  static std::string Text(const Names& axes) {
    return absl::StrJoin(axes, " x ");
  }
  static std::string Text(const AxisCut& cut) { return troupe::Text(cut); }

  TensorCut CutOfTensor(int tensor) const {
    const TensorSpec& spec = table_.tensors(tensor);
    return {CutAlong(spec, spec.layout(), axis_.name()),
            CutAlong(spec, spec.gradient_layout(), axis_.name())};
  }

  // A dim is cut where the layout says so, and nowhere else.
  absl::Status CheckSections(int index) const {
    const TensorSpec& tensor = table_.tensors(index);
    const AxisCut cut = CutOfTensor(index).value;
    for (int d = 0; d < tensor.dims_size(); ++d) {
      const bool wanted = cut.placement == Layout::SHARD && cut.dim == d;
      // Parts of all ranks lie behind one another in the first dim.
      if (!IsDifferentiated(tensor)) continue;
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
    if (MixesLayouts(op.kind()) || placements.size() <= 1) {
      return absl::OkStatus();
    }
    return At(index, "reads and makes some tensors whole and others in slices");
  }

  absl::Status CheckOperand(int op, absl::string_view verb, int tensor,
                            const TensorCut& needed,
                            std::set<Layout::Placement>& placements) const {
    const TensorSpec& spec = table_.tensors(tensor);
    if (!IsDifferentiated(spec)) return absl::OkStatus();
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

  // Pieces that are put together to a whole, or made of one, are it one behind
  // the other: what lies before them in memory is not cut into pieces, too, nor
  // do other axes cut what they have.
  absl::Status CheckIsOneRun(int index, int tensor) const {
    const auto puts_together = [](Collective collective) {
      return collective == ALL_GATHER || collective == REDUCE_SCATTER ||
             collective == SLICE;
    };
    const Op::Exchange& exchange = table_.ops(index).exchange();
    const TensorSpec& piece = table_.tensors(tensor);
    const AxisCut cut = CutOfTensor(tensor).value;
    if (cut.placement != Layout::SHARD || cut.panel >= 0 ||
        (!puts_together(exchange.forward()) &&
         !puts_together(exchange.backward()))) {
      return absl::OkStatus();
    }
    const Dim::Section& section = piece.dims(cut.dim).sections(0);
    const Dim::Section::Cut& last = section.cuts(section.cuts_size() - 1);
    bool is_one_run = last.axis() == axis_.name() && !last.zigzag();
    for (int d = 0; d < cut.dim && !last.rows(); ++d) {
      is_one_run = is_one_run && DimSize(piece.dims(d)) == 1;
    }
    if (cut.dim == 0 && piece.dims_size() > 1) {
      for (const auto& other : piece.dims(1).sections(0).cuts()) {
        is_one_run = is_one_run && !other.rows();
      }
    }
    if (is_one_run) return absl::OkStatus();
    return At(index,
              absl::StrCat("puts together ", piece.name(), ", ", Text(cut),
                           ", whose pieces do not lie one behind the "
                           "other in the whole"));
  }

  // A rank's rows of all samples are those of its samples: where the ranks
  // divide them, and no other axis cuts either but samples before them.
  absl::Status CheckAreSamples(int index) const {
    const Op& op = table_.ops(index);
    for (const Op::Operand& of : {op.inputs(0), op.outputs(0)}) {
      const TensorSpec& tensor = table_.tensors(of.tensor());
      for (const int d : {0, 1}) {
        bool is_within = d > 0;
        for (const auto& cut : tensor.dims(d).sections(0).cuts()) {
          const bool divides = d > 0 || cut.whole() % axis_.size() == 0;
          const bool own = cut.axis() == axis_.name();
          if (own ? divides : !is_within) {
            is_within |= own;
            continue;
          }
          return At(index, absl::StrCat("takes rows of ", tensor.name(),
                                        " for samples, which ", axis_.size(),
                                        " ranks do not have alike"));
        }
      }
    }
    return absl::OkStatus();
  }

  // What moves between the ranks of one axis lies along others as it did.
  absl::Status CheckExchangeAlongAnother(int index) const {
    const Op& op = table_.ops(index);
    const int x = op.inputs(0).tensor();
    const int y = op.kind() == Op::RETURN ? op.inputs(1).tensor()
                                          : op.outputs(0).tensor();
    if (!IsDifferentiated(table_.tensors(x))) return absl::OkStatus();
    const TensorCut from = CutOfTensor(x);
    const TensorCut to = CutOfTensor(y);
    for (const auto& [before, behind] :
         {std::pair(from.value, to.value), {from.gradient, to.gradient}}) {
      if (before == behind) continue;
      return At(index, absl::StrCat("is along ", Text(op.exchange().axes()),
                                    ", and does not make ", Text(behind),
                                    " of ", Text(before)));
    }
    return absl::OkStatus();
  }

  // Rows change places along the dim that is cut, to and fro.
  absl::Status CheckRound(int index) const {
    const Op& op = table_.ops(index);
    const TensorCut from = CutOfTensor(op.inputs(0).tensor());
    const TensorCut to = CutOfTensor(op.outputs(0).tensor());
    const Collective back = table_.tensors(op.inputs(0).tensor()).no_gradient()
                                ? COLLECTIVE_UNSPECIFIED
                                : ALL_TO_ALL;
    if (from.value == to.value && from.gradient == to.gradient &&
        from.value.placement == Layout::SHARD && from.value == from.gradient &&
        IsAmong(op.round().axes()) &&
        op.round().ranks() % axis_.size() == 0 &&
        op.exchange().forward() == ALL_TO_ALL &&
        op.exchange().backward() == back) {
      return absl::OkStatus();
    }
    return At(index,
              absl::StrCat("does ", Collective_Name(op.exchange().forward()),
                           " and ", Collective_Name(op.exchange().backward()),
                           " in backward among ", op.round().ranks(),
                           " ranks along ", Text(op.round().axes()), ", of ",
                           Text(from.value), " and ", Text(to.value),
                           "; rows go to experts among ", axis_.size(),
                           " by ALL_TO_ALL and ", Collective_Name(back)));
  }

  absl::Status CheckExchange(int index) const {
    const Op& op = table_.ops(index);
    if (op.kind() == Op::RETURN) return CheckReturn(index);
    if (op.has_round()) return CheckRound(index);
    const TensorCut from = CutOfTensor(op.inputs(0).tensor());
    const TensorCut to = CutOfTensor(op.outputs(0).tensor());
    const auto forward = TurnOf(from.value, to.value);
    // A shift goes back the way that it came; what has no gradient, not at all.
    const auto backward = table_.tensors(op.inputs(0).tensor()).no_gradient()
                              ? absl::make_optional(COLLECTIVE_UNSPECIFIED)
                          : forward == SHIFT
                              ? TurnOf(from.gradient, to.gradient)
                              : TurnOf(to.gradient, from.gradient);
    const bool aside = !IsDifferentiated(table_.tensors(op.inputs(0).tensor()));
    if (forward != op.exchange().forward() ||
        (!aside && backward != op.exchange().backward())) {
      return At(index,
                absl::StrCat("does ", Collective_Name(op.exchange().forward()),
                             " and ", Collective_Name(op.exchange().backward()),
                             " in backward, which does not make ",
                             Text(to.value), " of ", Text(from.value), ", and ",
                             Text(from.gradient), " of ", Text(to.gradient)));
    }
    if (forward == COLLECTIVE_UNSPECIFIED && !(from.value == to.value)) {
      RETURN_IF_ERROR(CheckAreSamples(index));
    }
    if (!aside) {
      for (const Op::Operand& of : {op.inputs(0), op.outputs(0)}) {
        RETURN_IF_ERROR(CheckIsOneRun(index, of.tensor()));
      }
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

// By table: the kinds of dims that an axis cuts there, or in what is used
// there.
std::vector<std::vector<Dim::Kind>> KindsCutBy(const Plan& plan,
                                               const std::string& axis) {
  std::vector<std::set<Dim::Kind>> kinds(plan.tables_size());
  const auto look_at = [&](const auto& dims, std::set<Dim::Kind>& of_table) {
    for (const Dim& dim : dims) {
      for (const Dim::Section& section : dim.sections()) {
        if (CutBy(section, axis) != nullptr) of_table.insert(section.kind());
      }
    }
  };
  for (int t = 0; t < plan.tables_size(); ++t) {
    for (const TensorSpec& tensor : plan.tables(t).tensors()) {
      look_at(tensor.dims(), kinds[t]);
    }
  }
  for (const Unit& unit : plan.units()) {
    if (!unit.has_table()) continue;
    for (const Parameter& parameter : unit.parameters()) {
      look_at(parameter.dims(), kinds[unit.table()]);
    }
  }
  std::vector<std::vector<Dim::Kind>> lists;
  for (const std::set<Dim::Kind>& of_table : kinds) {
    lists.emplace_back(of_table.begin(), of_table.end());
  }
  return lists;
}

std::string CutsText(const Plan& plan, const TensorSpec& tensor) {
  std::string text;
  for (const Axis& axis : plan.mesh().axes()) {
    const AxisCut value = CutAlong(tensor, tensor.layout(), axis.name());
    const AxisCut gradient =
        CutAlong(tensor, tensor.gradient_layout(), axis.name());
    if (value == AxisCut() && gradient == AxisCut()) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ", Text(value), " along ",
                    axis.name(), ", its gradient ", Text(gradient));
  }
  return text.empty() ? "whole" : text;
}

// Whether a rank has of one what it has of the other, value and gradient.
bool LieAlike(const Plan& plan, const TensorSpec& a, const TensorSpec& b) {
  const bool same_dims =
      std::equal(a.dims().begin(), a.dims().end(), b.dims().begin(),
                 b.dims().end(), [](const Dim& x, const Dim& y) {
                   return x.SerializeAsString() == y.SerializeAsString();
                 });
  if (!same_dims || a.dtype() != b.dtype()) return false;
  for (const Axis& axis : plan.mesh().axes()) {
    if (!(CutAlong(a, a.layout(), axis.name()) ==
          CutAlong(b, b.layout(), axis.name())) ||
        !(CutAlong(a, a.gradient_layout(), axis.name()) ==
          CutAlong(b, b.gradient_layout(), axis.name()))) {
      return false;
    }
  }
  return true;
}

// What a unit makes for another is what that reads.
absl::Status CheckEdge(const Plan& plan, const Edge& edge) {
  const Unit& from = plan.units(edge.from);
  const Unit& to = plan.units(edge.to);
  if (!from.has_table() || !to.has_table()) return absl::OkStatus();
  const auto port = [&plan](const Unit& unit, TensorSpec::Home home,
                            int number) -> const TensorSpec& {
    const UnitTable& table = plan.tables(unit.table());
    return table.tensors(TensorsOfHome(table, home)[number]);
  };
  const TensorSpec& made = port(from, TensorSpec::OUTPUT, edge.output);
  const TensorSpec& read = port(to, TensorSpec::INPUT, edge.input);
  if (LieAlike(plan, made, read)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "unit ", edge.to, " reads ", read.name(), " as ", CutsText(plan, read),
      ", but unit ", edge.from, " makes it as ", CutsText(plan, made)));
}

// All that read what another unit makes find it as it is made.
absl::Status CheckBetweenUnits(const Plan& plan) {
  const Edges edges(plan);
  for (const Edge& edge : edges.all()) {
    RETURN_IF_ERROR(CheckEdge(plan, edge));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckLayouts(const Plan& plan) {
  for (const Axis& axis : plan.mesh().axes()) {
    const auto kinds = KindsCutBy(plan, axis.name());
    for (int t = 0; t < plan.tables_size(); ++t) {
      RETURN_IF_ERROR(LayoutCheck(plan.tables(t), t, axis, kinds[t]).Run());
    }
  }
  return CheckBetweenUnits(plan);
}

}  // namespace troupe
