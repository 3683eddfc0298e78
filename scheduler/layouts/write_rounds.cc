#include "scheduler/layouts/write_rounds.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "proto/base/check.h"
#include "proto/plan/ops/op_rules.h"
#include "proto/plan/ops/op_view.h"
#include "proto/plan/tensor_spec.h"
#include "scheduler/layouts/table_writer.h"

namespace troupe {
namespace {

// Whether the op is told how many rows there are, and is not so far.
bool TakesOffsets(const Op& op) {
  const std::vector<OperandRule> rules = OperandsOf(op.kind());
  return std::any_of(
      rules.begin(), rules.end(), [&op](const OperandRule& rule) {
        const absl::string_view name = rule.name;
        return name == "offsets" && rule.optional &&
               std::none_of(op.inputs().begin(), op.inputs().end(),
                            [name](const Op::Operand& input) {
                              return input.name() == name;
                            });
      });
}

// The experts of one layer.
class ExpertsOf {
 public:
  ExpertsOf(const RoundsSpec& spec, const Op& dispatch, UnitTable& table)
      : spec_(spec),
        table_(table),
        writer_(dispatch, table),
        rows_(OpView(table, dispatch).Output("rows")),
        gates_(OpView(table, dispatch).Output("row_gates")),
        offsets_(OpView(table, dispatch).Output("offsets")),
        made_({rows_, gates_, offsets_}) {
    *table_.add_ops() = dispatch;
    GatherOffsets();
  }

  // Keeps an op that reads dispatched rows, or what is made of them. COMBINE
  // ends it.
  bool Takes(const Op& op) {
    if (op.kind() == Op::COMBINE) return false;
    bool reads = false;
    for (const Op::Operand& input : op.inputs()) {
      reads |= made_.count(input.tensor()) > 0;
    }
    if (!reads) return false;
    for (const Op::Operand& output : op.outputs()) {
      made_.insert(output.tensor());
    }
    ops_.push_back(op);
    return true;
  }

  // Writes what it has kept, round by round, and what combines the rows.
  void Write(Op combine) {
    Op::Operand& x = *combine.mutable_inputs(0);
    CHECK_EQ(x.name(), "x");
    const int down = x.tensor();
    const int64_t choices = ChoicesIn(rows_);
    const auto room = static_cast<int64_t>(
        std::ceil(spec_.slack * static_cast<double>(choices)));
    const int64_t rounds = (spec_.ranks * choices + room - 1) / room;
    int back = -1;  // rows that rounds so far have brought
    for (int number = 0; number < rounds; ++number) {
      back = WriteRound({.number = number, .choices = room}, down, back);
    }
    x.set_tensor(back);
    *table_.add_ops() = combine;
  }

 private:
  struct Round {
    int number = 0;
    int64_t choices = 0;  // that the dims of its rows have, where they lie
  };

  Dim::Section& ChoicesOf(int tensor) {
    for (Dim& dim : *writer_.tensor(tensor).mutable_dims()) {
      if (dim.sections(0).kind() == Dim::CHOICES) {
        return *dim.mutable_sections(0);
      }
    }
    CHECK(false) << writer_.tensor(tensor).name() << " are no rows of choices";
    return *writer_.tensor(tensor).mutable_dims(0)->mutable_sections(0);
  }
  int64_t ChoicesIn(int tensor) { return ChoicesOf(tensor).count(); }

  // As many as a rank dispatches.
  int NewRows(int like, absl::string_view what) {
    const int tensor = writer_.NewTensor(like, what);
    writer_.tensor(tensor).clear_expected_rows();
    ChoicesOf(tensor).set_count(ChoicesIn(rows_));
    return tensor;
  }
  // As many as a round has room for. If experts are evenly loaded, all that a
  // rank receives come in the first.
  int NewReceived(int like, absl::string_view what, const Round& round) {
    const int tensor = writer_.NewTensor(like, what);
    BeReceived(tensor, round);
    return tensor;
  }
  void BeReceived(int tensor, const Round& round) {
    TensorSpec& spec = writer_.tensor(tensor);
    spec.set_again(round.number > 0);
    ChoicesOf(tensor).set_count(round.choices);
    const bool is_row = spec.dims_size() == writer_.tensor(rows_).dims_size();
    if (!is_row) return;
    const int64_t dispatched = RowsOf(writer_.tensor(rows_));
    spec.set_expected_rows(round.number == 0 ? dispatched : 0);
  }

  int NewOffsets(absl::string_view what, const std::vector<Dim>& dims) {
    const int tensor = writer_.NewTensor(offsets_, what);
    TensorSpec& spec = writer_.tensor(tensor);
    spec.clear_dims();
    for (const Dim& dim : dims) *spec.add_dims() = dim;
    spec.clear_layout();
    return tensor;
  }

  void GatherOffsets() {
    const Dim own = writer_.tensor(offsets_).dims(0);
    all_offsets_ = NewOffsets("offsets of all ranks",
                              {DimOf({{Dim::STATISTICS, spec_.ranks}}), own});
    writer_.Gather(spec_.axes, offsets_, all_offsets_);
  }

  void SetAxes(google::protobuf::RepeatedPtrField<std::string>& axes) const {
    axes.Assign(spec_.axes.begin(), spec_.axes.end());
  }

  void SetRound(const Round& round, Op& op) const {
    SetAxes(*op.mutable_round()->mutable_axes());
    op.mutable_round()->set_ranks(spec_.ranks);
    op.mutable_round()->set_number(round.number);
  }

  void Exchange(const Round& round, int x, int y, bool back = false,
                int into = -1) {
    Op& op = writer_.AddOp(
        Op::EXCHANGE, {{"x", x}, {"offsets", all_offsets_}, {"into", into}},
        {{"y", y}});
    SetAxes(*op.mutable_exchange()->mutable_axes());
    op.mutable_exchange()->set_forward(ALL_TO_ALL);
    op.mutable_exchange()->set_backward(ALL_TO_ALL);
    SetRound(round, op);
    op.mutable_round()->set_back(back);
  }

  static std::string Named(const Round& round, absl::string_view what) {
    return round.number == 0 ? std::string(what)
                             : absl::StrCat(what, ", round ", round.number);
  }

  // Returns the rows that have come back so far.
  int WriteRound(const Round& round, int down, int before) {
    const int received = NewReceived(rows_, Named(round, "received"), round);
    const int gates =
        NewReceived(gates_, Named(round, "received gates"), round);
    Exchange(round, rows_, received);
    Exchange(round, gates_, gates);
    std::map<int, int> of_round = Regroup(round, received, gates);
    for (const Op& kept : ops_) WriteOp(kept, round, of_round);
    const int by_source =
        NewReceived(down, Named(round, "results by source"), round);
    SetRound(round, writer_.AddOp(
                        Op::UNGROUP,
                        {{"x", of_round.at(down)}, {"offsets", all_offsets_}},
                        {{"y", by_source}}));
    const int back = NewRows(down, Named(round, "results"));
    Exchange(round, by_source, back, /*back=*/true, before);
    return back;
  }

  // By dispatched tensor, what its place is for this rank's experts.
  std::map<int, int> Regroup(const Round& round, int received, int gates) {
    const int64_t experts = DimSize(writer_.tensor(offsets_).dims(0)) - 1;
    const Dim own = DimOf({{Dim::STATISTICS, experts / spec_.ranks + 1}});
    const std::map<int, int> of_round = {
        {rows_, NewReceived(rows_, Named(round, "of experts"), round)},
        {gates_, NewReceived(gates_, Named(round, "gates of experts"), round)},
        {offsets_, NewOffsets(Named(round, "offsets of experts"), {own})}};
    SetRound(round,
             writer_.AddOp(
                 Op::REGROUP,
                 {{"x", received}, {"gates", gates}, {"offsets", all_offsets_}},
                 {{"rows", of_round.at(rows_)},
                  {"row_gates", of_round.at(gates_)},
                  {"own_offsets", of_round.at(offsets_)}}));
    writer_.tensor(of_round.at(offsets_)).set_again(round.number > 0);
    return of_round;
  }

  // Of a round's rows.
  void WriteOp(const Op& kept, const Round& round,
               std::map<int, int>& of_round) {
    Op op = kept;
    for (Op::Operand& input : *op.mutable_inputs()) {
      const auto own = of_round.find(input.tensor());
      if (own != of_round.end()) input.set_tensor(own->second);
    }
    if (TakesOffsets(op)) {
      *op.add_inputs() =
          TableWriter::OperandOf("offsets", of_round.at(offsets_));
    }
    for (Op::Operand& output : *op.mutable_outputs()) {
      const int made = output.tensor();
      if (round.number == 0) {
        BeReceived(made, round);
      } else {
        output.set_tensor(NewReceived(
            made, Named(round, writer_.tensor(made).name()), round));
      }
      of_round[made] = output.tensor();
    }
    *table_.add_ops() = op;
  }

  const RoundsSpec& spec_;
  UnitTable& table_;
  TableWriter writer_;
  const int rows_;
  const int gates_;
  const int offsets_;
  int all_offsets_ = -1;
  std::set<int> made_;   // of dispatched rows
  std::vector<Op> ops_;  // what reads them
};

}  // namespace

void WriteRounds(const RoundsSpec& spec, UnitTable& table) {
  UnitTable before;
  before.mutable_ops()->Swap(table.mutable_ops());
  absl::optional<ExpertsOf> experts;
  for (const Op& op : before.ops()) {
    if (op.kind() == Op::DISPATCH) {
      experts.emplace(spec, op, table);
    } else if (experts.has_value() && op.kind() == Op::COMBINE) {
      experts->Write(op);
      experts.reset();
    } else if (!experts.has_value() || !experts->Takes(op)) {
      *table.add_ops() = op;
    }
  }
  CHECK(!experts.has_value()) << "rows are dispatched and not combined";
}

}  // namespace troupe
