#include "scheduler/layouts/cut_table.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "proto/base/check.h"
#include "proto/plan/ops/op_rules.h"
#include "proto/plan/ports.h"
#include "proto/plan/slices.h"
#include "proto/plan/tensor_spec.h"
#include "scheduler/layouts/table_writer.h"

namespace troupe {
namespace {

// Which of the section's cuts it is in front of.
int PlaceOfCut(const AxisRules& axis, const DimRule& rule,
               const Dim::Section& section) {
  if (rule.loaded) return 0;
  if (!rule.in_mesh_order) return section.cuts_size();
  int at = 0;
  for (const Dim::Section::Cut& cut : section.cuts()) {
    const bool is_further_in =
        std::count(axis.further_in.begin(), axis.further_in.end(),
                   cut.axis()) > 0;
    if (is_further_in) break;
    ++at;
  }
  return at;
}

void CutSection(const AxisRules& axis, const DimRule& rule,
                Dim::Section& section) {
  CHECK(CutBy(section, axis.axis) == nullptr) << "cut by " << axis.axis;
  Dim::Section::Cut cut;
  cut.set_axis(axis.axis);
  const int at = PlaceOfCut(axis, rule, section);
  cut.set_whole(at < section.cuts_size() ? section.cuts(at).whole()
                                         : section.count());
  cut.set_rows(section.kind() == Dim::SEQUENCE && !rule.loaded);
  cut.set_zigzag(rule.zigzag);
  section.set_count(LargestPiece(section.count(), axis.size));
  // Those behind it cut what it leaves.
  const auto others = section.cuts();
  section.clear_cuts();
  for (int other = 0; other < others.size(); ++other) {
    if (other == at) *section.add_cuts() = cut;
    Dim::Section::Cut& added = *section.add_cuts() = others[other];
    if (other < at) continue;
    added.set_whole(LargestPiece(added.whole(), axis.size));
  }
  if (at == others.size()) *section.add_cuts() = cut;
}

void Forget(const std::string& axis, Dim::Section& section) {
  for (int c = section.cuts_size(); c-- > 0;) {
    if (section.cuts(c).axis() != axis) continue;
    section.mutable_cuts()->DeleteSubrange(c, 1);
  }
}

Collective Turn(const AxisCut& from, const AxisCut& to) {
  const absl::optional<Collective> turn = TurnOf(from, to);
  CHECK(turn.has_value()) << "no exchange makes "
                          << Layout::Placement_Name(to.placement) << " of "
                          << Layout::Placement_Name(from.placement);
  return *turn;
}

void AddTo(const std::string& axis, const AxisCut& cut, Layout& layout) {
  if (cut.placement == Layout::REPLICATE) return;
  Layout::AxisLayout& added = *layout.add_axes();
  added.set_axis(axis);
  added.set_placement(cut.placement);
  added.set_dim(cut.dim);
  if (cut.panel >= 0) added.set_panel(cut.panel);
}

// Panels that were broadcast, until they are sent again for backward. That is
// in front of the pass behind their reader's, so that they are on their way
// during it: in forward order, behind the next product.
class SentPanels {
 public:
  struct Panel {
    int tensor = -1;
    int of = -1;  // whose
  };
  void Add(const Panel& panel) { unread_.push_back(panel); }

  // Those that the product before this one has read.
  std::vector<Panel> ReadBefore(const Op& product) {
    std::vector<Panel> before = ReadLast();
    for (const Op::Operand& input : product.inputs()) {
      for (size_t i = unread_.size(); i-- > 0;) {
        if (unread_[i].tensor != input.tensor()) continue;
        read_.push_back(unread_[i]);
        unread_.erase(unread_.begin() + i);
      }
    }
    return before;
  }
  std::vector<Panel> ReadLast() { return std::exchange(read_, {}); }

 private:
  std::vector<Panel> unread_;
  std::vector<Panel> read_;  // by the last product
};

// One table, cut by one axis.
class TableCut {
 public:
  TableCut(const AxisRules& axis, const TableEnds& ends, const UnitTable& whole)
      : axis_(axis),
        ends_(ends),
        whole_(whole),
        made_(whole.tensors_size(), -1) {
    for (const DimRule& rule : axis.rules) wishes_.kinds.push_back(rule.kind);
    for (const TensorSpec& tensor : whole.tensors()) {
      wishes_.tensors.push_back(WishFor(axis, tensor));
      wishes_.gradients.push_back(
          GradientWish(tensor, wishes_.tensors.back(), wishes_.kinds));
    }
  }

  UnitTable Run() {
    for (int t = 0; t < whole_.tensors_size(); ++t) {
      if (whole_.tensors(t).home() == TensorSpec::WITHIN ||
          whole_.tensors(t).home() == TensorSpec::OUTPUT) {
        continue;
      }
      made_[t] = Add(t, EndOf(t), "");
    }
    for (int t = 0; t < whole_.tensors_size(); ++t) {
      if (made_[t] >= 0 && !Same(EndOf(t), WishOf(t))) TurnInput(t);
    }
    for (const Op& op : whole_.ops()) {
      const OpView view(whole_, op);
      const OpRules rules = RulesOf(view);
      const bool has_parts =
          rules.parts.has_value() &&
          CutsColumns(view.input(rules.parts->of),
                      wishes_.tensors[view.Input(rules.parts->of)]);
      const int parts = has_parts ? AddParts(view, *rules.parts) : -1;
      AddOp(view, rules);
      if (!has_parts) continue;
      *cut_.mutable_ops(cut_.ops_size() - 1)->add_inputs() =
          TableWriter::OperandOf(rules.parts->parts, parts);
    }
    AddReturns(sent_.ReadLast());
    return std::move(cut_);
  }

  // By op of the whole table: whether the gradients of its parameters that are
  // not cut are summands.
  std::vector<bool> SumsParameters() const {
    std::vector<bool> sums;
    for (const Op& op : whole_.ops()) {
      sums.push_back(CutOf({whole_, op}, wishes_).sums_parameters);
    }
    return sums;
  }

 private:
  TensorCut WishOf(int tensor) const {
    return {wishes_.tensors[tensor], wishes_.gradients[tensor]};
  }

  // Whose rules say how it lies between this unit and a neighbour.
  const AxisRules& RulesOfEnd(int tensor) const {
    const TensorSpec::Home home = whole_.tensors(tensor).home();
    if (home != TensorSpec::INPUT && home != TensorSpec::OUTPUT) return axis_;
    const auto& ends = home == TensorSpec::INPUT ? ends_.inputs : ends_.outputs;
    if (ends.empty()) return axis_;
    const auto others = ends.find(PortOf(whole_, tensor));
    return others == ends.end() ? axis_ : *others->second;
  }

  // How it lies when this unit is done with it, or finds it.
  TensorCut EndOf(int tensor) const {
    const AxisRules& rules = RulesOfEnd(tensor);
    if (&rules == &axis_) return WishOf(tensor);
    const AxisCut cut = WishFor(rules, whole_.tensors(tensor));
    return {cut, cut};
  }

  // Before any op reads it.
  void TurnInput(int tensor) {
    const int found = made_[tensor];
    made_[tensor] = Add(tensor, WishOf(tensor), " exchanged");
    AddExchange(found, made_[tensor]);
  }

  // A version of a tensor of the whole table. Without a suffix it is the one
  // that neighbours know.
  int Add(int tensor, const TensorCut& cut, absl::string_view suffix) {
    TensorSpec spec = whole_.tensors(tensor);
    const AxisRules& rules = suffix.empty() ? RulesOfEnd(tensor) : axis_;
    if (!suffix.empty()) {
      spec.clear_home();
      absl::StrAppend(spec.mutable_name(), suffix);
      // Where it is turned along another axis, too.
      if (IsNamed(spec.name())) {
        absl::StrAppend(spec.mutable_name(), " along ", axis_.axis);
      }
    }
    if (cut.value.placement == Layout::SHARD) {
      CutDim(rules, *spec.mutable_dims(cut.value.dim));
    }
    AddTo(axis_.axis, cut.value, *spec.mutable_layout());
    AddTo(axis_.axis, cut.gradient, *spec.mutable_gradient_layout());
    return Append(std::move(spec), cut);
  }

  bool IsNamed(const std::string& name) const {
    return std::any_of(
        whole_.tensors().begin(), whole_.tensors().end(),
        [&name](const TensorSpec& of) { return of.name() == name; });
  }

  Op& AddOpFrom(int from, int to, Op::Kind kind) {
    Op& op = *cut_.add_ops();
    op.set_kind(kind);
    Op::Operand& input = *op.add_inputs();
    input.set_name("x");
    input.set_tensor(from);
    Op::Operand& output = *op.add_outputs();
    output.set_name("y");
    output.set_tensor(to);
    return op;
  }

  void AddExchange(int from, int to) {
    if (Turn(cuts_[from].value, cuts_[to].value) == ALL_TO_ALL) {
      const int sent = AddPacked(from, to, /*sent=*/true);
      const int received = AddPacked(from, to, /*sent=*/false);
      AddPack(Op::PACK, cuts_[to].value.dim, from, sent);
      AddExchangeAsIs(sent, received);
      AddPack(Op::UNPACK, cuts_[from].value.dim, received, to);
      return;
    }
    AddExchangeAsIs(from, to);
  }

  void AddExchangeAsIs(int from, int to) {
    Op::Exchange& exchange =
        *AddOpFrom(from, to, Op::EXCHANGE).mutable_exchange();
    exchange.add_axes(axis_.axis);
    exchange.set_forward(Turn(cuts_[from].value, cuts_[to].value));
    const TensorSpec& moved = cut_.tensors(from);
    if (moved.dtype() != I32 && !moved.no_gradient()) {
      exchange.set_backward(Turn(cuts_[to].gradient, cuts_[from].gradient));
    }
    if (exchange.forward() == BROADCAST) {
      exchange.set_root(cuts_[to].value.panel);
      sent_.Add({.tensor = to, .of = from});
    }
  }

  // What was broadcast is not kept, but sent again for backward.
  void AddReturns(const std::vector<SentPanels::Panel>& panels) {
    for (const auto& [tensor, of] : panels) {
      Op& back = *cut_.add_ops();
      back.set_kind(Op::RETURN);
      *back.add_inputs() = TableWriter::OperandOf("x", tensor);
      *back.add_inputs() = TableWriter::OperandOf("y", of);
      back.mutable_exchange()->add_axes(axis_.axis);
      back.mutable_exchange()->set_backward(BROADCAST);
      back.mutable_exchange()->set_root(cuts_[tensor].value.panel);
    }
  }

  // The panel of the first product behind an op, where that begins another sum:
  // what there is of its operands is on its way while the op computes.
  void BringNextPanel(const Op& op) {
    bool behind = false;
    for (const Op& next : whole_.ops()) {
      if (behind && RulesOf({whole_, next}).in_panels) {
        if (next.panel() > 0) return;
        const OpCut cut = CutOf({whole_, next}, wishes_);
        for (int i = 0; i < next.inputs_size(); ++i) {
          const int tensor = next.inputs(i).tensor();
          if (made_[tensor] >= 0) VersionOf(tensor, cut.inputs[i]);
        }
        return;
      }
      behind |= &next == &op;
    }
  }

  // A block for each rank: what that has and gets, one behind the other.
  int AddPacked(int from, int to, bool sent) {
    const int lies = sent ? from : to;
    TensorSpec spec = cut_.tensors(lies);
    spec.clear_home();
    absl::StrAppend(spec.mutable_name(), sent ? " by rank" : " of all ranks");
    const int other = sent ? to : from;
    Dim& blocks = *spec.mutable_dims(cuts_[other].value.dim);
    blocks = cut_.tensors(other).dims(cuts_[other].value.dim);
    for (Dim::Section& section : *blocks.mutable_sections()) {
      Forget(axis_.axis, section);
    }
    Dim::Section& batch = *spec.mutable_dims(0)->mutable_sections(0);
    batch.set_count(batch.count() * axis_.size);
    return Append(std::move(spec), cuts_[lies]);
  }

  int Append(TensorSpec spec, const TensorCut& cut) {
    *cut_.add_tensors() = std::move(spec);
    cuts_.push_back(cut);
    return cut_.tensors_size() - 1;
  }

  void AddPack(Op::Kind kind, int dim, int from, int to) {
    Op::Pack& pack = *AddOpFrom(from, to, kind).mutable_pack();
    pack.set_dim(dim);
    pack.set_blocks(axis_.size);
  }

  static bool Same(const TensorCut& a, const TensorCut& b) {
    return a.value == b.value && a.gradient == b.gradient;
  }

  // The version that lies so, turned from the one that is there where it is
  // new.
  int VersionOf(int tensor, const TensorCut& cut) {
    const int there = made_[tensor];
    if (Same(cuts_[there], cut)) return there;
    for (const auto& [version, of] : turned_) {
      if (of == tensor && Same(cuts_[version], cut)) return version;
    }
    const int version =
        Add(tensor, cut,
            cut.value.panel < 0 ? " exchanged"
                                : absl::StrCat(", panel ", cut.value.panel));
    AddExchange(there, version);
    turned_.emplace_back(version, tensor);
    return version;
  }

  void AddOp(const OpView& view, const OpRules& rules) {
    const OpCut cut = CutOf(view, wishes_);
    Op op = view.op();
    CHECK(op.backward_inputs().empty()) << "made by a row of an axis behind";
    for (int i = 0; i < op.inputs_size(); ++i) {
      Op::Operand& input = *op.mutable_inputs(i);
      input.set_tensor(VersionOf(input.tensor(), cut.inputs[i]));
    }
    std::vector<std::pair<int, int>> turns;
    for (int i = 0; i < op.outputs_size(); ++i) {
      Op::Operand& output = *op.mutable_outputs(i);
      const int tensor = output.tensor();
      const TensorCut wish = EndOf(tensor);
      const bool as_wished = Same(cut.outputs[i], wish) ||
                             !IsReadLater(tensor) ||
                             IsReadAs(tensor, cut.outputs[i]);
      output.set_tensor(Add(tensor, cut.outputs[i],
                            as_wished ? "" : SuffixOf(cut.outputs[i])));
      made_[tensor] = output.tensor();
      if (as_wished) continue;
      made_[tensor] = Add(tensor, wish, "");
      turns.emplace_back(output.tensor(), made_[tensor]);
    }
    if (rules.in_panels) BringNextPanel(view.op());
    *cut_.add_ops() = op;
    if (rules.in_panels) AddReturns(sent_.ReadBefore(op));
    has_panels_ |= rules.in_panels;
    for (const auto& [from, to] : turns) AddExchange(from, to);
    // The first weight stands in front of all that computes.
    if (op.inputs().empty() && !has_panels_) BringNextPanel(view.op());
  }

  // Otherwise than by its maker.
  bool IsReadLater(int tensor) const {
    if (whole_.tensors(tensor).home() == TensorSpec::OUTPUT) return true;
    for (const Op& op : whole_.ops()) {
      for (const Op::Operand& input : op.inputs()) {
        if (input.tensor() == tensor) return true;
      }
    }
    return false;
  }

  // Whether all that reads it wants it as it is made.
  bool IsReadAs(int tensor, const TensorCut& made) const {
    if (whole_.tensors(tensor).home() == TensorSpec::OUTPUT) return false;
    for (const Op& op : whole_.ops()) {
      OpCut cut;
      for (int i = 0; i < op.inputs_size(); ++i) {
        if (op.inputs(i).tensor() != tensor) continue;
        if (cut.inputs.empty()) cut = CutOf({whole_, op}, wishes_);
        if (!Same(cut.inputs[i], made)) return false;
      }
    }
    return true;
  }

  static const char* SuffixOf(const TensorCut& made) {
    return made.value.placement == Layout::PARTIAL ? " summand" : " as made";
  }

  // In front of the op: the parts of all ranks.
  int AddParts(const OpView& op, const PartsRule& rule) {
    const TensorSpec& of = op.input(rule.of);
    TensorSpec& parts = *cut_.add_tensors();
    parts.set_name(rule.name);
    for (int d = 0; d + 1 < of.dims_size(); ++d) {
      *parts.add_dims() = of.dims(d);
    }
    *parts.add_dims() = DimOf({{Dim::STATISTICS, rule.columns}});
    parts.set_dtype(F32);
    const AxisCut shard = {.placement = Layout::SHARD, .dim = 0};
    AddTo(axis_.axis, shard, *parts.mutable_layout());
    cuts_.push_back({shard, {}});
    const int own = cut_.tensors_size() - 1;
    TensorSpec& all = *cut_.add_tensors();
    all = cut_.tensors(own);
    all.set_name(all.name() + " of all");
    all.clear_layout();
    Dim::Section& batch = *all.mutable_dims(0)->mutable_sections(0);
    batch.set_count(batch.count() * axis_.size);
    cuts_.push_back({});
    Op& maker = *cut_.add_ops();
    maker.set_kind(rule.kind);
    for (const std::string& name : rule.reads) {
      *maker.add_inputs() = TableWriter::OperandOf(name, made_[op.Input(name)]);
    }
    *maker.add_outputs() = TableWriter::OperandOf(rule.parts, own);
    AddExchange(own, own + 1);
    return own + 1;
  }

  const AxisRules& axis_;
  const TableEnds ends_;
  const UnitTable& whole_;
  Wishes wishes_;
  UnitTable cut_;
  std::vector<TensorCut> cuts_;  // of the tensors of cut_
  std::vector<int> made_;        // by tensor of the whole: of cut_, or -1
  std::vector<std::pair<int, int>> turned_;  // of cut_, and of the whole
  bool has_panels_ = false;
  SentPanels sent_;
};

}  // namespace

void CutDim(const AxisRules& axis, Dim& dim) {
  for (Dim::Section& section : *dim.mutable_sections()) {
    const DimRule* const rule = RuleOf(axis, section.kind());
    if (rule != nullptr) CutSection(axis, *rule, section);
  }
}

AxisCut WishFor(const AxisRules& axis, const TensorSpec& tensor) {
  const bool batch = tensor.home() == TensorSpec::BATCH;
  for (const DimRule& rule : axis.rules) {
    if (rule.turned || (batch && !rule.loaded)) continue;
    for (int d = 0; d < tensor.dims_size(); ++d) {
      for (const Dim::Section& section : tensor.dims(d).sections()) {
        if (section.kind() != rule.kind) continue;
        return {.placement = Layout::SHARD,
                .dim = d,
                .rows = rule.kind == Dim::SEQUENCE && !rule.loaded};
      }
    }
  }
  return {};
}

CutTable CutAlong(const AxisRules& axis, const TableEnds& ends,
                  const UnitTable& whole) {
  TableCut cut(axis, ends, whole);
  std::vector<bool> sums = cut.SumsParameters();
  return {.table = cut.Run(), .sums_parameters = std::move(sums)};
}

}  // namespace troupe
