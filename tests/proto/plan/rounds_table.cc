#include "tests/proto/plan/rounds_table.h"

#include <string>
#include <utility>
#include <vector>

#include "proto/plan/tensor_spec.h"

namespace troupe {
namespace {

constexpr int64_t kHidden = 4;
constexpr int64_t kColumns = 3;  // of gate, of up, and of what comes back

Dim Count(Dim::Kind kind, int64_t count) { return DimOf({{kind, count}}); }

std::vector<Dim> OfGates() {
  return {Count(Dim::BATCH, 2), Count(Dim::SEQUENCE, 3),
          Count(Dim::CHOICES, 2)};
}
std::vector<Dim> OfRows(const Dim& columns) {
  std::vector<Dim> dims = OfGates();
  dims.push_back(columns);
  return dims;
}
std::vector<Dim> Tokens() { return OfRows(Count(Dim::HIDDEN, kHidden)); }
std::vector<Dim> GateAndUp() {
  return OfRows(
      DimOf({{Dim::INTERMEDIATE, kColumns}, {Dim::INTERMEDIATE, kColumns}}));
}
std::vector<Dim> Results() {
  return OfRows(Count(Dim::INTERMEDIATE, kColumns));
}

class Writer {
 public:
  UnitTable Write(const RoundsTableSpec& spec) {
    rows_ = Tensor("rows", Tokens());
    gates_ = Tensor("gates", OfGates());
    for (const int input : {rows_, gates_}) {
      table_.mutable_tensors(input)->set_home(TensorSpec::INPUT);
    }
    const Dim offsets = Count(Dim::STATISTICS, kRoundsExperts + 1);
    const int own = Tensor("own", {offsets}, I32);
    table_.mutable_tensors(own)->set_home(TensorSpec::BATCH);
    all_ = Tensor("all", {Count(Dim::STATISTICS, kRoundsRanks), offsets}, I32);
    Op& gather = Add(Op::EXCHANGE, {{"x", own}}, {{"y", all_}});
    gather.mutable_exchange()->add_axes("expert");
    gather.mutable_exchange()->set_forward(ALL_GATHER);
    int back = -1;
    for (int round = 0; round < spec.rounds; ++round) {
      back = WriteRound(round, spec.again && round > 0, back);
    }
    table_.mutable_tensors(back)->set_home(TensorSpec::OUTPUT);
    return std::move(table_);
  }

 private:
  using Operands = std::vector<std::pair<const char*, int>>;

  int Tensor(const std::string& name, const std::vector<Dim>& dims,
             ElementType dtype = F32) {
    TensorSpec& tensor = *table_.add_tensors();
    tensor.set_name(name);
    for (const Dim& dim : dims) *tensor.add_dims() = dim;
    tensor.set_dtype(dtype);
    return table_.tensors_size() - 1;
  }

  Op& Add(Op::Kind kind, const Operands& inputs, const Operands& outputs) {
    Op& op = *table_.add_ops();
    op.set_kind(kind);
    for (const auto& [name, tensor] : inputs) {
      Op::Operand& operand = *op.add_inputs();
      operand.set_name(name);
      operand.set_tensor(tensor);
    }
    for (const auto& [name, tensor] : outputs) {
      Op::Operand& operand = *op.add_outputs();
      operand.set_name(name);
      operand.set_tensor(tensor);
    }
    return op;
  }

  Op::Round& AddOfRound(int number, Op::Kind kind, const Operands& inputs,
                        const Operands& outputs) {
    Op& op = Add(kind, inputs, outputs);
    op.mutable_round()->add_axes("expert");
    op.mutable_round()->set_ranks(kRoundsRanks);
    op.mutable_round()->set_number(number);
    if (kind == Op::EXCHANGE) {
      op.mutable_exchange()->add_axes("expert");
      op.mutable_exchange()->set_forward(ALL_TO_ALL);
      op.mutable_exchange()->set_backward(ALL_TO_ALL);
    }
    return *op.mutable_round();
  }

  int WriteRound(int number, bool again, int before) {
    const int first = table_.tensors_size();
    const int received = Tensor("received", Tokens());
    const int received_gates = Tensor("received gates", OfGates());
    const int grouped = Tensor("grouped", Tokens());
    const int gates = Tensor("grouped gates", OfGates());
    const Dim own = Count(Dim::STATISTICS, kRoundsExperts / kRoundsRanks + 1);
    const int offsets = Tensor("offsets", {own}, I32);
    const int gate_up = Tensor("gate and up", GateAndUp());
    const int results = Tensor("results", Results());
    const int ungrouped = Tensor("ungrouped", Results());
    for (int t = first; t < table_.tensors_size(); ++t) {
      table_.mutable_tensors(t)->set_again(again);
    }
    AddOfRound(number, Op::EXCHANGE, {{"x", rows_}, {"offsets", all_}},
               {{"y", received}});
    AddOfRound(number, Op::EXCHANGE, {{"x", gates_}, {"offsets", all_}},
               {{"y", received_gates}});
    AddOfRound(
        number, Op::REGROUP,
        {{"x", received}, {"gates", received_gates}, {"offsets", all_}},
        {{"rows", grouped}, {"row_gates", gates}, {"own_offsets", offsets}});
    Add(Op::GROUPED_LINEAR, {{"x", grouped}, {"offsets", offsets}},
        {{"y", gate_up}})
        .add_parameters(0);
    Add(Op::SWIGLU,
        {{"gate_up", gate_up}, {"weights", gates}, {"offsets", offsets}},
        {{"y", results}});
    AddOfRound(number, Op::UNGROUP, {{"x", results}, {"offsets", all_}},
               {{"y", ungrouped}});
    const int back = Tensor("back", Results());
    Operands inputs = {{"x", ungrouped}, {"offsets", all_}};
    if (before >= 0) inputs.push_back({"into", before});
    AddOfRound(number, Op::EXCHANGE, inputs, {{"y", back}}).set_back(true);
    return back;
  }

  UnitTable table_;
  int rows_ = -1;
  int gates_ = -1;
  int all_ = -1;
};

}  // namespace

UnitTable RoundsTable(const RoundsTableSpec& spec) {
  return Writer().Write(spec);
}

}  // namespace troupe
