#include "proto/plan/place_unit.h"

#include <algorithm>
#include <map>
#include <set>

#include "proto/base/check.h"
#include "proto/plan/ops/op_rules.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {
namespace {

int64_t LineAligned(int64_t bytes) {
  return (bytes + kCacheLineBytes - 1) / kCacheLineBytes * kCacheLineBytes;
}

// Something of a size that is in use at some of a unit's moments. Those of the
// forward pass are the ops' numbers; those of backward-input and
// backward-weight follow, ops last to first.
struct Life {
  int64_t bytes = 0;
  std::set<int> moments;
};

// Lays them out so that no two share memory at any moment: each at the lowest
// offset that is free, in the order given.
class Packing {
 public:
  int64_t Add(const Life& life) {
    std::map<int64_t, int64_t> taken;  // begin to end
    for (const auto& [offset, other] : placed_) {
      const bool together =
          std::any_of(life.moments.begin(), life.moments.end(),
                      [&](int m) { return other.moments.count(m) > 0; });
      if (!together) continue;
      int64_t& end = taken[offset];
      end = std::max(end, offset + other.bytes);
    }
    int64_t offset = 0;
    for (const auto& [begin, end] : taken) {
      if (offset + life.bytes <= begin) break;
      offset = std::max(offset, end);
    }
    placed_.emplace_back(offset, life);
    bytes_ = std::max(bytes_, offset + life.bytes);
    return offset;
  }
  int64_t bytes() const { return bytes_; }

 private:
  std::vector<std::pair<int64_t, Life>> placed_;
  int64_t bytes_ = 0;
};

// A gradient, once made.
struct Gradient {
  int tensor = -1;
  UnitMemory memory = UnitMemory::kNone;  // kNone: not decided yet
  int64_t offset_bytes = 0;
  int made_again_by = -1;  // the op that makes it in backward-weight, too
  bool kept = false;       // read by backward-weight
  bool summed = false;     // made by an exchange that sums
  std::set<int> moments;
};

class Placement {
 public:
  Placement(const UnitTable& table, UnitUse use);
  UnitPlaces Run();

 private:
  struct GradientsOfOp {
    std::vector<int> inputs;
    std::vector<int> added;
    std::vector<int> outputs;
  };

  OpView View(int op) const { return {table_, table_.ops(op)}; }
  int ops() const { return table_.ops_size(); }
  int Moment(int op, int pass) const {
    return pass == 0 ? op : pass * ops() + (ops() - 1 - op);
  }
  // Of an operand's name, in the op; or -1.
  int TensorOf(int op, absl::string_view name) const;

  // Values.
  int Storage(int tensor) const;
  void Share(int tensor, int with);
  void ShareStorage();
  bool DiesAt(int tensor, int op) const;
  void PlaceValues();
  bool CrossesForward(int first, int last) const;
  bool CrossesBackward(const Gradient& gradient) const;
  TensorPlace ValuePlace(int tensor) const;

  // Gradients, as numbers into gradients_.
  void MakeGradients();
  void MakeInputGradient(int op, const InputGradient& rule);
  int NewGradient(int op, int tensor);
  void ReadInWeightPass(int op, int gradient);
  void PlaceGradients();
  TensorPlace GradientPlace(int gradient) const;

  const UnitTable& table_;
  const bool training_;
  std::vector<OpRules> rules_;
  std::vector<int> shares_;          // by tensor: the one whose memory it is in
  std::vector<bool> kept_;           // by tensor: read by a backward pass
  std::vector<TensorPlace> values_;  // by tensor that has memory of its own
  std::vector<Gradient> gradients_;
  std::vector<int> newest_;  // by tensor: its gradient so far, or -1
  std::vector<GradientsOfOp> of_ops_;
  Packing workspace_;
  Packing segment_values_;
  Packing segment_gradients_;
  UnitPlaces places_;
};

Placement::Placement(const UnitTable& table, UnitUse use)
    : table_(table), training_(use == UnitUse::kTraining) {
  for (int op = 0; op < ops(); ++op) rules_.push_back(RulesOf(View(op)));
}

int Placement::TensorOf(int op, absl::string_view name) const {
  const int input = View(op).Input(name);
  return input >= 0 ? input : View(op).Output(name);
}

int Placement::Storage(int tensor) const {
  while (shares_[tensor] != tensor) tensor = shares_[tensor];
  return tensor;
}

// The tensor with a home outside of the unit gives the memory.
void Placement::Share(int tensor, int with) {
  int from = Storage(tensor);
  int to = Storage(with);
  if (table_.tensors(from).home() != TensorSpec::WITHIN) std::swap(from, to);
  shares_[from] = to;
}

// Whether nobody needs the value once this op has read it.
bool Placement::DiesAt(int tensor, int op) const {
  const int storage = Storage(tensor);
  for (int t = 0; t < table_.tensors_size(); ++t) {
    if (Storage(t) != storage) continue;
    if (kept_[t] || table_.tensors(t).home() != TensorSpec::WITHIN) {
      return false;
    }
    for (int later = op + 1; later < ops(); ++later) {
      for (const Op::Operand& input : table_.ops(later).inputs()) {
        if (input.tensor() == t) return false;
      }
    }
  }
  return true;
}

void Placement::ShareStorage() {
  for (int t = 0; t < table_.tensors_size(); ++t) shares_.push_back(t);
  kept_.assign(table_.tensors_size(), false);
  for (int op = 0; training_ && op < ops(); ++op) {
    for (const auto* reads : {&rules_[op].backward_input_reads,
                              &rules_[op].backward_weight_reads}) {
      for (const std::string& name : *reads) {
        const int tensor = TensorOf(op, name);
        if (tensor >= 0) kept_[tensor] = true;
      }
    }
    for (const InputGradient& gradient : rules_[op].gradients) {
      if (gradient.rule != InputGradient::kByForward) continue;
      kept_[TensorOf(op, gradient.input)] = true;
    }
  }
  for (int op = 0; op < ops(); ++op) {
    const OpView view = View(op);
    const bool same_memory =
        (view.op().kind() == Op::DROPOUT && view.op().fused()) ||
        (view.op().kind() == Op::EXCHANGE &&
         view.op().exchange().forward() == COLLECTIVE_UNSPECIFIED);
    for (const InPlace& pair : rules_[op].in_place) {
      const int input = view.Input(pair.input);
      if (same_memory || DiesAt(input, op)) {
        Share(input, view.Output(pair.output));
      }
    }
  }
}

// Whether ranks exchange something from one op to the other.
bool Placement::CrossesForward(int first, int last) const {
  for (int op = first; op <= last; ++op) {
    if (table_.ops(op).exchange().forward() != COLLECTIVE_UNSPECIFIED) {
      return true;
    }
  }
  return false;
}

bool Placement::CrossesBackward(const Gradient& gradient) const {
  for (int op = 0; op < ops(); ++op) {
    if (table_.ops(op).exchange().backward() == COLLECTIVE_UNSPECIFIED) {
      continue;
    }
    if (gradient.moments.count(Moment(op, 1)) > 0) return true;
  }
  return false;
}

TensorPlace Placement::ValuePlace(int tensor) const {
  if (tensor < 0) return {};
  TensorPlace place = values_[Storage(tensor)];
  place.tensor = tensor;
  return place;
}

void Placement::PlaceValues() {
  values_.resize(table_.tensors_size());
  std::vector<bool> kept(table_.tensors_size(), false);
  std::vector<std::set<int>> moments(table_.tensors_size());
  std::vector<bool> read(table_.tensors_size(), false);
  for (int t = 0; t < table_.tensors_size(); ++t) {
    if (kept_[t]) kept[Storage(t)] = true;
  }
  for (int op = 0; op < ops(); ++op) {
    // A fused GELU is part of the product before it, which writes its output.
    const bool fused = table_.ops(op).fused();
    for (const Op::Operand& input : table_.ops(op).inputs()) {
      moments[Storage(input.tensor())].insert(op);
      if (!fused) read[Storage(input.tensor())] = true;
    }
    for (const Op::Operand& output : table_.ops(op).outputs()) {
      moments[Storage(output.tensor())].insert(fused ? op - 1 : op);
    }
  }
  for (int t = 0; t < table_.tensors_size(); ++t) {
    if (Storage(t) != t) continue;
    TensorPlace& place = values_[t];
    const int64_t bytes = LineAligned(BytesOf(table_.tensors(t)));
    switch (table_.tensors(t).home()) {
      case TensorSpec::INPUT:
        place.memory = UnitMemory::kInput;
        continue;
      case TensorSpec::OUTPUT:
        place.memory = UnitMemory::kOutput;
        places_.activation_bytes = bytes;
        continue;
      case TensorSpec::TOKENS:
        place.memory = UnitMemory::kTokens;
        continue;
      case TensorSpec::TARGETS:
        place.memory = UnitMemory::kTargets;
        continue;
      default:
        break;
    }
    if (kept[t]) {
      place.memory = UnitMemory::kStash;
      place.offset_bytes = places_.stash_bytes;
      places_.stash_bytes += bytes;
    } else if (read[t]) {
      // From the first moment to the last.
      Life life = {.bytes = bytes};
      for (int m = *moments[t].begin(); m <= *moments[t].rbegin(); ++m) {
        life.moments.insert(m);
      }
      // Decoding does all segments in one call.
      const bool crosses = training_ && CrossesForward(*moments[t].begin(),
                                                       *moments[t].rbegin());
      place.memory =
          crosses ? UnitMemory::kSegmentValues : UnitMemory::kWorkspace;
      place.offset_bytes = (crosses ? segment_values_ : workspace_).Add(life);
    }
  }
}

int Placement::NewGradient(int op, int tensor) {
  gradients_.push_back({.tensor = tensor});
  gradients_.back().moments.insert(Moment(op, 1));
  return static_cast<int>(gradients_.size()) - 1;
}

void Placement::MakeInputGradient(int op, const InputGradient& rule) {
  GradientsOfOp& of_op = of_ops_[op];
  const auto index_of = [](const auto& operands, const std::string& name) {
    for (int i = 0; i < operands.size(); ++i) {
      if (operands.Get(i).name() == name) return i;
    }
    CHECK(false) << "no operand " << name;
    return -1;
  };
  const Op& spec = table_.ops(op);
  const int i = index_of(spec.inputs(), rule.input);
  int tensor = spec.inputs(i).tensor();
  const int maker = MakerOf(table_, tensor);
  if (maker >= 0 && table_.ops(maker).kind() == Op::GELU &&
      table_.ops(maker).fused()) {
    tensor = table_.ops(maker).inputs(0).tensor();
  }
  if (table_.tensors(tensor).dtype() == I32) return;
  const int before = newest_[tensor];
  if (rule.rule == InputGradient::kNewSum) {
    of_op.added[i] = before;
  } else {
    CHECK_EQ(before, -1) << Op::Kind_Name(spec.kind()) << " reads "
                         << table_.tensors(tensor).name()
                         << ", which a later op reads too: of these, only a "
                            "norm's input may be read elsewhere";
  }
  switch (rule.rule) {
    case InputGradient::kNew:
    case InputGradient::kNewSum:
      of_op.inputs[i] = NewGradient(op, tensor);
      break;
    case InputGradient::kMadeAgain:
      of_op.inputs[i] = NewGradient(op, tensor);
      gradients_.back().made_again_by = op;
      break;
    case InputGradient::kByForward:
      of_op.inputs[i] = NewGradient(op, tensor);
      gradients_.back().memory = ValuePlace(tensor).memory;
      gradients_.back().offset_bytes = ValuePlace(tensor).offset_bytes;
      break;
    case InputGradient::kInPlace:
      of_op.inputs[i] = of_op.outputs[index_of(spec.outputs(), rule.of)];
      // It would be another's, too.
      CHECK(gradients_[of_op.inputs[i]].memory == UnitMemory::kNone &&
            std::count(newest_.begin(), newest_.end(), of_op.inputs[i]) == 1)
          << Op::Kind_Name(spec.kind()) << " changes a gradient in place that "
          << "other ops read";
      break;
    case InputGradient::kOfOutput:
      of_op.inputs[i] = of_op.outputs[index_of(spec.outputs(), rule.of)];
      break;
    case InputGradient::kOfInput:
      of_op.inputs[i] = of_op.inputs[index_of(spec.inputs(), rule.of)];
      break;
  }
  newest_[tensor] = of_op.inputs[i];
  const Collective turn = spec.exchange().backward();
  if (turn == ALL_REDUCE || turn == REDUCE_SCATTER) {
    gradients_[of_op.inputs[i]].summed = true;
  }
}

void Placement::ReadInWeightPass(int op, int gradient) {
  CHECK_GE(gradient, 0) << Op::Kind_Name(table_.ops(op).kind())
                        << " has parameters, but nobody reads what it makes";
  Gradient& read = gradients_[gradient];
  const int again = read.made_again_by;
  bool apart = false;  // made in another segment
  for (int between = op; between < again; ++between) {
    apart |=
        table_.ops(between).exchange().backward() != COLLECTIVE_UNSPECIFIED;
  }
  if (again < 0 || apart) {
    read.kept = true;
    return;
  }
  places_.ops[again].makes_gradient_again = true;
  for (int m = Moment(again, 2); m <= Moment(op, 2); ++m) {
    read.moments.insert(m);
  }
  ReadInWeightPass(again, of_ops_[again].outputs[0]);
}

void Placement::MakeGradients() {
  newest_.assign(table_.tensors_size(), -1);
  of_ops_.resize(ops());
  for (int t = 0; t < table_.tensors_size(); ++t) {
    if (table_.tensors(t).home() != TensorSpec::OUTPUT) continue;
    newest_[t] = NewGradient(ops() - 1, t);
    gradients_.back().memory = UnitMemory::kOutputGradient;
  }
  for (int op = ops() - 1; op >= 0; --op) {
    const Op& spec = table_.ops(op);
    GradientsOfOp& of_op = of_ops_[op];
    of_op.inputs.assign(spec.inputs_size(), -1);
    of_op.added = of_op.inputs;
    for (const Op::Operand& output : spec.outputs()) {
      of_op.outputs.push_back(newest_[output.tensor()]);
    }
    if (spec.kind() == Op::GELU && spec.fused()) continue;
    for (const InputGradient& rule : rules_[op].gradients) {
      MakeInputGradient(op, rule);
    }
    // In use from where it was made to its last reader.
    for (const auto* read : {&of_op.outputs, &of_op.added}) {
      for (const int gradient : *read) {
        if (gradient < 0) continue;
        std::set<int>& moments = gradients_[gradient].moments;
        for (int m = *moments.begin(); m <= Moment(op, 1); ++m) {
          moments.insert(m);
        }
      }
    }
  }
  for (int op = 0; op < ops(); ++op) {
    if (table_.ops(op).parameters_size() == 0) continue;
    ReadInWeightPass(op, of_ops_[op].outputs[0]);
  }
}

void Placement::PlaceGradients() {
  for (int t = 0; t < table_.tensors_size(); ++t) {
    if (table_.tensors(t).home() != TensorSpec::INPUT) continue;
    CHECK_GE(newest_[t], 0) << "nobody makes the gradient of the unit's input";
    Gradient& gradient = gradients_[newest_[t]];
    CHECK(gradient.memory == UnitMemory::kNone && !gradient.kept)
        << "the gradient of the unit's input is another tensor's";
    gradient.memory = UnitMemory::kInputGradient;
  }
  for (Gradient& gradient : gradients_) {
    if (gradient.memory != UnitMemory::kNone) continue;
    const int64_t bytes = LineAligned(BytesOf(table_.tensors(gradient.tensor)));
    if (gradient.kept && gradient.summed) {
      // Not where the weights' gradients find what they read while the sum is
      // on its way: they would wait for it.
      for (int m = 0; m < 3 * ops(); ++m) gradient.moments.insert(m);
      gradient.memory = UnitMemory::kSegmentGradients;
      gradient.offset_bytes =
          segment_gradients_.Add({.bytes = bytes, .moments = gradient.moments});
    } else if (gradient.kept) {
      gradient.memory = UnitMemory::kWeightStash;
      gradient.offset_bytes = places_.weight_stash_bytes;
      places_.weight_stash_bytes += bytes;
    } else {
      const bool crosses = CrossesBackward(gradient);
      gradient.memory =
          crosses ? UnitMemory::kSegmentGradients : UnitMemory::kWorkspace;
      gradient.offset_bytes =
          (crosses ? segment_gradients_ : workspace_)
              .Add({.bytes = bytes, .moments = gradient.moments});
    }
  }
}

TensorPlace Placement::GradientPlace(int gradient) const {
  if (gradient < 0) return {};
  const Gradient& at = gradients_[gradient];
  return {.memory = at.memory,
          .offset_bytes = at.offset_bytes,
          .tensor = at.tensor};
}

UnitPlaces Placement::Run() {
  places_.ops.resize(ops());
  ShareStorage();
  PlaceValues();
  if (training_) {
    MakeGradients();
    PlaceGradients();
  }
  for (int op = 0; op < ops(); ++op) {
    OpPlaces& places = places_.ops[op];
    for (const Op::Operand& input : table_.ops(op).inputs()) {
      places.inputs.push_back(ValuePlace(input.tensor()));
    }
    for (const Op::Operand& output : table_.ops(op).outputs()) {
      places.outputs.push_back(ValuePlace(output.tensor()));
    }
    places.input_gradients.resize(places.inputs.size());
    places.added_gradients.resize(places.inputs.size());
    places.output_gradients.resize(places.outputs.size());
    if (!training_) continue;
    for (size_t i = 0; i < places.inputs.size(); ++i) {
      places.input_gradients[i] = GradientPlace(of_ops_[op].inputs[i]);
      places.added_gradients[i] = GradientPlace(of_ops_[op].added[i]);
    }
    for (size_t i = 0; i < places.outputs.size(); ++i) {
      places.output_gradients[i] = GradientPlace(of_ops_[op].outputs[i]);
    }
  }
  places_.workspace_bytes = workspace_.bytes();
  places_.segment_bytes = segment_values_.bytes();
  places_.segment_gradient_bytes = segment_gradients_.bytes();
  return std::move(places_);
}

}  // namespace

UnitPlaces PlaceUnit(const UnitTable& table, UnitUse use) {
  return Placement(table, use).Run();
}

int MakerOf(const UnitTable& table, int tensor) {
  for (int op = 0; op < table.ops_size(); ++op) {
    for (const Op::Operand& output : table.ops(op).outputs()) {
      if (output.tensor() == tensor) return op;
    }
  }
  return -1;
}

}  // namespace troupe
