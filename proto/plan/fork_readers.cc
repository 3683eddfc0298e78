#include "proto/plan/fork_readers.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/plan/made_again.h"
#include "proto/plan/ops/op_rules.h"

namespace troupe {
namespace {

// An input of an op, or one of the outputs that units are to have.
struct Reader {
  int op = -1;  // -1: another unit
  int index = 0;
  // With a LINEAR the LOW_RANK that adapts it, whose input 0 is the same: they
  // make one gradient together. -1: there is none.
  int adapter = -1;
  InputGradient::Rule rule = InputGradient::kNew;
};

class Forking {
 public:
  Forking(const std::vector<int>& outputs, UnitTable& table)
      : outputs_(outputs), table_(table) {}

  std::vector<int> Run() {
    const int tensors = table_.tensors_size();
    for (int t = 0; t < tensors; ++t) {
      if (table_.tensors(t).dtype() != I32) Part(t);
    }
    for (const int tensor : outputs_) {
      CHECK(table_.tensors(tensor).home() == TensorSpec::WITHIN)
          << table_.tensors(tensor).name() << " is not made by the unit alone";
      table_.mutable_tensors(tensor)->set_home(TensorSpec::OUTPUT);
    }
    return outputs_;
  }

 private:
  // Those that make a gradient, ops in their order.
  std::vector<Reader> ReadersOf(int tensor) const {
    std::vector<Reader> readers;
    for (int i = 0; i < table_.ops_size(); ++i) {
      const OpView op(table_, table_.ops(i));
      for (const InputGradient& gradient : RulesOf(op).gradients) {
        if (op.Input(gradient.input) != tensor) continue;
        if (IsAdapted(i - 1, tensor)) {
          readers.back().adapter = i;
          readers.back().rule = gradient.rule;
          continue;
        }
        readers.push_back({.op = i,
                           .index = IndexOf(i, gradient.input),
                           .rule = gradient.rule});
      }
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (outputs_[i] != tensor) continue;
      readers.push_back({.op = -1, .index = static_cast<int>(i)});
    }
    return readers;
  }

  // Whether the op is a LINEAR that reads the tensor, with a LOW_RANK behind
  // it.
  bool IsAdapted(int op, int tensor) const {
    if (op < 0 || table_.ops(op).kind() != Op::LINEAR) return false;
    return table_.ops(op).linear().adapted() &&
           table_.ops(op).inputs(0).tensor() == tensor &&
           table_.ops(op + 1).inputs(0).tensor() == tensor;
  }

  int IndexOf(int op, const std::string& input) const {
    const auto& inputs = table_.ops(op).inputs();
    const auto found =
        std::find_if(inputs.begin(), inputs.end(),
                     [&](const auto& of) { return of.name() == input; });
    CHECK(found != inputs.end()) << input;
    return static_cast<int>(found - inputs.begin());
  }

  void Part(int tensor) {
    std::vector<Reader> readers = ReadersOf(tensor);
    int behind = MakerOf(table_, tensor);  // ops that a FORK stands behind
    const auto first_other =
        std::find_if(readers.begin(), readers.end(), [](const Reader& reader) {
          return reader.op < 0 || reader.rule != InputGradient::kNewSum;
        });
    const bool norms_first = first_other != readers.begin();
    if (norms_first) behind = std::prev(first_other)->op;
    readers.erase(readers.begin(), first_other);
    const bool copies = readers.size() == 1 && !norms_first &&
                        table_.tensors(tensor).home() == TensorSpec::INPUT &&
                        (readers[0].rule == InputGradient::kOfOutput ||
                         readers[0].rule == InputGradient::kOfInput);
    if (readers.size() < 2 && !copies) return;
    const int at = readers[0].op >= 0 ? readers[0].op : behind + 1;
    InsertFork(tensor, at, readers);
  }

  // In front of op `at`.
  void InsertFork(int tensor, int at, std::vector<Reader>& readers) {
    for (Reader& reader : readers) {
      if (reader.op >= at) ++reader.op;
      if (reader.adapter >= at) ++reader.adapter;
    }
    Op fork;
    fork.set_kind(Op::FORK);
    SetOperand("x", tensor, *fork.add_inputs());
    const int own = Like(tensor, " here");
    SetOperand("y", own, *fork.add_outputs());
    Read(readers.front(), own);
    int rest = -1;
    if (readers.size() > 1) {
      rest = Like(tensor, " behind");
      SetOperand("other", rest, *fork.add_outputs());
      for (size_t i = 1; i < readers.size(); ++i) Read(readers[i], rest);
    }
    *table_.add_ops() = std::move(fork);
    for (int i = table_.ops_size() - 1; i > at; --i) {
      table_.mutable_ops()->SwapElements(i, i - 1);
    }
    if (rest >= 0) Part(rest);
  }

  void Read(const Reader& reader, int tensor) {
    if (reader.op < 0) {
      outputs_[reader.index] = tensor;
      return;
    }
    // The FORK is not among the ops yet.
    const int at = reader.op - 1;
    table_.mutable_ops(at)->mutable_inputs(reader.index)->set_tensor(tensor);
    if (reader.adapter < 0) return;
    table_.mutable_ops(reader.adapter - 1)
        ->mutable_inputs(0)
        ->set_tensor(tensor);
  }

  int Like(int tensor, const char* suffix) {
    TensorSpec same = table_.tensors(tensor);
    same.clear_home();
    absl::StrAppend(same.mutable_name(), suffix);
    *table_.add_tensors() = std::move(same);
    return table_.tensors_size() - 1;
  }

  static void SetOperand(const char* name, int tensor, Op::Operand& operand) {
    operand.set_name(name);
    operand.set_tensor(tensor);
  }

  std::vector<int> outputs_;
  UnitTable& table_;
};

}  // namespace

std::vector<int> ForkReaders(const std::vector<int>& outputs,
                             UnitTable& table) {
  return Forking(outputs, table).Run();
}

}  // namespace troupe
