#include "proto/plan/place_gradients.h"

#include <algorithm>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/plan/ports.h"
#include "proto/plan/segments.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {

PlacedGradients::PlacedGradients(const UnitTable& table,
                                 const std::vector<OpRules>& rules,
                                 const PlacedValues& values, Packing& workspace)
    : table_(table),
      rules_(rules),
      values_(values),
      segment_(SegmentNumbers(table, /*backward=*/true)),
      rounds_(RoundsOfOps(table)) {
  Make();
  if (!status_.ok()) return;
  Place(workspace);
  if (status_.ok()) PlaceReturned();
}

void PlacedGradients::Refuse(int op, absl::string_view why) {
  if (!status_.ok()) return;
  status_ = absl::InvalidArgumentError(absl::StrCat(
      "op ", op, " ", Op::Kind_Name(table_.ops(op).kind()), ": ", why));
}

// Whether nobody else has it: neither another unit nor another tensor.
bool PlacedGradients::IsOwn(int gradient) const {
  return gradients_[gradient].memory == UnitMemory::kNone &&
         std::count(newest_.begin(), newest_.end(), gradient) == 1;
}

// Whether the gradient of the op's input is made by the op that reads its
// output.
bool PlacedGradients::IsMadeByReader(int op) const {
  return table_.ops(op).fused() && rules_[op].fusion.backward_by_reader;
}

int PlacedGradients::New(int op, int tensor) {
  gradients_.push_back({.tensor = tensor, .round = rounds_[op]});
  gradients_.back().times.insert(TimeOf(op, 1));
  return static_cast<int>(gradients_.size()) - 1;
}

void PlacedGradients::MakeOfInput(int op, const InputGradient& rule) {
  OfOp& of_op = of_ops_[op];
  const auto index_of = [](const auto& operands, const std::string& name) {
    for (int i = 0; i < operands.size(); ++i) {
      if (operands.Get(i).name() == name) return i;
    }
    CHECK(false) << "no operand " << name << ", which its kind needs";
    return -1;
  };
  const Op& spec = table_.ops(op);
  const int i = index_of(spec.inputs(), rule.input);
  int tensor = spec.inputs(i).tensor();
  const int maker = MakerOf(table_, tensor);
  if (maker >= 0 && IsMadeByReader(maker)) {
    tensor = table_.ops(maker).inputs(0).tensor();
  }
  if (table_.tensors(tensor).dtype() == I32) return;
  const int before = newest_[tensor];
  const bool in_parts = rule.rule == InputGradient::kInParts;
  if (rule.rule == InputGradient::kNewSum) {
    of_op.added[i] = before;
  } else if (before >= 0 && !(in_parts && gradients_[before].in_parts)) {
    return Refuse(op, absl::StrCat("it reads \"", table_.tensors(tensor).name(),
                                   "\", which somebody behind it reads too, "
                                   "without a FORK between them"));
  }
  // The gradient that this one is, or lies in.
  int of = -1;
  if (rule.rule == InputGradient::kOfInput) {
    of = of_op.inputs[index_of(spec.inputs(), rule.of)];
  } else if (!rule.of.empty()) {
    of = of_op.outputs[index_of(spec.outputs(), rule.of)];
  }
  const auto give_up = [&](int gradient) {
    std::replace(newest_.begin(), newest_.end(), gradient, -1);
  };
  switch (rule.rule) {
    case InputGradient::kNew:
    case InputGradient::kNewSum:
      of_op.inputs[i] = New(op, tensor);
      break;
    case InputGradient::kMadeAgain:
      of_op.inputs[i] = New(op, tensor);
      gradients_.back().made_again_by = op;
      break;
    case InputGradient::kInParts:
      of_op.inputs[i] = before >= 0 ? before : New(op, tensor);
      gradients_[of_op.inputs[i]].in_parts = true;
      break;
    case InputGradient::kByForward:
      of_op.inputs[i] = New(op, tensor);
      gradients_.back().memory = values_.At(tensor).InBackward().memory;
      gradients_.back().offset_bytes =
          values_.At(tensor).InBackward().offset_bytes;
      gradients_.back().port = values_.At(tensor).InBackward().port;
      break;
    case InputGradient::kInPlace:
      if (of < 0 || !IsOwn(of)) {
        return Refuse(op, absl::StrCat("it changes the gradient of \"", rule.of,
                                       "\" in place, which others read, or "
                                       "nobody makes"));
      }
      of_op.inputs[i] = of;
      give_up(of);
      break;
    case InputGradient::kInPlaceIfOwn:
      if (of >= 0 && IsOwn(of)) {
        of_op.inputs[i] = of;
        give_up(of);
      } else {
        of_op.inputs[i] = New(op, tensor);
      }
      break;
    case InputGradient::kOfOutput:
    case InputGradient::kOfInput:
      of_op.inputs[i] = of;
      break;
  }
  // Nobody differentiates what it makes (statistics of a softmax).
  if (of_op.inputs[i] < 0) return;
  newest_[tensor] = of_op.inputs[i];
  const Collective turn = spec.exchange().backward();
  if (turn == ALL_REDUCE || turn == REDUCE_SCATTER || turn == REDUCE) {
    gradients_[of_op.inputs[i]].summed = true;
  }
}

void PlacedGradients::MakeOwn(int op) {
  const Op& spec = table_.ops(op);
  for (const int output : OwnGradientsOf(spec, rules_[op])) {
    const int gradient = New(op, spec.outputs(output).tensor());
    gradients_[gradient].kept = TrainsAny(spec);
    of_ops_[op].outputs[output] = gradient;
  }
}

void PlacedGradients::ReadInWeightPass(int op, int gradient) {
  if (gradient < 0) {
    return Refuse(op, "it has parameters, but nobody reads what it makes");
  }
  Gradient& read = gradients_[gradient];
  const int again = read.made_again_by;
  if (again < 0 || segment_[again] != segment_[op]) {
    read.kept = true;
    return;
  }
  of_ops_[again].makes_again = true;
  for (int m = TimeOf(again, 2); m <= TimeOf(op, 2); ++m) {
    read.times.insert(m);
  }
  ReadInWeightPass(again, of_ops_[again].outputs[0]);
}

void PlacedGradients::Make() {
  newest_.assign(table_.tensors_size(), -1);
  of_ops_.resize(ops());
  for (int t = 0; t < table_.tensors_size(); ++t) {
    const TensorSpec& tensor = table_.tensors(t);
    if (tensor.home() != TensorSpec::OUTPUT || tensor.no_gradient()) continue;
    newest_[t] = New(ops() - 1, t);
    gradients_.back().memory = UnitMemory::kOutputGradient;
    gradients_.back().port = PortOf(table_, t);
  }
  for (int op = ops() - 1; op >= 0; --op) {
    const Op& spec = table_.ops(op);
    OfOp& of_op = of_ops_[op];
    of_op.inputs.assign(spec.inputs_size(), -1);
    of_op.added = of_op.inputs;
    for (const Op::Operand& output : spec.outputs()) {
      of_op.outputs.push_back(newest_[output.tensor()]);
    }
    for (const Op::Operand& input : spec.backward_inputs()) {
      of_op.backward_inputs.push_back(newest_[input.tensor()]);
    }
    MakeOwn(op);
    if (IsMadeByReader(op)) continue;
    for (const InputGradient& rule : rules_[op].gradients) {
      MakeOfInput(op, rule);
      if (!status_.ok()) return;
    }
    // In use from where it was made to its last reader.
    for (const auto* read :
         {&of_op.outputs, &of_op.added, &of_op.backward_inputs}) {
      for (const int gradient : *read) {
        if (gradient < 0) continue;
        std::set<int>& times = gradients_[gradient].times;
        for (int m = *times.begin(); m <= TimeOf(op, 1); ++m) {
          times.insert(m);
        }
      }
    }
  }
  for (int op = 0; op < ops(); ++op) {
    KeepWhileSent(op);
    const Op& spec = table_.ops(op);
    if (!TrainsAny(spec)) continue;
    if (!RulesOf({table_, spec}).weight_reads_gradient) continue;
    ReadInWeightPass(op, of_ops_[op].outputs[0]);
  }
}

// What is sent is not overwritten while others compute: what is sent on, until
// somebody reads what comes for it; a panel's, until that before is computed.
void PlacedGradients::KeepWhileSent(int op) {
  if (table_.ops(op).kind() != Op::EXCHANGE) return;
  if (of_ops_[op].outputs[0] < 0) return;  // nothing is sent
  const bool shifts = table_.ops(op).exchange().backward() == SHIFT;
  const int last = shifts
                       ? MakerOf(table_, table_.ops(op).inputs(0).tensor()) + 1
                       : ComputesMeanwhile(table_, op);
  if (last < 0) return;
  std::set<int>& times = gradients_[of_ops_[op].outputs[0]].times;
  for (int m = TimeOf(op, 1); m <= TimeOf(last, 1); ++m) times.insert(m);
}

// From the op that makes it to the last that reads it.
bool PlacedGradients::Crosses(const Gradient& gradient) const {
  std::set<int> segments;
  for (int op = 0; op < ops(); ++op) {
    if (gradient.times.count(TimeOf(op, 1)) > 0) {
      segments.insert(segment_[op]);
    }
  }
  return segments.size() > 1;
}

void PlacedGradients::Place(Packing& workspace) {
  for (int t = 0; t < table_.tensors_size(); ++t) {
    const TensorSpec& tensor = table_.tensors(t);
    if (tensor.home() != TensorSpec::INPUT || tensor.no_gradient()) continue;
    if (newest_[t] < 0) {
      status_ = absl::InvalidArgumentError(absl::StrCat(
          "nobody reads the unit's input \"", tensor.name(), "\""));
      return;
    }
    Gradient& gradient = gradients_[newest_[t]];
    if (gradient.memory != UnitMemory::kNone || gradient.kept) {
      status_ = absl::InvalidArgumentError(
          absl::StrCat("the gradient of the unit's input \"", tensor.name(),
                       "\" is another tensor's, without a FORK between them"));
      return;
    }
    gradient.memory = UnitMemory::kInputGradient;
    gradient.port = PortOf(table_, t);
  }
  // What BACKWARD_WEIGHT reads of the first round; behind it that of the
  // others, whose two passes follow each other, in the same place.
  std::map<int, std::vector<Gradient*>> kept;
  for (Gradient& gradient : gradients_) {
    if (gradient.memory != UnitMemory::kNone) continue;
    const int64_t bytes = LineAligned(BytesOf(table_.tensors(gradient.tensor)));
    if (gradient.kept && gradient.summed) {
      // Not where the weights' gradients find what they read while the sum is
      // on its way: they would wait for it.
      for (int m = 0; m < 3 * ops(); ++m) gradient.times.insert(m);
      gradient.memory = UnitMemory::kSegmentGradients;
      gradient.offset_bytes =
          segments_.Add({.bytes = bytes, .times = gradient.times});
    } else if (gradient.kept) {
      gradient.memory = UnitMemory::kWeightStash;
      kept[gradient.round].push_back(&gradient);
    } else {
      const bool crosses = Crosses(gradient);
      gradient.memory =
          crosses ? UnitMemory::kSegmentGradients : UnitMemory::kWorkspace;
      gradient.offset_bytes =
          (crosses ? segments_ : workspace)
              .Add({.bytes = bytes, .times = gradient.times});
    }
  }
  int64_t first_end = 0;
  for (const auto& [round, gradients] : kept) {
    int64_t end = round > 0 ? first_end : 0;
    for (Gradient* const gradient : gradients) {
      gradient->offset_bytes = end;
      end += LineAligned(BytesOf(table_.tensors(gradient->tensor)));
    }
    if (round == 0) first_end = end;
    weight_stash_bytes_ = std::max(weight_stash_bytes_, end);
  }
}

bool PlacedGradients::ReadsBackward(int op, int tensor) const {
  const std::vector<std::string>& names = rules_[op].backward_input_reads;
  return std::any_of(names.begin(), names.end(), [&](const auto& name) {
    return TensorOf(table_, op, name) == tensor;
  });
}

// From the pass in front of which it is sent, so that it is on its way during
// that, to the last that reads it, or sends it on.
void PlacedGradients::PlaceReturned() {
  for (int op = ops() - 1; op >= 0; --op) {
    if (table_.ops(op).kind() != Op::RETURN) continue;
    const int tensor = table_.ops(op).inputs(0).tensor();
    const int sent = table_.ops(op).inputs(1).tensor();
    int first = op;
    // A broadcast stands there itself.
    const bool shifts = table_.ops(op).exchange().backward() == SHIFT;
    while (shifts && first + 1 < ops() && !ReadsBackward(first, sent)) ++first;
    int last = op;
    for (int reader = 0; reader < op; ++reader) {
      const Op& spec = table_.ops(reader);
      const bool sends =
          spec.kind() == Op::RETURN && spec.inputs(1).tensor() == tensor;
      if (sends || ReadsBackward(reader, tensor)) last = std::min(last, reader);
    }
    std::set<int> times;
    for (int m = TimeOf(first, 1); m <= TimeOf(last, 1); ++m) times.insert(m);
    returned_[tensor] =
        segments_.Add({.bytes = LineAligned(BytesOf(table_.tensors(tensor))),
                       .times = times});
  }
}

TensorPlace PlacedGradients::At(int gradient) const {
  if (gradient < 0) return {};
  const Gradient& at = gradients_[gradient];
  return {.memory = at.memory,
          .offset_bytes = at.offset_bytes,
          .tensor = at.tensor,
          .port = at.port};
}

void PlacedGradients::Fill(int op, OpPlaces& places) const {
  const OfOp& of_op = of_ops_[op];
  places.makes_gradient_again = of_op.makes_again;
  for (const int gradient : of_op.inputs) {
    places.input_gradients.push_back(At(gradient));
  }
  for (const int gradient : of_op.added) {
    places.added_gradients.push_back(At(gradient));
  }
  for (const int gradient : of_op.outputs) {
    places.output_gradients.push_back(At(gradient));
  }
  for (const int gradient : of_op.backward_inputs) {
    places.backward_input_gradients.push_back(At(gradient));
  }
}

}  // namespace troupe
