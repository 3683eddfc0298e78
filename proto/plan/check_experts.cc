#include "proto/plan/check_experts.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "proto/base/status.h"
#include "proto/plan/mesh.h"
#include "proto/plan/ops/op_view.h"
#include "proto/plan/slices.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {
namespace {

// What a tensor's rows are. Of one DISPATCH, and but for the first and the
// last, of one round.
struct Rows {
  enum Kind {
    kDispatched,  // by expert, of this rank's tokens
    kReceived,    // by source, of this rank's experts
    kGrouped,     // by expert, of this rank's experts
    kComputed,    // by source again
    kReturned,    // as dispatched, up to the round before `round`
    kOffsets,     // of dispatched rows
    kAllOffsets,  // of all ranks' dispatched rows
    kOwnOffsets,  // of grouped rows
  };
  Kind kind = kDispatched;
  int dispatch = 0;  // the op
  int round = 0;
  bool operator==(const Rows&) const = default;
};

std::string Text(const absl::optional<Rows>& rows) {
  if (!rows.has_value()) return "no rows of experts";
  static constexpr const char* kTexts[] = {"rows as dispatched",
                                           "received rows",
                                           "rows by expert",
                                           "results by source",
                                           "results of rounds before",
                                           "offsets of dispatched rows",
                                           "offsets of all ranks' rows",
                                           "offsets of rows by expert"};
  return absl::StrCat(kTexts[rows->kind], " of op ", rows->dispatch,
                      rows->kind == Rows::kDispatched ||
                              rows->kind == Rows::kOffsets ||
                              rows->kind == Rows::kAllOffsets
                          ? ""
                          : absl::StrCat(", round ", rows->round));
}

using Axes = std::vector<std::string>;

Axes AxesIn(const google::protobuf::RepeatedPtrField<std::string>& axes) {
  return {axes.begin(), axes.end()};
}

std::string Text(const Axes& axes) {
  return axes.empty() ? "no axis" : absl::StrJoin(axes, " x ");
}

// Those of the mesh that are among them, in its order.
Axes InOrderOf(const Mesh& mesh, const Axes& axes) {
  Axes ordered;
  for (const Axis& axis : mesh.axes()) {
    if (std::count(axes.begin(), axes.end(), axis.name()) > 0) {
      ordered.push_back(axis.name());
    }
  }
  return ordered;
}

int RanksAlong(const Mesh& mesh, const Axes& axes) {
  int ranks = 1;
  for (const std::string& axis : axes) ranks *= AxisSize(mesh, axis);
  return ranks;
}

class ExpertsCheck {
 public:
  ExpertsCheck(const Plan& plan, int index)
      : plan_(plan), table_(plan.tables(index)), index_(index) {}

  absl::Status Run() {
    for (op_ = 0; op_ < table_.ops_size(); ++op_) {
      RETURN_IF_ERROR(CheckOp(table_.ops(op_)));
    }
    for (const auto& [dispatch, combined] : combined_) {
      if (combined) continue;
      op_ = dispatch;
      return At("has rows that are never combined");
    }
    return absl::OkStatus();
  }

 private:
  absl::Status CheckOp(const Op& op) {
    switch (op.kind()) {
      case Op::ROUTE:
        chosen_[View().Output("gates")] = View().Output("choices");
        return absl::OkStatus();
      case Op::DISPATCH:
        return Dispatch();
      case Op::EXCHANGE:
        return Exchange();
      case Op::REGROUP:
        RETURN_IF_ERROR(IsRound(Rows::kReceived, {"x", "gates"}));
        SetRows("rows", Rows::kGrouped);
        SetRows("row_gates", Rows::kGrouped);
        SetRows("own_offsets", Rows::kOwnOffsets);
        return absl::OkStatus();
      case Op::UNGROUP:
        RETURN_IF_ERROR(IsRound(Rows::kGrouped, {"x"}));
        SetRows("y", Rows::kComputed);
        return absl::OkStatus();
      case Op::ROUTER_LOAD:
        counted_[View().Output("load")] = {View().Input("choices"), {}};
        return absl::OkStatus();
      case Op::CAPACITY:
        return CheckRoom();
      case Op::GROUPED_LINEAR:
        RETURN_IF_ERROR(CheckProduct());
        return PassOn();
      case Op::COMBINE:
        return Combine();
      default:
        return PassOn();
    }
  }

  OpView View() const { return {table_, table_.ops(op_)}; }
  absl::optional<Rows> Of(int tensor) const {
    const auto found = rows_.find(tensor);
    if (found == rows_.end()) return absl::nullopt;
    return found->second;
  }
  absl::optional<Rows> Input(absl::string_view name) const {
    return Of(View().Input(name));
  }

  // The tensor that was exchanged to make this one; itself where none was.
  int Origin(int tensor) const {
    const auto found = origin_.find(tensor);
    return found == origin_.end() ? tensor : found->second;
  }

  // Whether the op's gates are those of its choices.
  bool HasOwnGates() const {
    const auto chosen = chosen_.find(Origin(View().Input("gates")));
    return chosen != chosen_.end() &&
           chosen->second == Origin(View().Input("choices"));
  }

  // With the room that was given out to the choices.
  absl::Status CheckGates() const {
    if (!HasOwnGates()) return At("has the gates of other choices");
    const auto kept = kept_.find(Origin(View().Input("choices")));
    if (kept != kept_.end() && kept->second != Origin(View().Input("gates"))) {
      return At("has gates from before room was given out");
    }
    return absl::OkStatus();
  }

  absl::Status Dispatch() {
    RETURN_IF_ERROR(CheckGates());
    combined_[op_] = false;
    for (const char* const name : {"rows", "row_gates"}) {
      rows_[View().Output(name)] = {Rows::kDispatched, op_};
    }
    for (const char* const name : {"sources", "places"}) {
      sorted_by_[View().Output(name)] = op_;
    }
    rows_[View().Output("offsets")] = {Rows::kOffsets, op_};
    return absl::OkStatus();
  }

  // Of an op of a round: its inputs are of that, and the offsets are of all
  // ranks' rows.
  absl::Status IsRound(Rows::Kind kind,
                       const std::vector<const char*>& inputs) {
    const Op& op = table_.ops(op_);
    const absl::optional<Rows> offsets = Input("offsets");
    if (!offsets.has_value() || offsets->kind != Rows::kAllOffsets) {
      return At(absl::StrCat("reads ", Text(offsets),
                             " for the offsets of all ranks' rows"));
    }
    const Axes along = AxesIn(op.round().axes());
    if (axes_of_[View().Input("offsets")] != along) {
      return At(
          absl::StrCat("is along ", Text(along), ", and its offsets are not"));
    }
    if (op.round().ranks() != RanksAlong(plan_.mesh(), along)) {
      return At(absl::StrCat("is of ", op.round().ranks(), " ranks, and ",
                             Text(along), " has ",
                             RanksAlong(plan_.mesh(), along)));
    }
    if (op.kind() == Op::EXCHANGE && AxesIn(op.exchange().axes()) != along) {
      return At(absl::StrCat("is among ranks along ",
                             Text(AxesIn(op.exchange().axes())),
                             ", in a round along ", Text(along)));
    }
    const bool any_round = kind == Rows::kDispatched;
    const Rows wanted = {kind, offsets->dispatch,
                         any_round ? 0 : op.round().number()};
    for (const char* const name : inputs) {
      if (Input(name) == wanted) continue;
      return At(absl::StrCat("reads ", Text(Input(name)), " as ", name,
                             ", where it needs ", Text(wanted)));
    }
    here_ = {kind, offsets->dispatch, op.round().number()};
    return absl::OkStatus();
  }

  void SetRows(const char* output, Rows::Kind kind) {
    rows_[View().Output(output)] = {kind, here_.dispatch, here_.round};
  }

  absl::Status Exchange() {
    const Op& op = table_.ops(op_);
    if (op.has_round()) return op.round().back() ? GoBack() : GoToExperts();
    origin_[View().Output("y")] = Origin(View().Input("x"));
    const auto counts = counted_.find(View().Input("x"));
    if (counts != counted_.end() && op.exchange().forward() == ALL_GATHER) {
      counted_[View().Output("y")] = {counts->second.choices,
                                      AxesIn(op.exchange().axes())};
      return absl::OkStatus();
    }
    const absl::optional<Rows> x = Input("x");
    if (!x.has_value() || x->kind != Rows::kOffsets) return PassOn();
    const int all = View().Output("y");
    const Axes along = AxesIn(op.exchange().axes());
    if (along != InOrderOf(plan_.mesh(), along)) {
      return At(absl::StrCat("is along ", Text(along),
                             ", which is not their order in the mesh"));
    }
    axes_of_[all] = along;
    rows_[all] = {Rows::kAllOffsets, x->dispatch};
    return absl::OkStatus();
  }

  absl::Status GoToExperts() {
    RETURN_IF_ERROR(IsRound(Rows::kDispatched, {"x"}));
    SetRows("y", Rows::kReceived);
    return absl::OkStatus();
  }

  absl::Status GoBack() {
    RETURN_IF_ERROR(IsRound(Rows::kComputed, {"x"}));
    const absl::optional<Rows> before =
        View().HasInput("into") ? Input("into") : absl::nullopt;
    const Rows wanted = {Rows::kReturned, here_.dispatch, here_.round};
    if (here_.round > 0 ? before != wanted : View().HasInput("into")) {
      return At(absl::StrCat("adds round ", here_.round, " to ", Text(before),
                             ": each row comes back once"));
    }
    room_[View().Output("y")] = RowsOf(View().input("x"));
    rows_[View().Output("y")] = {Rows::kReturned, here_.dispatch,
                                 here_.round + 1};
    return absl::OkStatus();
  }

  // Rows by expert have the offsets of these rows, and experts as many as the
  // weights of the rank.
  absl::Status CheckProduct() const {
    const absl::optional<Rows> x = Input("x");
    const absl::optional<Rows> offsets = Input("offsets");
    const bool here =
        x.has_value() && offsets.has_value() &&
        x->dispatch == offsets->dispatch && x->round == offsets->round &&
        ((x->kind == Rows::kDispatched && offsets->kind == Rows::kOffsets) ||
         (x->kind == Rows::kGrouped && offsets->kind == Rows::kOwnOffsets));
    if (!here) {
      return At(absl::StrCat("reads ", Text(x), " with ", Text(offsets)));
    }
    const int64_t experts = ElementsOf(View().input("offsets")) - 1;
    const Axes along =
        x->kind == Rows::kGrouped ? AxesOfRounds(x->dispatch) : Axes();
    for (const Unit& unit : plan_.units()) {
      if (!unit.has_table() || unit.table() != index_) continue;
      for (const int parameter : table_.ops(op_).parameters()) {
        if (parameter >= unit.parameters_size()) continue;
        const Parameter& weight = unit.parameters(parameter);
        if (LocalShape(weight).front() != experts) {
          return At(absl::StrCat("has rows for ", experts, " experts, and ",
                                 weight.name(), " is of ",
                                 LocalShape(weight).front()));
        }
        const Axes cut_by = AxesThatCut(weight.dims(0));
        if (cut_by != along) {
          return At(absl::StrCat("has rows that were exchanged along ",
                                 Text(along), ", and the experts of ",
                                 weight.name(), " are cut by ", Text(cut_by)));
        }
      }
    }
    return absl::OkStatus();
  }

  // Outermost first.
  static Axes AxesThatCut(const Dim& dim) {
    Axes axes;
    for (const auto& cut : dim.sections(0).cuts()) axes.push_back(cut.axis());
    return axes;
  }

  // Ranks that have some positions of a sequence know the counts of all that
  // have others of it.
  absl::Status CheckRoom() {
    if (!HasOwnGates()) {
      return At("gives out room to the gates of other choices");
    }
    const int choices = Origin(View().Input("choices"));
    chosen_[View().Output("kept")] = choices;
    kept_[choices] = View().Output("kept");
    const Axes along = AxesThatCut(View().input("choices").dims(1));
    const auto counts =
        counted_.find(View().HasInput("counts") ? View().Input("counts") : -1);
    const bool has = counts != counted_.end();
    const Axes of = has ? counts->second.along : Axes();
    if (of != along) {
      return At(absl::StrCat("gives out room with counts of ranks along ",
                             Text(of), ", and sequences are cut by ",
                             Text(along)));
    }
    if (has && counts->second.choices != View().Input("choices")) {
      return At("gives out room by the counts of other choices");
    }
    return absl::OkStatus();
  }

  absl::Status Combine() {
    const absl::optional<Rows> x = Input("x");
    const auto sources = sorted_by_.find(View().Input("sources"));
    const auto places = sorted_by_.find(View().Input("places"));
    if (!x.has_value() || sources == sorted_by_.end() ||
        places == sorted_by_.end() || sources->second != x->dispatch ||
        places->second != x->dispatch) {
      return At(absl::StrCat("combines ", Text(x),
                             " as another op has dispatched them"));
    }
    bool& combined = combined_.at(x->dispatch);
    if (combined) {
      return At(
          absl::StrCat("combines the rows of op ", x->dispatch, " once more"));
    }
    combined = true;
    if (x->kind == Rows::kDispatched) return absl::OkStatus();
    if (x->kind != Rows::kReturned) {
      return At(absl::StrCat("combines ", Text(*x)));
    }
    // Rounds in which there is room for all rows, if all are for one rank.
    const OpView dispatch(table_, table_.ops(x->dispatch));
    const int64_t rows = RowsOf(dispatch.output("rows"));
    const int ranks = RanksAlong(plan_.mesh(), AxesOfRounds(x->dispatch));
    const int64_t room = room_.at(View().Input("x"));
    if (x->round * room >= ranks * rows) return absl::OkStatus();
    return At(absl::StrCat("combines what ", x->round, " rounds of ", room,
                           " rows have brought, and the ", ranks,
                           " ranks may send ", ranks * rows, " to one"));
  }

  // None: its rows stay where they are.
  Axes AxesOfRounds(int dispatch) const {
    for (const auto& [tensor, axes] : axes_of_) {
      const absl::optional<Rows> rows = Of(tensor);
      if (rows.has_value() && rows->dispatch == dispatch) return axes;
    }
    return {};
  }

  // What any other op makes of rows are these rows.
  absl::Status PassOn() {
    absl::optional<Rows> all;
    for (const Op::Operand& input : table_.ops(op_).inputs()) {
      const absl::optional<Rows> rows = Of(input.tensor());
      if (!rows.has_value() || rows->kind >= Rows::kOffsets) continue;
      if (all.has_value() && all != rows) {
        return At(
            absl::StrCat("takes ", Text(all), " together with ", Text(rows)));
      }
      all = rows;
    }
    if (!all.has_value()) return absl::OkStatus();
    for (const Op::Operand& output : table_.ops(op_).outputs()) {
      rows_[output.tensor()] = *all;
    }
    return absl::OkStatus();
  }

  absl::Status At(absl::string_view what) const {
    return absl::FailedPreconditionError(
        absl::StrCat("table ", index_, ": op ", op_, " ",
                     Op::Kind_Name(table_.ops(op_).kind()), " ", what));
  }

  // How often experts are chosen: by whose choices, and of which ranks.
  struct Counted {
    int choices = -1;
    Axes along;  // none: this rank's
  };

  const Plan& plan_;
  const UnitTable& table_;
  const int index_;
  int op_ = 0;
  Rows here_;                     // of the round that is looked at
  std::map<int, Rows> rows_;      // by tensor
  std::map<int, int> sorted_by_;  // sources and places: the DISPATCH
  std::map<int, Axes> axes_of_;   // of gathered offsets
  std::map<int, Counted> counted_;
  std::map<int, int> origin_;     // of what is exchanged
  std::map<int, int> chosen_;     // by gates: the choices
  std::map<int, int> kept_;       // by choices: the gates that have room
  std::map<int, bool> combined_;  // by DISPATCH
  std::map<int, int64_t> room_;   // by returned rows: rows of a round
};

}  // namespace

absl::Status CheckExperts(const Plan& plan) {
  for (int t = 0; t < plan.tables_size(); ++t) {
    RETURN_IF_ERROR(ExpertsCheck(plan, t).Run());
  }
  return absl::OkStatus();
}

}  // namespace troupe
